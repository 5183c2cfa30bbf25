"""The fallback where no unix socket of the host can be mounted (Docker Desktop): a network of its own for each trial.

The network is internal and its bridge has no address on the host (`inhibit_ipv4`), so that nothing of the host
listens there; an internal network alone still reaches every service on 0.0.0.0. The only other thing in it is a
relay, a container that also stands in the engine's bridge network and passes connections on to one address.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import requests
from docker.errors import APIError, NotFound

from bench.errors import InfraError
from sandboxes import forward
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import engine
from sandboxes.hardening import labels_of
from sandboxes.sandbox import MIB, Limits, SandboxSpec
from sandboxes.transient import again

ALIAS = "gateway"
_LIMITS = Limits(memory_bytes=128 * MIB, cpus=1.0, pids=64, workspace_bytes=MIB, home_bytes=MIB, tmp_bytes=4 * MIB)
_READY_S = 15.0


class Relay(NamedTuple):
    """`network` goes into the trial's SandboxSpec; inside, `host`:`port` leads to the target."""

    network: str
    host: str
    port: int


@contextmanager
def relay(image: str, target: tuple[str, int], *, run: str, case: str = "", attempt: int = 1) -> Iterator[Relay]:
    """A network with a relay to `target` (host as a container of the bridge network reaches it, and port).

    `image` needs python3. The trial's container must be gone before the block is left. Raises InfraError.
    """
    spec = SandboxSpec(
        role="relay", image=image, run=run, case=case, attempt=attempt, limits=_LIMITS, network="bridge"
    )
    with _network(spec) as network, DockerSandbox(spec) as box:
        try:
            engine().api.connect_container_to_network(box.id, network, aliases=[ALIAS])
        except (APIError, requests.RequestException) as error:
            raise InfraError(f"the relay of {run} {case} could not join its network: {error}") from error
        port = target[1]
        _start(box, target, port)
        yield Relay(network, ALIAS, port)


def _start(box: DockerSandbox, target: tuple[str, int], port: int) -> None:
    with tempfile.TemporaryDirectory(prefix="cdb-relay-") as scratch:
        shutil.copyfile(forward.__file__, Path(scratch) / "forward.py")
        box.put_tree(Path(scratch), "/tmp")
    to = f"{target[0]}:{target[1]}"
    argv = ["python3", "-I", "/tmp/forward.py", "--listen", "0.0.0.0", "--port", str(port), "--to", to]
    box.spawn(argv, log="/tmp/relay.log")
    until = time.monotonic() + _READY_S
    said = b""
    while time.monotonic() < until:
        with suppress(FileNotFoundError):
            said = box.read_file("/tmp/relay.log")
        if b'"ready": true' in said:
            return
        time.sleep(0.05)
    raise InfraError(f"the relay to {to} did not start: {said.decode(errors='replace')[-300:]}")


@contextmanager
def _network(spec: SandboxSpec) -> Iterator[str]:
    api, name = engine().api, f"cdb-relay-{secrets.token_hex(8)}"
    options = {"com.docker.network.bridge.inhibit_ipv4": "true"}
    try:
        api.create_network(name, driver="bridge", internal=True, options=options, labels=labels_of(spec))
    except (APIError, requests.RequestException) as error:
        raise InfraError(
            f"no network could be made for {spec.run} {spec.case}: {error}; an engine's default address pools hold "
            "about thirty (default-address-pools in daemon.json gives more)"
        ) from error
    try:
        yield name
    finally:
        with suppress(NotFound):
            again(lambda: api.remove_network(name))
