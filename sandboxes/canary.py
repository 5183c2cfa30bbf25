"""Proof that a container reaches nothing of this host, made anew on every machine: flags are not trusted.

A listener on every address of the host waits while a throw-away container tries each of them. Measured
need: on several engines an "internal" network still reaches services bound to 0.0.0.0.
"""

from __future__ import annotations

import json
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.errors import InfraError
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.sandbox import MIB, Limits, SandboxSpec

_DEADLINE_S = 30.0
_LIMITS = Limits(memory_bytes=256 * MIB, cpus=1.0, pids=64, workspace_bytes=MIB, home_bytes=MIB, tmp_bytes=MIB)
_LOCAL_IPV4 = re.compile(r"\|--\s+(\S+)\n\s+/32 host LOCAL")
_TRY = """
import json, socket, sys
port, answers = int(sys.argv[1]), {}
for address in sys.argv[2:]:
    try:
        socket.create_connection((address, port), timeout=1.0).close()
        answers[address] = "reached"
    except OSError as error:
        answers[address] = str(error)
print(json.dumps(answers))
"""


class Tried(NamedTuple):
    """What the container was told when it tried an address of the host."""

    address: str
    answer: str


def check_no_egress(image: str, run: str = "canary", network: str | None = None) -> tuple[Tried, ...]:
    """Tries every address of this host from a container as trials get it. Raises InfraError when one answers.

    `network` is that of the fallback (sandboxes/relay.py), where trials have one.
    `image` is any of ours (it needs python3). Also fails when the trial itself could not be made: nothing
    proved is not the same as nothing reached.
    """
    addresses = host_addresses()
    with listener() as port:
        tried = _try_from_container(image, run, network, port, addresses)
    reached = [answer.address for answer in tried if answer.answer == "reached"]
    if reached:
        raise InfraError(
            f"a container reached this host at {', '.join(reached)}: no trial may run here. "
            "Look for a container engine that maps loopback or forwards ports, and for firewall redirections."
        )
    if {answer.address for answer in tried} != set(addresses):
        raise InfraError("the canary container did not try every address of this host; see cdb doctor")
    return tried


def host_addresses() -> tuple[str, ...]:
    """Every address of this host, loopback last: from the kernel's own tables."""
    ipv4 = _LOCAL_IPV4.findall(_read("/proc/net/fib_trie"))
    lines = (line.split() for line in _read("/proc/net/if_inet6").splitlines())
    ipv6 = [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(fields[0])) for fields in lines if fields]
    global_ipv6 = [address for address in ipv6 if not address.startswith("fe80")]
    return tuple(sorted(dict.fromkeys([*ipv4, *global_ipv6]), key=lambda it: (it.startswith(("127.", "::1")), it)))


def _try_from_container(
    image: str, run: str, network: str | None, port: int, addresses: tuple[str, ...]
) -> tuple[Tried, ...]:
    with tempfile.TemporaryDirectory(prefix="cdb-canary-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        spec = SandboxSpec(role="canary", image=image, run=run, limits=_LIMITS, network=network)
        with DockerSandbox(spec) as box:
            ended = box.exec(
                ["python3", "-c", _TRY, str(port), *addresses], deadline_s=_DEADLINE_S, stdout=out, stderr=err
            )
        if not ended.ok:
            told = err.read_text(encoding="utf-8", errors="replace")[-500:]
            raise InfraError(f"the canary container could not make its trial ({ended}): {told}")
        return tuple(Tried(address, str(answer)) for address, answer in json.loads(out.read_text()).items())


@contextmanager
def listener() -> Iterator[int]:
    """Listens on all addresses of both families where there are two, proves it from here, yields the port.

    Nobody needs to accept: the kernel completes a connection that is waiting in the queue.
    """
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    with socket.create_server(("", 0), family=family, backlog=64, dualstack_ipv6=family == socket.AF_INET6) as server:
        port = int(server.getsockname()[1])
        _reaches_itself(port)
        yield port


def _reaches_itself(port: int) -> None:
    """A listener that nobody can reach would prove nothing."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2.0).close()
    except OSError as error:
        raise InfraError(f"the canary's listener cannot be reached even from this host: {error}") from error


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""
