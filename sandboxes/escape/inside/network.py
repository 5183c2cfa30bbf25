"""Reaching anything that is not in this container: the host, neighbours, name servers, the world."""

from __future__ import annotations

import itertools
import os
import re
import socket
import stat
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .attempt import Facts, Result, attempt, none_of, nothing_in, refused

NETWORK = "network"
_SOON_S = 1.0
_HOST_NAMES = (
    "host.docker.internal", "gateway.docker.internal", "host.containers.internal", "host.lima.internal",
    "docker.for.mac.localhost", "kubernetes.default.svc",
)  # fmt: skip
_BRIDGES = ("172.17.0.1", "172.18.0.1", "172.19.0.1", "192.168.65.1", "192.168.65.2", "10.0.2.2", "10.88.0.1")
_ENGINE_SOCKETS = (
    "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
    "/run/crio/crio.sock", "/var/run/docker/containerd/containerd.sock",
)  # fmt: skip


def _reach(address: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> Callable[[], str]:
    """Connects; for datagrams that only asks the kernel for a route and sends nothing."""

    def trial() -> str:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, kind) as end:
            end.settimeout(_SOON_S)
            end.connect((address, port))
            return f"{address} port {port}"

    return trial


def _routes(*addresses: str) -> Result:
    return none_of({address: _reach(address, 53, socket.SOCK_DGRAM) for address in addresses})


def _look_up(*names: str) -> Result:
    return none_of({name: partial(socket.getaddrinfo, name, 80) for name in names})


@attempt(NETWORK, "a service of the host that listens on 0.0.0.0, by every address of the host")
def host_by_every_address(facts: Facts) -> Result:
    return none_of({address: _reach(address, facts["host_port"]) for address in facts["host_addresses"]})


@attempt(NETWORK, "the host by the names engines give it")
def host_by_name(facts: Facts) -> Result:
    return _look_up(*_HOST_NAMES)


@attempt(NETWORK, "the host by the addresses bridges usually have")
def host_by_usual_bridge(facts: Facts) -> Result:
    return none_of({address: _reach(address, facts["host_port"]) for address in _BRIDGES})


@attempt(NETWORK, "the engine's own ports 2375 and 2376 on every address of the host")
def engine_by_tcp(facts: Facts) -> Result:
    pairs = itertools.product(facts["host_addresses"], (2375, 2376))
    return none_of({f"{address}:{port}": _reach(address, port) for address, port in pairs})


@attempt(NETWORK, "the host over link-local and multicast IPv6")
def host_by_link_local(facts: Facts) -> Result:
    return none_of({it: _reach(it, facts["host_port"]) for it in ("fe80::1", "fe80::42:acff:fe11:1", "ff02::1")})


@attempt(NETWORK, "a port a neighbouring trial listens on, over loopback")
def neighbour_by_loopback(facts: Facts) -> Result:
    return none_of({it: _reach(it, facts["neighbour_port"]) for it in ("127.0.0.1", "127.0.1.1", "::1")})


@attempt(NETWORK, "neighbouring trials by the names of their containers")
def neighbour_by_name(facts: Facts) -> Result:
    return _look_up(*facts["neighbour_names"])


@attempt(NETWORK, "any address beside this one: the whole of the usual bridge's first 32 addresses")
def neighbours_by_scan(facts: Facts) -> Result:
    return none_of({f"172.17.0.{n}": _reach(f"172.17.0.{n}", facts["neighbour_port"]) for n in range(2, 34)})


@attempt(NETWORK, "the cloud's metadata address (a connection)")
def metadata_by_tcp(facts: Facts) -> Result:
    return none_of({it: _reach(it, 80) for it in ("169.254.169.254", "169.254.170.2")})


@attempt(NETWORK, "a route to the cloud's metadata address")
def metadata_by_route(facts: Facts) -> Result:
    return _routes("169.254.169.254", "fd00:ec2::254")


@attempt(NETWORK, "the cloud's metadata service by name")
def metadata_by_name(facts: Facts) -> Result:
    return _look_up("metadata.google.internal", "instance-data")


@attempt(NETWORK, "a route to the rest of the world, IPv4")
def world_by_ipv4(facts: Facts) -> Result:
    return _routes("192.0.2.1", "198.51.100.7", "203.0.113.9", "8.8.8.8")


