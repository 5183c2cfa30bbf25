"""Runs every attempt beside a quiet neighbour and says what each came to."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import InfraError
from sandboxes.canary import host_addresses, listener
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.escape import staged
from sandboxes.escape.finding import Finding, Listed
from sandboxes.escape.inside import __main__ as runner
from sandboxes.escape.inside.attempt import ATTEMPTS
from sandboxes.images import image_tag
from sandboxes.sandbox import GIB, MIB, Exec, Limits, Mount, Sandbox, SandboxSpec

_INSIDE = Path(runner.__file__).parent
_AT = "/tmp/escape"
_SHOWN = "/shown"
_LIMITS = Limits(memory_bytes=GIB, cpus=1.0, pids=128, workspace_bytes=32 * MIB, tmp_bytes=64 * MIB)
_DEADLINE_S = 150.0
_PATIENCE_S = 5.0
"""Longest pause of the neighbour's work that still counts as undisturbed; it works twenty times a second."""
_IPC_KEY = 0x5CDB
_PORT = 28475
GRADING_WORDS = ("eval_withrubric", "rubrics_521", "solve_norubric", "evaluation-inputs")
_GROUPS = ("network", "kernel", "processes", "files", staged.EXHAUSTION, staged.LIFE, staged.COPY, staged.IMAGE)
NEIGHBOUR = Listed("the-quiet-neighbour", "neighbour", "a trial beside it: its pace, its files, its sockets")
Open = Callable[[SandboxSpec], AbstractContextManager[Sandbox]]


def listed() -> tuple[Listed, ...]:
    """Every attempt, in the order of the report."""
    inside = sorted((Listed(*entry[:3]) for entry in ATTEMPTS.values()), key=lambda entry: _GROUPS.index(entry.group))
    return (*inside, *sorted(staged.STAGED, key=lambda entry: _GROUPS.index(entry.group)), NEIGHBOUR)


def run_suite(open_sandbox: Open = DockerSandbox, image: str | None = None) -> tuple[Finding, ...]:
    """All attempts, in under a minute. Raises InfraError only when not even the neighbour could be set up.

    `open_sandbox` makes the containers that are attacked from; the neighbour is always as trials are.
    """
    image = image or image_tag("solver")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cdb-escape-")))
        facts = stack.enter_context(_reachable_from_here())
        _leave_marks(image, facts["mark"])
        neighbour = stack.enter_context(_neighbour(image, facts, folder))
        found = [*_from_inside(open_sandbox, image, facts, folder), *_staged(open_sandbox, image, folder)]
        found.append(neighbour.finding())
    order = {entry.name: place for place, entry in enumerate(listed())}
    return tuple(sorted(found, key=lambda finding: order[finding.name]))


@contextmanager
def _reachable_from_here() -> Iterator[dict[str, Any]]:
    """What an attempt may try to reach, waiting: a port on every address, an abstract socket."""
    name = f"cdb-escape-{secrets.token_hex(8)}"
    with listener() as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        yield {
            "host_port": port, "host_addresses": list(host_addresses()), "abstract_socket": name,
            "neighbour_port": _PORT, "ipc_key": _IPC_KEY, "mark": name, "allowed_interfaces": [],
            "allowed_mounts": [_SHOWN], "read_only_mounts": [_SHOWN], "allowed_environment": [],
            "grading_words": list(GRADING_WORDS),
        }  # fmt: skip


def _spec(image: str, limits: Limits, **more: Any) -> SandboxSpec:
    return SandboxSpec(role="solver", image=image, run="escape-suite", limits=limits, **more)


def _leave_marks(image: str, mark: str) -> None:
    """An earlier trial that leaves a file wherever it can, and is gone."""
    places = (
        "/workspace",
        "/home/agent/.npm",
        "/home/agent/.cache",
        "/home/agent",
        "/tmp",
        "/var/tmp",
        "/dev/shm",
        "/",
    )
    script = 'for d; do mkdir -p "$d"; touch "$d/$0"; done; true'
    with DockerSandbox(_spec(image, staged.SMALL)) as box:
        if not box.exec(["sh", "-c", script, mark, *places], deadline_s=20.0).ok:
            raise InfraError("the escape suite's earlier trial could not be made")


