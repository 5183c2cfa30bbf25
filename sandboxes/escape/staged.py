"""Attempts that the host must stage or watch: using everything up, outliving the deadline, poisoning the copy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from bench.errors import CdbError, InfraError
from sandboxes.bounded_output import HEAD_BYTES, TAIL_BYTES
from sandboxes.engine import engine
from sandboxes.escape.finding import Finding, Listed
from sandboxes.limits_hit import Kind
from sandboxes.sandbox import MIB, Exec, Limits, Sandbox, TreePolicy, TreeTooLarge

SMALL = Limits(
    memory_bytes=256 * MIB, cpus=1.0, pids=64, workspace_bytes=32 * MIB, home_bytes=8 * MIB, tmp_bytes=16 * MIB,
    shm_bytes=16 * MIB, inodes=2000,
)  # fmt: skip
"""What the using-up attempts run under: small, so that they reach an end soon."""
EXHAUSTION, LIFE, COPY, IMAGE = "exhaustion", "lifetime", "copy", "image"
_SOON_S = 5.0
_MADE_S = 4.0
"""Time to make what is then to be contained, on a busy machine too."""
_MANY_THREADS = "import threading as t, time\nwhile 1: t.Thread(target=time.sleep, args=(60,), daemon=True).start()"
_FORK_BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
_OPEN_ALL = "import os\nkept = []\nwhile True: kept.append(os.open('/dev/null', os.O_RDONLY))"
_SHARED = "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1"
_PROCESSOR = """
import json, multiprocessing as m, os, time
def burn(s):
    end = time.monotonic() + s
    while time.monotonic() < end: pass
