"""A bundle holds what it says, the same bytes each time, and no secret of ours."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from judged_run import ODD_NAME, SECRET, JudgedRun, rewrite_journal

from bench.errors import DataError, UsageError
from bench.journal import take_lock
from evaluator.bundle.verify import verify_bundle
from evaluator.bundle.write import write_bundle
from evaluator.cases import read_cases


def test_the_same_results_give_the_same_bytes_wherever_they_lie(
    judged: JudgedRun, bundle: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(judged.root, moved, symlinks=True)
    for path in moved.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    write_bundle([moved / "results/editor"], tmp_path / "b.tar.gz", start=True, trajectories=True, environment={})
    assert (tmp_path / "b.tar.gz").read_bytes() == bundle.read_bytes()


def test_submissions_are_byte_for_byte_with_links_modes_and_odd_names(judged: JudgedRun, unpacked: Path) -> None:
    sealed, copied = judged.entry / "submissions/clock", unpacked / "entries/editor__none__1/submissions/clock"
    assert SECRET in (copied / "index.html").read_text(), "a submission is never redacted"
    assert (copied / "index.html").read_bytes() == (sealed / "index.html").read_bytes()
    assert os.readlink(copied / "also.html") == "index.html"
    assert os.access(copied / "run.sh", os.X_OK)
    assert os.fsdecode(ODD_NAME) in {path.name for path in copied.iterdir()}


def test_c130_secrets_are_taken_out_of_our_texts_and_told(judged: JudgedRun, unpacked: Path) -> None:
    card = json.loads((unpacked / "bundle.json").read_text())
    assert card["redacted"] == [
        "results/editor/built/clock/BUILT.json",
        "results/editor/evidence/clock/submission.json",
        "results/editor/evidence/list/submission.json",
    ]
    for path in card["redacted"]:
        assert SECRET not in (unpacked / path).read_text()
        json.loads((unpacked / path).read_text())
    ours = [p for p in unpacked.rglob("*") if p.is_file() and "submissions" not in p.parts]
    assert not [p for p in ours if SECRET.encode() in p.read_bytes()]


def test_a_large_text_of_ours_is_redacted_in_pieces(
    judged: JudgedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluator.bundle.write._IN_MEMORY_BYTES", 10)
    write_bundle([judged.results], tmp_path / "b.tar.gz", environment={})
    content = gzip.decompress((tmp_path / "b.tar.gz").read_bytes())
    assert content.count(SECRET.encode()) == 2, "in the two submissions alone"


def test_what_looks_like_a_key_in_a_bound_text_stops_the_bundle_until_it_was_looked_at(
    judged: JudgedRun, tmp_path: Path
) -> None:
    copy = _copy(judged, tmp_path)
    rewrite_journal(
        copy.results / "journal.jsonl", lambda r: {**r, "reason": f"it printed {SECRET}"} if "reason" in r else r
    )
    with pytest.raises(DataError, match=r"results/editor/journal.jsonl, line 2.*--keep-suspected"):
        write_bundle([copy.results], tmp_path / "b.tar.gz", environment={})
    assert not (tmp_path / "b.tar.gz").exists()
    write_bundle([copy.results], tmp_path / "b.tar.gz", environment={}, keep_suspected=True)
    with pytest.raises(DataError, match="revoke it"):
        write_bundle([copy.results], tmp_path / "c.tar.gz", environment={"MY_KEY": SECRET}, keep_suspected=True)


def test_paths_in_cases_json_lead_within_the_bundle(unpacked: Path) -> None:
    for case in read_cases(unpacked / "results/editor/cases.json").cases:
        assert (unpacked / "results/editor" / case.project / "index.html").is_file()
        assert case.annotation and (unpacked / "results/editor" / case.annotation).is_file()
        if case.submission:
            assert (unpacked / "results/editor" / case.submission.folder).is_dir()


def test_what_is_not_in_is_said_and_starting_applications_only_come_when_asked_for(
    judged: JudgedRun, tmp_path: Path
) -> None:
    card = write_bundle([judged.results], tmp_path / "b.tar.gz", built=False, environment={})
    assert card.holds == {"start": False, "built": False, "trajectories": False}
    assert [one["what"] for one in card.left_out][:3] == [
        "starting applications", "built applications", "trial logs and trajectories",
    ]  # fmt: skip
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        tops = {name.split("/")[0] for name in archive.getnames()}
        assert not [name for name in archive.getnames() if "/built/" in name or "/trials/" in name]
    assert tops == {"README.md", "bundle.json", "entries", "results"}


def test_links_that_no_bundle_may_hold_are_left_out_and_named(judged: JudgedRun, tmp_path: Path) -> None:
    """The start application's own kind of list leaves them out, too; a built one may lead into its container."""
    copy = _copy(judged, tmp_path)
    (copy.results / "built/clock/app/bin").symlink_to("/usr/bin")
    (copy.dataset / "cases/clock/project/up").symlink_to("../../..")
    card = write_bundle([copy.results], tmp_path / "b.tar.gz", start=True, environment={})
    assert [one["what"] for one in card.left_out if "link" in one["why"]] == [
        "results/editor/built/clock/app/bin", "start/clock/project/up",
    ]  # fmt: skip
    assert verify_bundle(tmp_path / "b.tar.gz").faults == []


def test_a_broken_seal_a_running_judging_and_a_missing_score_are_refused(judged: JudgedRun, tmp_path: Path) -> None:
    copy = _copy(judged, tmp_path)
    with take_lock(copy.results / "journal.lock"), pytest.raises(UsageError, match="is being written"):
        write_bundle([copy.results], tmp_path / "b.tar.gz", environment={})
    (copy.entry / "submissions/clock/run.sh").write_text("other")
    with pytest.raises(DataError, match=r"changed: run\.sh"):
        write_bundle([copy.results], tmp_path / "b.tar.gz", environment={})
    (copy.results / "scores.json").unlink()
    with pytest.raises(UsageError, match="run `cdb score` first"):
        write_bundle([copy.results], tmp_path / "b.tar.gz", environment={})


def test_memory_stays_flat_whatever_the_size_of_the_media(judged: JudgedRun, tmp_path: Path) -> None:
    copy = _copy(judged, tmp_path)
    with (copy.results / "evidence/clock/video.webm").open("wb") as stream:
        stream.truncate(64 * 1024 * 1024)
    tracemalloc.start()
    write_bundle([copy.results], tmp_path / "b.tar.gz", environment={})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 1024 * 1024


def _copy(judged: JudgedRun, tmp_path: Path) -> JudgedRun:
    shutil.copytree(judged.root, tmp_path / "copy", symlinks=True)
    return JudgedRun(tmp_path / "copy")
