"""Extraction is private, whole, resumable, alone in its folder, and flat in memory."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_archives import END, EVALUATION, GOOD, PROJECT, SOLVER, member, tar_bytes, tiny_release, write_sums

from bench.errors import DataError, InfraError, UsageError
from bench.release import extract, open_release

KILLED = """
import os, signal, sys
from pathlib import Path
import bench.unpack
from bench.release import extract, open_release

plain, calls = bench.unpack._Tree.write, []

def write(tree, member, content):
    calls.append(member.path)
    plain(tree, member, content)
    if len(calls) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

bench.unpack._Tree.write = write
extract(open_release(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def members_of(folder: Path) -> int:
    from bench.archive import raise_hostile, read_members

    archive = folder / SOLVER
    return sum(1 for _ in read_members(archive, raise_hostile(archive)))


@pytest.mark.parametrize("archive", [0, 1])
def test_a_call_after_a_kill_finishes_and_redoes_no_finished_part(tmp_path: Path, archive: int) -> None:
    release, work = tiny_release(tmp_path / "release"), tmp_path / "work"
    stop_after = archive * members_of(release) + 2
    ended = subprocess.run([sys.executable, "-c", KILLED, str(release), str(work), str(stop_after)], check=False)
    assert ended.returncode == -9
    roots = [work / "solver-inputs", work / "evaluation-inputs"]
    assert [root.exists() for root in roots] == [archive == 1, False]
    before = roots[0].stat().st_ino if archive else None
    assert extract(open_release(release), work) == tuple(roots)
    assert sorted(path.name for path in work.iterdir()) == ["evaluation-inputs", "solver-inputs"], "nothing is left"
    assert before in (None, roots[0].stat().st_ino)
    assert all((root / PROJECT / "index.html").read_text() == "<p>hi</p>" for root in roots)


def test_the_evaluation_root_is_its_owners_only_from_the_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench.release

    modes: list[int] = []
    plain = bench.release.unpack

    def watched(archive: Path, target: Path, *more: object) -> object:
        found = plain(archive, target, *more)  # type: ignore[arg-type]
        modes.append(target.stat().st_mode & 0o777)
        return found

    monkeypatch.setattr(bench.release, "unpack", watched)
    old = os.umask(0)
    try:
        _, evaluation = extract(open_release(tiny_release(tmp_path / "release")), tmp_path / "work")
    finally:
        os.umask(old)
    assert modes == [0o700, 0o700]
    assert evaluation.stat().st_mode & 0o777 == 0o700
    evaluation.chmod(0o755)
    extract(open_release(tmp_path / "release"), tmp_path / "work")
    assert evaluation.stat().st_mode & 0o777 == 0o700, "closed again"


def test_two_extractions_into_one_folder_do_not_meet(tmp_path: Path) -> None:
    release, work = tiny_release(tmp_path / "release"), tmp_path / "work"
    work.mkdir()
    descriptor = os.open(work, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(UsageError, match="another extraction"):
        extract(open_release(release), work)
    os.close(descriptor)
    extract(open_release(release), work)


@pytest.mark.parametrize("there", ["a folder of the user's", "another release", "a link", "cases taken away"])
def test_what_lies_in_the_way_is_left_alone(tmp_path: Path, there: str) -> None:
    release, work = tiny_release(tmp_path / "release"), tmp_path / "work"
    root = work / "solver-inputs"
    match there:
        case "a folder of the user's":
            root.mkdir(parents=True)
            (root / "thesis.txt").write_text("mine")
        case "a link":
            work.mkdir()
            (tmp_path / "elsewhere").mkdir()
            root.symlink_to(tmp_path / "elsewhere")
        case "another release":
            extract(open_release(tiny_release(tmp_path / "other", member(f"{PROJECT}/more", b"x"))), work)
        case "cases taken away":
            extract(open_release(release), work)
            (root / "cases/one/user_queries.json").unlink()
    before = sorted(map(str, tmp_path.rglob("*")))
    with pytest.raises(UsageError, match=r"solver-inputs.*(remove it|choose another --out)"):
        extract(open_release(release), work)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_a_full_disk_is_no_fault_of_the_archive_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import bench.unpack

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bench.unpack.os, "open", full)
    with pytest.raises(InfraError, match=r"index\.html.*No space left.*free space"):
        bench.unpack.unpack(tiny_release(tmp_path / "release") / SOLVER, tmp_path)


@pytest.mark.parametrize("gone", ["user_queries.json", "project/"])
def test_a_case_without_its_parts_is_named(tmp_path: Path, gone: str) -> None:
    good = [packed for packed in GOOD if gone.rstrip("/") not in packed.info.name]
    with pytest.raises(DataError, match=f"one has no {gone}|lacks 1"):
        extract(open_release(tiny_release(tmp_path / "release", good=good)), tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


MEASURED = """
import json, sys
from pathlib import Path
import bench.release, bench.task, bench.tree
import evaluator.prepare, evaluator.verify
import pyarrow.parquet

def memory_kb(name):  # not ru_maxrss: a child's begins with what its parent had
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0])

def grown_mb():
    return (memory_kb("VmHWM") - start) / 1024

release, work = Path(sys.argv[1]), Path(sys.argv[2])
start = memory_kb("VmRSS")
solver, evaluation = bench.release.extract(bench.release.open_release(release), work)
extracted = grown_mb()
faults = evaluator.verify.verify_release(release)["faults"]
task = bench.task.read_task(solver / "cases/one")
found = bench.tree.file_sha256(task.project / task.attachments[0])
print(json.dumps({"extracted_mb": extracted, "all_mb": grown_mb(), "sha256": found, "faults": faults}))
"""


@pytest.mark.slow
def test_c11_a_large_attachment_is_streamed(tmp_path: Path) -> None:
    """600 MB through verify and extract: the process grows by less than 150 MB, and the content is the same."""
    size, piece = 600 * 1024 * 1024, os.urandom(16_384) * 64
    release = tiny_release(tmp_path / "release", good=GOOD[:1])
    header = member(f"{PROJECT}/_attachments/talk.mp4", size=size).info
    with gzip.open(release / SOLVER, "wb", compresslevel=1) as packed:
        packed.write(tar_bytes(GOOD, end=b"") + header.tobuf())
        for _ in range(size // len(piece)):
            packed.write(piece)
        packed.write(END)
    os.link(release / SOLVER, tmp_path / "same")
    (release / EVALUATION).unlink()
    (tmp_path / "same").rename(release / EVALUATION)
    write_sums(release)
    expected = hashlib.sha256()
    for _ in range(size // len(piece)):
        expected.update(piece)
    ended = subprocess.run(
        [sys.executable, "-c", MEASURED, str(release), str(tmp_path / "work")], capture_output=True, text=True, check=True
    )  # fmt: skip
    found = json.loads(ended.stdout)
    assert found["sha256"] == expected.hexdigest()
    assert found["extracted_mb"] < 150 and found["all_mb"] < 150, found
    assert any("tasks.parquet" in fault for fault in found["faults"]), "the archives were read"
    print(found)