began = time.monotonic(); ps = [m.Process(target=burn, args=(1.5,)) for _ in range(8)]
[p.start() for p in ps]; [p.join() for p in ps]
t = os.times(); print(json.dumps((t.children_user + t.children_system) / (time.monotonic() - began)))
"""
_ORPHANS = """
trap '' TERM INT HUP QUIT
mkdir tree sparse deep; cd tree
ln -s / root; ln -s /etc/passwd passwd; ln -s ../../../etc up; mkfifo pipe; echo '#!/bin/sh' > set; chmod 6755 set
printf x > "$(printf 'new\\nline')"; ln -s loop loop; ln /workspace/tree/set hard; cd ..
truncate -s 1T sparse/terabyte
python3 -c 'import os
os.chdir("deep")
for _ in range(1500): os.mkdir("d"); os.chdir("d")'
tick='trap "" TERM INT HUP QUIT; while :; do date +%N >> /workspace/tick; sleep 0.02; done'
for n in 1 2 3; do setsid sh -c "$tick" & done
sleep 600
"""


class _Exhausting(NamedTuple):
    """A command that uses something up, and the kinds one of which must be named for it."""

    listed: Listed
    argv: tuple[str, ...]
    kinds: tuple[Kind, ...]


def _using_up(name: str, what: str, argv: tuple[str, ...], *kinds: Kind) -> _Exhausting:
    return _Exhausting(Listed(name, EXHAUSTION, what), argv, kinds)


def _filling(path: str) -> tuple[str, ...]:
    return ("sh", "-c", f"head -c 64M /dev/zero > {path}")


_ENDLESS_FILES = "i=0; while touch $i 2>/dev/null; do i=$((i+1)); done"
_EXHAUSTING = (
    _using_up("memory", "more memory than it has", ("python3", "-c", "x = bytearray(10 << 30)"), "memory"),
    _using_up("shared-memory-map", "more shared memory than it has", ("python3", "-c", _SHARED), "memory"),
    _using_up("shared-memory-files", "more than /dev/shm holds", _filling("/dev/shm/big"), "disk"),
    _using_up("workspace-space", "more disk than the workspace has", _filling("big"), "disk"),
    _using_up("home-space", "more disk than its home has", _filling("/home/agent/big"), "disk"),
    _using_up("tmp-space", "more disk than /tmp has", _filling("/tmp/big"), "disk"),
    _using_up("reserved-space", "fifty gigabytes at one stroke", ("fallocate", "-l", "50G", "big"), "disk"),
    _using_up("inodes", "endless empty files", ("sh", "-c", _ENDLESS_FILES), "inodes"),
    _using_up("open-files", "endless open files", ("python3", "-c", _OPEN_ALL), "open files"),
    _using_up("threads", "endless threads", ("python3", "-c", _MANY_THREADS), "processes"),
)
_FLOOD = Listed("log-flood", EXHAUSTION, "the host's disk, by printing without end")
_PROCESSOR_USE = Listed("processor", EXHAUSTION, "more processors than it has, with eight busy processes")
_BOMB = Listed("fork-bomb", EXHAUSTION, "endless processes")
_HELD = Listed("output-held-open", LIFE, "the harness's patience, by a child that keeps the output open")
_OUTLIVE = Listed("outliving-the-deadline", LIFE, "time after the deadline, by children in sessions of their own")
_LINGER = Listed("lingering", LIFE, "time after its end, by ignoring every signal it may")
_CHANGE = Listed("changing-the-copy", COPY, "files that change while they are copied out")
_LINKS = Listed("links-out-of-the-tree", COPY, "host files, by links in what is copied out")
_NODES = Listed("odd-nodes-in-the-tree", COPY, "the copier, by FIFOs, setuid bits and odd names")
_SPARSE = Listed("sparse-terabyte", COPY, "the host's disk, by a file with a terabyte of nothing")
_DEEP = Listed("bottomless-folders", COPY, "the copier's stack, by 1500 folders in each other")
_HISTORY = Listed("image-history", IMAGE, "grading material and keys in the image's layers, settings and build steps")
STAGED = (
    *(entry.listed for entry in _EXHAUSTING), _FLOOD, _PROCESSOR_USE, _BOMB, _HELD, _OUTLIVE, _LINGER, _CHANGE,
    _LINKS, _NODES, _SPARSE, _DEEP, _HISTORY,
)  # fmt: skip
OpenSandbox = Callable[[Limits], AbstractContextManager[Sandbox]]


def use_everything_up(open_sandbox: OpenSandbox, folder: Path) -> Iterator[Finding]:
    """One after another in one container, which must be as good as new after each."""
    with open_sandbox(SMALL) as box:
        yield from reach_limits(box, folder)
        yield _flood(box, folder)
        yield _processor(box, folder)
        began = time.monotonic()
        box.exec(["sh", "-c", "(yes >&1 &); (setsid sleep 600 &); exit 0"], deadline_s=30.0)
        waited_s = time.monotonic() - began
        yield _HELD.came(waited_s < _SOON_S, f"the command's end was noticed in {waited_s:.1f} s")


_EXHAUST_S = 30.0


def reach_limits(box: Sandbox, folder: Path) -> Iterator[Finding]:
    """Reaches every limit of a container made with SMALL; contained: it held, and was named. `folder` is for output.

    Raises InfraError when the container cannot be used any more after one.
    """
    for place, entry in enumerate(_EXHAUSTING, 1):
        ended = box.exec(entry.argv, deadline_s=_EXHAUST_S, stdout=folder / "out", stderr=folder / "err")
        hit = next((it for it in ended.limits if it.kind in entry.kinds), None)
        yield entry.listed.came(hit is not None, str(hit) if hit else f"no limit was named: {_told(ended)}")
        if ended.timed_out:  # frozen: nothing more can be tried in it
            for left in _EXHAUSTING[place:]:
                yield left.listed.unproved(f"{entry.listed.name} had no end within {_EXHAUST_S:g} s")
            return
        if not _cleared(box):
            raise InfraError(f"after {entry.listed.name} the container could not be used any more")


def _cleared(box: Sandbox) -> bool:
    return box.exec(["sh", "-c", "find . ~ /tmp /dev/shm -type f -delete"], deadline_s=20.0).ok


def _flood(box: Sandbox, folder: Path) -> Finding:
    out = folder / "flood"
    ended = box.exec(["sh", "-c", "yes | head -c 100000000; echo END"], deadline_s=30.0, stdout=out)
    size = out.stat().st_size
    contained = ended.ok and size < HEAD_BYTES + TAIL_BYTES + 1000 and out.read_bytes().endswith(b"END\n")
    out.unlink()
    return _FLOOD.came(contained, f"100000004 bytes were printed, {size} are kept")


def _processor(box: Sandbox, folder: Path) -> Finding:
    ended = box.exec(["python3", "-c", _PROCESSOR], deadline_s=30.0, stdout=folder / "cpu")
    if not ended.ok:
        return _PROCESSOR_USE.unproved(_told(ended))
    used = float(json.loads((folder / "cpu").read_text(encoding="ascii")))
    return _PROCESSOR_USE.came(used < 1.3 * SMALL.cpus, f"{used:.2f} processors were had, {SMALL.cpus:g} allowed")


def fork_bomb(open_sandbox: OpenSandbox) -> Finding:
    with open_sandbox(SMALL) as box:
        ended = box.exec(["python3", "-c", _FORK_BOMB], deadline_s=_MADE_S)
        hit = next((it for it in ended.limits if it.kind == "processes"), None)
        contained = ended.timed_out and not ended.broken and hit is not None
        return _BOMB.came(contained, f"{hit}; frozen at its deadline" if hit else _told(ended))


def outlive_and_poison(open_sandbox: OpenSandbox, folder: Path) -> Iterator[Finding]:
    """A container whose processes ignore their end, and whose workspace is meant to hurt who copies it."""
    with open_sandbox(SMALL) as box:
        ended = box.exec(["sh", "-c", _ORPHANS], deadline_s=_MADE_S)
        first = box.read_file("/workspace/tick")
        time.sleep(0.3)
        still = first == box.read_file("/workspace/tick")
        yield _OUTLIVE.came(
            ended.timed_out and still, f"after the deadline their clock stood at {first[-10:].strip().decode()}"
        )
        yield from _copies(box, folder)
        began = time.monotonic()
    took_s = time.monotonic() - began
    yield _LINGER.came(took_s < _SOON_S, f"the container was gone in {took_s:.1f} s")


def _copies(box: Sandbox, folder: Path) -> Iterator[Finding]:
    policy = TreePolicy(max_file_bytes=64 * MIB, max_bytes=64 * MIB)
    report = box.get_tree("/workspace/tree", folder / "tree", policy)
    refused = {it.path for it in report.refused}
    links = [it.name for it in (folder / "tree").iterdir() if it.is_symlink()]
    yield _LINKS.came({"root", "passwd", "up"} <= refused and not links, f"refused: {sorted(refused)}")
    modes = {oct(it.stat().st_mode & 0o7777) for it in (folder / "tree").iterdir()}
    plain = "pipe" in refused and modes <= {"0o755", "0o644"} and (folder / "tree/new\nline").is_file()
    yield _NODES.came(plain, f"what was copied has the modes {sorted(modes)}")
    box.get_tree("/workspace/deep", folder / "deep", policy)
    depth = sum(1 for _ in (folder / "deep").rglob("*"))
    yield _DEEP.came(depth <= policy.max_depth, f"{depth} levels were copied, the rest refused")
    try:
        box.get_tree("/workspace/sparse", folder / "sparse", policy)
        yield _SPARSE.came(False, "it was copied")
    except TreeTooLarge as error:
        yield _SPARSE.came(not (folder / "sparse").exists(), str(error))
    again = box.get_tree("/workspace/tree", folder / "again", policy)
    same = again == report and box.read_file("/workspace/tick") == box.read_file("/workspace/tick")
    yield _CHANGE.came(same, "two copies of the frozen workspace are alike")


def image_history(image: str, words: tuple[str, ...]) -> Finding:
    """Looks for the words in every build step and setting of the image, as the engine tells them."""
    api = engine().api
    layers, settings = api.history(image), api.inspect_image(image)["Config"]  # type: ignore[no-untyped-call]
    told = json.dumps([layers, settings])
    found = [word for word in (*words, "_KEY=", "TOKEN=", "SECRET=", "PASSWORD=") if word in told]
    return _HISTORY.came(
        not found, f"found {found}" if found else f"none of {len(words) + 4} words in {len(told)} bytes"
    )


def guarded(listed: tuple[Listed, ...], run: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What `run` yields; whatever of `listed` it did not get to is told as unproved, with the reason."""
    came: set[str] = set()
    why = "it was not tried"
    try:
        for finding in run():
            came.add(finding.name)
            yield finding
    except (CdbError, OSError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
    yield from (entry.unproved(why) for entry in listed if entry.name not in came)


def _told(ended: Exec) -> str:
    return f"exit code {ended.exit_code}, limits {[str(it) for it in ended.limits]}, timed out {ended.timed_out}"
