"""The Docker engine: found through DOCKER_HOST or the default sockets, one shared client per process.

`python -m sandboxes.engine` says in one line what was found, or why nothing was (exit 1).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.utils
import requests
from docker.errors import APIError, DockerException

from bench.errors import InfraError, UsageError

REQUEST_TIMEOUT_S = 60.0
"""Longest silence of the engine on one request; every call here ends by then. CDB_ENGINE_TIMEOUT_S sets another."""
_OLDEST_API = "1.41"
_lock = threading.Lock()  # guards _shared: the first caller connects, the others wait for it
_shared: dict[int, docker.DockerClient] = {}


@dataclass(frozen=True)
class EngineFacts:
    """What this engine is, as far as isolation and limits depend on it."""

    version: str
    api: str
    storage_driver: str
    cgroup_version: str
    seccomp: bool
    rootless: bool
    os: str
    kernel: str
    cpus: int
    memory_bytes: int
    root: Path
    runtimes: tuple[str, ...]


def engine() -> docker.DockerClient:
    """The process's client (thread-safe, made at the first call). Raises InfraError naming the remedy."""
    with _lock:
        client = _shared.get(os.getpid())
        if client is None:
            client = connect()
            _shared[os.getpid()] = client
        return client


def connect(timeout_s: float | None = None) -> docker.DockerClient:
    """A client of its own for the engine this machine is set up for. Raises InfraError, UsageError.

    The API version is asked for by hand because docker-py's own negotiation ignores the engine's CA
    when REQUESTS_CA_BUNDLE is set (docker-py issue 2433).
    """
    settings: dict[str, Any] = {**docker.utils.kwargs_from_env()}
    settings.setdefault("base_url", _default_socket())
    timeout_s = timeout_s or _timeout_s()
    try:
        client = _open(settings, _OLDEST_API, timeout_s)
        told = client.api.version(api_version=False)
        client.close()
        refuse_unfit(told)
        newest = str(told["ApiVersion"])
        return _open(settings, newest, timeout_s)
    except (DockerException, requests.RequestException, OSError) as error:
        raise InfraError(_why_unreachable(str(settings["base_url"]), error)) from error


def wait_until_up(deadline_s: float, give_up: Callable[[], bool] = lambda: False) -> bool:
    """Wait until the engine answers, a restart of it included; False when it does not by the deadline."""
    until = time.monotonic() + deadline_s
    while True:
        try:
            client = connect(timeout_s=5.0)
        except InfraError:
            if time.monotonic() > until or give_up():
                return False
            time.sleep(1.0)
        else:
            client.close()
            return True


def _timeout_s() -> float:
    told = os.environ.get("CDB_ENGINE_TIMEOUT_S", "")
    try:
        seconds = float(told or REQUEST_TIMEOUT_S)
    except ValueError:
        seconds = 0.0
    if not seconds >= 1:
        raise UsageError(f"CDB_ENGINE_TIMEOUT_S is {told!r}; set it to a number of seconds from 1 on, or unset it")
    return seconds


def refuse_unfit(version: dict[str, Any]) -> None:
    """Raises InfraError for an engine that speaks the API and was found to lose work in silence.

    `version` is the engine's answer to GET /version. docs/security.md says what was tried.
    """
    names = [str(part.get("Name", "")) for part in version.get("Components") or []]
    if any("podman" in name.lower() for name in names):
        raise InfraError(
            "this engine is Podman: through its Docker API the workspace gets no size cap and a frozen container's "
            "workspace is copied out empty (docs/security.md); use a Docker engine, set DOCKER_HOST to it"
        )


def _open(settings: dict[str, Any], api_version: str, timeout_s: float) -> docker.DockerClient:
    client = docker.DockerClient(version=api_version, timeout=int(timeout_s), max_pool_size=64, **settings)
    client.api.trust_env = False
    return client


def _default_socket() -> str:
    """The system's socket, or a rootless one where only that exists."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    system = Path("/var/run/docker.sock")
    if not system.exists() and runtime and (Path(runtime) / "docker.sock").exists():
        return f"unix://{runtime}/docker.sock"
    return f"unix://{system}"


def _why_unreachable(address: str, error: Exception) -> str:
    text = str(error)
    if "Permission denied" in text:
        remedy = "this user may not use it: add the user to the group docker, log in again, or run as root"
    elif "No such file" in text or "FileNotFoundError" in text:
        remedy = (
            "no engine is running there: install Docker (Debian, Ubuntu: apt-get install docker.io) and start it "
            "(systemctl start docker), or set DOCKER_HOST; scripts/demo does this by itself as root"
        )
    elif "refused" in text:
        remedy = "the engine is not running: start it (systemctl start docker)"
    else:
        remedy = f"it did not answer as an engine does ({text[:300]})"
    return f"Docker engine at {address}: {remedy}"


def facts(client: docker.DockerClient | None = None) -> EngineFacts:
    """Asks the engine about itself. Raises InfraError when it does not answer."""
    try:
        told = (client or engine()).info()
    except (APIError, requests.RequestException) as error:
        raise InfraError(f"the Docker engine did not describe itself: {error}") from error
    options = told.get("SecurityOptions") or []
    return EngineFacts(
        version=str(told.get("ServerVersion", "")),
        api=str((client or engine()).api.api_version),
        storage_driver=str(told.get("Driver", "")),
        cgroup_version=str(told.get("CgroupVersion", "1")),
        seccomp=any("seccomp" in option for option in options),
        rootless=any("rootless" in option for option in options),
        os=str(told.get("OperatingSystem", "")),
        kernel=str(told.get("KernelVersion", "")),
        cpus=int(told.get("NCPU", 0)),
        memory_bytes=int(told.get("MemTotal", 0)),
        root=Path(str(told.get("DockerRootDir", "/var/lib/docker"))),
        runtimes=tuple(sorted(told.get("Runtimes") or {})),
    )


def main() -> int:
    try:
        told = facts()
    except InfraError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"Docker {told.version} on {told.os}, {told.cpus} CPUs, {told.memory_bytes / 2**30:.0f} GiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
