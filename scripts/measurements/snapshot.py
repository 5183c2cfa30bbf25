"""What snapshot and seal cost beyond copying a workspace out and unpacking it, in time and in memory."""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import IO, cast

from bench.submission import SubmissionManifest, describe_entries, seal
from bench.tree import Entry, list_tree
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import engine
from sandboxes.images import image_tag
from sandboxes.sandbox import MIB, WORKSPACE, SandboxSpec
from sandboxes.snapshot import manifest_fields, snapshot

FILES = 5_000
BYTES = 50 * MIB
ROUNDS = 9
_CHUNK_BYTES = 262_144


def measure() -> dict[str, float]:
    """`ratio`: median seconds of snapshot and seal over those of the engine's archive unpacked by Python's tarfile,
    the two alternating. `rss_growth_mb`: what one snapshot and seal adds to the peak memory of a process of its own.

    The workspace has 5,000 files of 50 MiB in all, half of them not compressible, in 100 folders. No patch is made.
    `tar_ratio` is the same ratio against GNU tar fed with the engine's archive.
    """
    with tempfile.TemporaryDirectory(prefix="cdb-measure-") as scratch:
        start = Path(scratch) / "start"
        _make_workspace(start)
        entries = list_tree(start)
        with DockerSandbox(SandboxSpec(role="solver", image=image_tag("base"), run="measure-snapshot")) as box:
            box.put_tree(start)
            box.freeze()
            growth = _growth_in_child(box.id, start, Path(scratch))
            ways: dict[str, Callable[[Path], None]] = {
                "snapshot_s": partial(_snapshot_and_seal, box.id, entries),
                "plain_s": partial(_unpack_with_tarfile, box.id),
                "tar_s": partial(_unpack_with_tar, box.id),
            }
            took = _alternating(ways, Path(scratch))
    return {
        "ratio": round(took["snapshot_s"] / took["plain_s"], 3),
        "tar_ratio": round(took["snapshot_s"] / took["tar_s"], 3),
        "rss_growth_mb": round(growth, 1),
        **{name: round(seconds, 4) for name, seconds in took.items()},
    }


def _make_workspace(root: Path) -> None:
    random = Random(0)
    size = BYTES // FILES
    for number in range(FILES):
        path = root / f"folder-{number % 100:02d}" / f"file-{number:04d}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(random.randbytes(size // 2) + b"x" * (size - size // 2))


def _alternating(ways: dict[str, Callable[[Path], None]], scratch: Path) -> dict[str, float]:
    """Median seconds of each way, one after the other in every round, each into a fresh folder of one disk."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            with _fresh(scratch) as target:
                began = time.perf_counter()
                way(target)
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


@contextmanager
def _fresh(scratch: Path) -> Iterator[Path]:
    target = Path(tempfile.mkdtemp(dir=scratch))
    os.sync()
    try:
        yield target
    finally:
        shutil.rmtree(target)


class _Running(DockerSandbox):
    """A container that somebody else started and will remove."""

    def __init__(self, container: str) -> None:
        super().__init__(SandboxSpec(role="solver", image="", run="measure-snapshot"))
        self._id = container


def _snapshot_and_seal(container: str, start: list[Entry], target: Path) -> None:
    """As a trial does it, but for the patch."""
    report = snapshot(partial(_Running(container).get_tree, WORKSPACE), target / "tree", start)
    described = describe_entries(report.entries, start)
    manifest = SubmissionManifest(case="one", agent="a", outcome="ok", **manifest_fields(report), **described)
    seal(target / "tree", target / "submissions", manifest)
    if manifest.digest != manifest.start_digest:
        raise RuntimeError("the copy is not what was put into the container")


def _archive(container: str) -> Iterable[bytes]:
    chunks, _ = engine().api.get_archive(container, WORKSPACE, chunk_size=_CHUNK_BYTES)
    return cast("Iterable[bytes]", chunks)


def _unpack_with_tarfile(container: str, target: Path) -> None:
    with tarfile.open(fileobj=cast("IO[bytes]", _Readable(_archive(container))), mode="r|") as tar:
        tar.extractall(target, filter="data")


def _unpack_with_tar(container: str, target: Path) -> None:
    with subprocess.Popen(["tar", "-x", "-C", str(target)], stdin=subprocess.PIPE) as process:
        assert process.stdin
        for chunk in _archive(container):
            process.stdin.write(chunk)
        process.stdin.close()


class _Readable:
    """Chunks as the file that tarfile reads forward."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        parts = []
        while size and (self._rest or self._next()):
            parts.append(self._rest[:size])
            size -= len(parts[-1])
            self._rest = self._rest[len(parts[-1]) :]
        return b"".join(parts)

    def _next(self) -> bool:
        self._rest = memoryview(next(self._chunks, b""))
        return bool(self._rest)


def _growth_in_child(container: str, start: Path, scratch: Path) -> float:
    command = [sys.executable, "-m", "scripts.measurements.snapshot", container, str(start), str(scratch)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def _growth(container: str, start: Path, scratch: Path) -> float:
    """MiB that one snapshot and seal adds to the peak of this process."""
    entries = list_tree(start)
    engine()
    before = _memory_mib("VmRSS")
    with _fresh(scratch) as target:
        _snapshot_and_seal(container, entries, target)
    return _memory_mib("VmHWM") - before


def _memory_mib(field: str) -> float:
    found = re.search(rf"^{field}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) / 1024


if __name__ == "__main__":
    print(_growth(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
