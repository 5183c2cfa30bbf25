"""Whether this machine can run trials: a few checks, each with its remedy, in some ten seconds."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.errors import CdbError, InfraError
from sandboxes.canary import check_no_egress
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import facts
from sandboxes.escape.staged import SMALL, reach_limits
from sandboxes.hardening import EVALUATOR_RUNTIME, runtime_of
from sandboxes.images import REMEDY, image_tag, missing
from sandboxes.reap import leftovers
from sandboxes.sandbox import GIB, MIB, Limits, Mount, SandboxSpec
from sandboxes.socket_folder import socket_folder

_DISK_WANTED_BYTES = 10 * GIB
_SMALL = Limits(memory_bytes=256 * MIB, cpus=1.0, pids=64, workspace_bytes=MIB, home_bytes=MIB, tmp_bytes=MIB)
_CONNECT = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.settimeout(3);s.connect(sys.argv[1])"


class Check(NamedTuple):
    """One finding: what was looked at, whether it will do, what was seen, and what to do if it will not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def run_checks() -> tuple[Check, ...]:
    """All checks, in the order in which they depend on each other; none raises."""
    checks: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("engine", _engine),
        ("isolation", _isolation),
        ("disk", _disk),
        ("images", _images),
        ("egress", _egress),
        ("limits", _limits),
        ("runtime", _runtime),
        ("sockets", _sockets),
        ("leftovers", _leftovers),
    )
    return tuple(_guarded(name, check) for name, check in checks)


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except CdbError as error:
        return Check(name, ok=False, detail=str(error), remedy="see the message")


def _engine() -> Check:
    told = facts()
    detail = (
        f"Docker {told.version} (API {told.api}), {told.storage_driver}, kernel {told.kernel}, "
        f"{told.cpus} CPUs, {told.memory_bytes / GIB:.1f} GiB"
    )
    return Check("engine", ok=True, detail=detail)


def _isolation() -> Check:
    told = facts()
    detail = f"cgroup v{told.cgroup_version}, seccomp {'on' if told.seccomp else 'off'}"
    if told.rootless and told.cgroup_version == "1":
        remedy = (
            "a rootless engine on cgroup v1 ignores memory, cpu and pid limits: use cgroup v2 or a rootful engine"
        )
        return Check("isolation", ok=False, detail=f"{detail}, rootless", remedy=remedy)
    remedy = "" if told.seccomp else "use a kernel and an engine with seccomp: without it a trial can stop PID 1"
    return Check("isolation", ok=told.seccomp, detail=detail, remedy=remedy)


def _disk() -> Check:
    root = facts().root
    place = root if root.exists() else Path(tempfile.gettempdir())
    free = shutil.disk_usage(place).free
    remedy = "" if free >= _DISK_WANTED_BYTES else f"free at least {_DISK_WANTED_BYTES / GIB:.0f} GiB there"
    return Check("disk", ok=not remedy, detail=f"{free / GIB:.0f} GiB free at {place}", remedy=remedy)


def _images() -> Check:
    absent = missing()
    detail = f"missing: {', '.join(absent)}" if absent else ", ".join((image_tag("solver"), image_tag("browser")))
    return Check("images", ok=not absent, detail=detail, remedy=REMEDY if absent else "")


def _egress() -> Check:
    tried = check_no_egress(image_tag("base"), run="doctor")
    return Check("egress", ok=True, detail=f"none of {len(tried)} host addresses was reached from a container")


def _limits() -> Check:
    """Reaches every limit in a small container, so that what is told is what this machine enforces."""
    spec = SandboxSpec(role="canary", image=image_tag("base"), run="doctor", limits=SMALL)
    with tempfile.TemporaryDirectory(prefix="cdb-doctor-") as folder, DockerSandbox(spec) as box:
        found = list(reach_limits(box, Path(folder)))
    held = [finding.name for finding in found if finding.came == "contained"]
    loose = [f"{finding.name} ({finding.evidence})" for finding in found if finding.came != "contained"]
    detail = f"held and named: {', '.join(held) or 'none'}" + (f"; NOT: {', '.join(loose)}" if loose else "")
    remedy = (
        "run the engine on this machine, as root, with memory and pids cgroups on: a limit that does not hold lets "
        "one trial take the whole machine, one that is not seen is not named in a trial's outcome"
    )
    return Check("limits", ok=not loose, detail=detail, remedy=remedy if loose else "")


def _runtime() -> Check:
    told, wanted = facts(), runtime_of("app")
    if wanted is None:
        return Check("runtime", ok=True, detail="the engine's default for all containers")
    remedy = f'add "{wanted}" to "runtimes" in the engine\'s daemon.json and reload it, or unset {EVALUATOR_RUNTIME}'
    known = wanted in told.runtimes
    detail = f"{EVALUATOR_RUNTIME} asks for {wanted}; the engine knows {', '.join(told.runtimes)}"
    return Check("runtime", ok=known, detail=detail, remedy="" if known else remedy)


def _sockets() -> Check:
    with socket_folder("doctor") as folder, socket.socket(socket.AF_UNIX) as server:
        path = folder / "doctor.sock"
        server.bind(str(path))
        path.chmod(0o666)
        server.listen(1)
        mounts = [Mount(folder, "/sockets", read_only=False)]
        spec = SandboxSpec(role="canary", image=image_tag("base"), run="doctor", limits=_SMALL, mounts=mounts)
        with DockerSandbox(spec) as box:
            ended = box.exec(["python3", "-c", _CONNECT, "/sockets/doctor.sock"], deadline_s=5.0)
    if not ended.ok:
        raise InfraError(
            "a unix socket of this machine cannot be mounted into a container; run the engine on this machine "
            "(an engine inside a virtual machine, such as Docker Desktop's, cannot do it)"
        )
    return Check("sockets", ok=True, detail="a mounted unix socket connects container and host")


def _leftovers() -> Check:
    found = leftovers()
    kept = [item.name for item in found if item.is_kept]
    dead = [item for item in found if item.owner.is_dead and not (item.is_kept or (kept and item.kind == "volume"))]
    detail = f"{len(dead)} left by runs that died" if dead else "none"
    if kept:
        detail += f"; kept on request (cdb clean --kept removes them): {', '.join(kept)}"
    return Check("leftovers", ok=not dead, detail=detail, remedy="cdb clean" if dead else "")