class _Neighbour(NamedTuple):
    box: DockerSandbox
    ended: list[Exec]
    thread: threading.Thread
    out: Path

    def finding(self) -> Finding:
        self.box.exec(["touch", "/workspace/stop"], deadline_s=10.0)
        self.thread.join(_PATIENCE_S)
        if not self.ended or not self.ended[0].ok:
            return NEIGHBOUR.came(False, f"it did not end well: {self.ended}")
        told = json.loads(self.out.read_text(encoding="utf-8"))
        quiet = told["longest_gap_s"] < _PATIENCE_S and not told["visitors"] and told["marks"] == 4 and told["ticks"]
        return NEIGHBOUR.came(bool(quiet), json.dumps(told))


@contextmanager
def _neighbour(image: str, facts: dict[str, Any], folder: Path) -> Iterator[_Neighbour]:
    out, ended = folder / "neighbour", list[Exec]()
    with DockerSandbox(_spec(image, _LIMITS)) as box:
        facts["neighbour_names"] = [box.name, box.id[:12]]
        _put(box, facts, folder / "for-neighbour")
        argv = ["python3", "-m", "inside.neighbour", f"{_AT}/facts.json"]
        work = threading.Thread(
            target=lambda: ended.append(box.exec(argv, deadline_s=_DEADLINE_S, cwd=_AT, stdout=out)), daemon=True
        )
        work.start()
        _wait_for(box, "/workspace/tick")
        yield _Neighbour(box, ended, work, out)


def _wait_for(box: Sandbox, path: str) -> None:
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        try:
            box.read_file(path)
            return
        except FileNotFoundError:
            time.sleep(0.05)
    raise InfraError("the escape suite's neighbour never began its work")


def _put(box: Sandbox, facts: dict[str, Any], scratch: Path) -> None:
    """The attempts and their facts into the container's /tmp/escape."""
    shutil.copytree(_INSIDE, scratch / "escape/inside", ignore=shutil.ignore_patterns("__pycache__"))
    (scratch / "escape/facts.json").write_text(json.dumps(facts), encoding="utf-8")
    box.put_tree(scratch, "/tmp")


def _from_inside(open_sandbox: Open, image: str, facts: dict[str, Any], folder: Path) -> Iterator[Finding]:
    names = list(ATTEMPTS)
    with tempfile.TemporaryDirectory(prefix="cdb-shown-") as shown:
        spec = _spec(image, _LIMITS, mounts=[Mount(Path(shown), _SHOWN)])
        with open_sandbox(spec) as box:
            _put(box, facts, folder / "for-attacker")
            argv = ["python3", "-m", "inside", f"{_AT}/facts.json", *names]
            out, err = folder / "attempts", folder / "attempts-err"
            ended = box.exec(argv, deadline_s=_DEADLINE_S, cwd=_AT, stdout=out, stderr=err)
    told = {line["name"]: line for line in map(json.loads, out.read_text(encoding="utf-8").splitlines())}
    why = f"the attacker ended early ({ended.exit_code}): {err.read_text(errors='replace')[-300:]}"
    for name in names:
        entry = Listed(*ATTEMPTS[name][:3])
        line = told.get(name, {"escaped": None, "evidence": why})
        if line["escaped"] is None:
            yield entry.unproved(str(line["evidence"]))
        else:
            yield entry.came(not line["escaped"], str(line["evidence"]))


def _staged(open_sandbox: Open, image: str, folder: Path) -> Iterator[Finding]:
    def small(limits: Limits) -> AbstractContextManager[Sandbox]:
        return open_sandbox(_spec(image, limits))

    def run() -> Iterator[Finding]:
        yield from staged.use_everything_up(small, folder)
        yield staged.fork_bomb(small)
        yield from staged.outlive_and_poison(small, folder)
        yield staged.image_history(image, GRADING_WORDS)

    return staged.guarded(staged.STAGED, run)