@attempt(NETWORK, "a route to the rest of the world, IPv6")
def world_by_ipv6(facts: Facts) -> Result:
    return _routes("2001:db8::1", "2606:4700:4700::1111")


@attempt(NETWORK, "the dataset's and its answers' hosts, by name")
def dataset_by_name(facts: Facts) -> Result:
    return _look_up("huggingface.co", "github.com", "raw.githubusercontent.com", "gitlab.com")


@attempt(NETWORK, "a name server other than the container's own")
def other_name_servers(facts: Facts) -> Result:
    told = re.findall(r"^nameserver\s+(\S+)", Path("/etc/resolv.conf").read_text(encoding="utf-8"), re.MULTILINE)
    return _routes("1.1.1.1", "9.9.9.9", *(it for it in told if not it.startswith("127.")))


@attempt(NETWORK, "everybody on the wire, by broadcast and multicast")
def broadcast(facts: Facts) -> Result:
    def send(address: str) -> Callable[[], int]:
        def trial() -> int:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                return end.sendto(b"?", (address, 5353))

        return trial

    return none_of({address: send(address) for address in ("255.255.255.255", "224.0.0.251")})


@attempt(NETWORK, "raw packets")
def raw_socket(facts: Facts) -> Result:
    return refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))


@attempt(NETWORK, "an echo request to the host")
def ping(facts: Facts) -> Result:
    def trial() -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as end:
            return end.sendto(struct.pack(">BBHHH", 8, 0, 0xF7FF, 0, 0), ("172.17.0.1", 0))

    return refused(trial)


@attempt(NETWORK, "link-layer packets")
def packet_socket(facts: Facts) -> Result:
    return refused(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))


@attempt(NETWORK, "the host of a virtual machine, over vsock")
def vsock(facts: Facts) -> Result:
    return refused(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))


@attempt(NETWORK, "the kernel's cryptography sockets, a known source of kernel faults")
def crypto_socket(facts: Facts) -> Result:
    return refused(lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET))


@attempt(NETWORK, "changing an interface over netlink")
def change_interface(facts: Facts) -> Result:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as end:
        end.bind((0, 0))
        body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, 1, 1, 1)  # interface 1 (lo): up, as it is
        end.send(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)
        code = struct.unpack_from("=i", end.recv(4096), 16)[0]
    return Result(code == 0, "it was accepted" if code == 0 else f"netlink error {-code}: {os.strerror(-code)}")


@attempt(NETWORK, "an interface other than loopback")
def other_interfaces(facts: Facts) -> Result:
    names = sorted(os.listdir("/sys/class/net"))
    allowed = {"lo", *facts["allowed_interfaces"]}
    return nothing_in([name for name in names if name not in allowed], len(names), "interfaces")


@attempt(NETWORK, "a tunnel of its own")
def tunnel(facts: Facts) -> Result:
    return refused(lambda: os.open("/dev/net/tun", os.O_RDWR))


@attempt(NETWORK, "an abstract unix socket of the host")
def abstract_socket(facts: Facts) -> Result:
    def trial() -> str:
        with socket.socket(socket.AF_UNIX) as end:
            end.connect("\0" + facts["abstract_socket"])
            return str(facts["abstract_socket"])

    return refused(trial)


@attempt(NETWORK, "abstract unix sockets of anybody else, by the kernel's list")
def abstract_sockets_listed(facts: Facts) -> Result:
    lines = Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    return nothing_in([line.split()[-1] for line in lines[1:] if "@" in line], len(lines), "lines")


@attempt(NETWORK, "the engine's socket where engines put it")
def engine_socket(facts: Facts) -> Result:
    def reach(path: str) -> Callable[[], None]:
        def trial() -> None:
            with socket.socket(socket.AF_UNIX) as end:
                end.connect(path)

        return trial

    return none_of({path: reach(path) for path in _ENGINE_SOCKETS})


@attempt(NETWORK, "any socket or pipe that lies in the file system")
def socket_files(facts: Facts) -> Result:
    found, seen = [], 0
    for folder, folders, names in os.walk("/"):
        folders[:] = [it for it in folders if os.path.join(folder, it) not in ("/proc", "/sys")]
        for name in names:
            seen += 1
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)) and not path.startswith(tuple(facts["allowed_mounts"])):
                found.append(path)
    return nothing_in(found, seen, "files")
