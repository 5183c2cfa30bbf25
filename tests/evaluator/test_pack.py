"""A release is packed from case sources: the card's files and fields, the same bytes each time, nothing held out."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bench.errors import CdbError, DataError, UsageError
from evaluator.case_source import read_case
from evaluator.pack import EVALUATION_ARCHIVE, SOLVER_ARCHIVE, pack_release
from evaluator.release_card import ReleaseAbout

ABOUT = ReleaseAbout("Test cases", "Test-2", "0.1", "2026-01-01", "Two cases.", "Nobody")
CRITERIA = {"alpha": ["The list is sorted – “newest first”.", "The form still works."], "beta": ["A\nB"]}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two whole cases in fresh folders: alpha with a document, beta without an attachment."""
    sources, rubrics = tmp_path / "sources", tmp_path / "rubrics"
    for case_id, texts in CRITERIA.items():
        project = sources / case_id / "project"
        (project / "_annotations").mkdir(parents=True)
        (project / "index.html").write_text(f"<h1>{case_id}</h1>")
        (project / "run.sh").write_text("#!/bin/sh\n")
        (project / "run.sh").chmod(0o700)
        (project / "start").symlink_to("index.html")
        Image.new("RGB", (40, 30), "teal").save(project / "_annotations" / "annotated.png")
        (sources / case_id / "edits").mkdir()
        (sources / case_id / "edits" / "gold.patch").write_text(f"gold of {case_id}\n")
        (sources / case_id / "user_queries.json").write_text(json.dumps([{"text": f"Change {case_id} – é"}]))
        kind = "document" if case_id == "alpha" else "none"
        (sources / case_id / "case.yaml").write_text(f"title: Case {case_id}\nattachment: {kind}\n")
        (rubrics / case_id).mkdir(parents=True)
        listed = [{"rubric_id": f"{case_id}-{n}", "criterion": text} for n, text in enumerate(texts, 1)]
        whole = {"case_id": case_id, "task_id": f"task-{case_id}", "rubrics": listed}
        (rubrics / case_id / "rubric.json").write_text(json.dumps(whole))
        (rubrics / case_id / "truth.json").write_text(json.dumps({"case": case_id, "truth": {}}))
    (sources / "alpha/project/_attachments").mkdir()
    (sources / "alpha/project/_attachments/policy.pdf").write_bytes(b"%PDF-1.7 policy")
    return sources, rubrics


def members(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as tar:
        return {member.name: member for member in tar.getmembers()}


def test_both_archives_hold_the_cards_layout_and_only_the_evaluators_holds_rubrics(
    sides: tuple[Path, Path], tmp_path: Path
) -> None:
    out = pack_release(*sides, tmp_path / "out", ABOUT)
    solver, evaluation = members(out / SOLVER_ARCHIVE), members(out / EVALUATION_ARCHIVE)
    assert "cases/alpha/project/_attachments/policy.pdf" in solver
    assert set(evaluation) - set(solver) == {"cases/alpha/rubric.json", "cases/beta/rubric.json"}
    assert not [name for name in evaluation if "edits" in name or "truth" in name or name.endswith(".yaml")]
    assert solver["cases/alpha/project/start"].linkname == "index.html"
    assert {m.mode for m in evaluation.values()} == {0o644, 0o755}
    assert {(m.uid, m.gid, m.uname, m.gname) for m in evaluation.values()} == {(0, 0, "", "")}
    assert len({m.mtime for m in evaluation.values()}) == 1


def test_the_same_sources_elsewhere_and_later_give_the_same_bytes(sides: tuple[Path, Path], tmp_path: Path) -> None:
    first = pack_release(*sides, tmp_path / "first", ABOUT)
    moved = tmp_path / "somewhere else"
    shutil.copytree(sides[0], moved / "s", symlinks=True)
    shutil.copytree(sides[1], moved / "r", copy_function=shutil.copy)
    for path in moved.rglob("*"):
        os.utime(path, (5, 5), follow_symlinks=False)
    second = pack_release(moved / "s", moved / "r", tmp_path / "second", ABOUT)
    names = sorted(p.relative_to(first) for p in first.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(second) for p in second.rglob("*") if p.is_file())
    assert [n for n in names if (first / n).read_bytes() != (second / n).read_bytes()] == []


def test_checksums_and_manifest_say_what_is_there(sides: tuple[Path, Path], tmp_path: Path) -> None:
    out = pack_release(*sides, tmp_path / "out", ABOUT)
    checked = subprocess.run(
        ["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=out, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
    listed = {line.split("  ", 1)[1] for line in (out / "SHA256SUMS").read_text().splitlines()}
    files = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert listed == files - {"SHA256SUMS"}
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest["scope"] == "Test-2"
    assert manifest["case_ids"] == ["alpha", "beta"]
    assert manifest["counts"] == {"tasks": 2, "criteria": 3}
    assert manifest["archives"][SOLVER_ARCHIVE]["size_bytes"] == (out / SOLVER_ARCHIVE).stat().st_size


def test_rubric_exports_and_package_keep_text_order_and_counts(sides: tuple[Path, Path], tmp_path: Path) -> None:
    out = pack_release(*sides, tmp_path / "out", ABOUT)
    with (out / "rubrics/rubrics_3.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (out / "rubrics/rubrics_3.jsonl").read_text("utf-8").splitlines()]
    texts = [text for case_texts in CRITERIA.values() for text in case_texts]
    assert [row["criterion"] for row in table] == texts
    assert [row["criterion"] for row in lines] == texts
    assert [row["criterion_index"] for row in lines] == [1, 2, 1]
    grouped = json.loads((out / "rubrics/rubrics_by_task.json").read_text("utf-8"))
    assert [r["criterion"] for r in grouped["alpha"]["rubrics"]] == CRITERIA["alpha"]
    assert (out / "rubrics/case_list.txt").read_text() == "alpha\nbeta\n"
    with zipfile.ZipFile(out / "CoDesignBench-Test-2-Rubrics-3.zip") as package:
        assert package.namelist() == ["alpha/rubric.json", "beta/rubric.json"]
        assert package.read("beta/rubric.json") == (sides[1] / "beta/rubric.json").read_bytes()


def load(folder: Path, config: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    return datasets.load_dataset(str(folder), config, split="test", cache_dir=str(cache))


def test_hugging_face_loads_both_configurations_and_decodes_the_screenshot(
    sides: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = pack_release(*sides, tmp_path / "out", ABOUT)
    tasks = load(out, "tasks", tmp_path / "cache", monkeypatch)
    assert tasks.column_names == [
        "case_id", "benchmark_track", "request", "query_path", "project_path",
        "annotation_path", "annotation_image", "attachment_paths",
    ]  # fmt: skip
    alpha, beta = tasks[0], tasks[1]
    assert alpha["request"] == "Change alpha – é"
    assert alpha["attachment_paths"] == ["cases/alpha/project/_attachments/policy.pdf"]
    assert beta["attachment_paths"] == []
    assert beta["annotation_path"] == "cases/beta/project/_annotations/annotated.png"
    assert isinstance(alpha["annotation_image"], Image.Image)
    assert alpha["annotation_image"].size == (40, 30)
    rubrics = load(out, "rubrics", tmp_path / "cache", monkeypatch)
    assert rubrics.features["criterion_index"].dtype == "int64"
    assert rubrics[2] == {
        "rubric_id": "beta-1", "case_id": "beta", "task_id": "task-beta",
        "benchmark_track": "ME", "criterion_index": 1, "criterion": "A\nB",
    }  # fmt: skip


FAULTS: dict[str, tuple[str, str, str]] = {
    "request without text": ("alpha/user_queries.json", '[{"text": " "}]', "first entry has no text"),
    "request that is no list": ("alpha/user_queries.json", '{"text": "a"}', "must be a list"),
    "broken JSON": ("beta/user_queries.json", "[", "not valid JSON"),
    "unknown attachment": ("beta/case.yaml", "title: B\nattachment: smell\n", "attachment"),
    "attachment that is not there": ("beta/case.yaml", "title: B\nattachment: audio\n", "no file ends in"),
    "attachment that is not declared": ("alpha/case.yaml", "title: A\nattachment: none\n", "policy.pdf"),
    "screenshot that is no PNG": ("alpha/project/_annotations/annotated.png", "GIF", "not a PNG"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_malformed_source_is_refused_by_case_and_file(fault: str, sides: tuple[Path, Path], tmp_path: Path) -> None:
    name, content, message = FAULTS[fault]
    (sides[0] / name).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        pack_release(*sides, tmp_path / "out", ABOUT)
    assert f"case {name.split('/')[0]}: " in str(caught.value)
    assert Path(name).name in str(caught.value) or "_attachments" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("rubric", "message"),
    [
        ({"case_id": "beta", "task_id": "t", "rubrics": []}, "rubrics"),
        ({"case_id": "other", "task_id": "t", "rubrics": [{"rubric_id": "b", "criterion": "C"}]}, "folder"),
        ({"case_id": "beta", "task_id": "t", "rubrics": [{"rubric_id": "b"}]}, "rubrics.0.criterion"),
    ],
)
def test_a_malformed_rubric_is_refused(rubric: dict[str, object], message: str, sides: tuple[Path, Path]) -> None:
    (sides[1] / "beta/rubric.json").write_text(json.dumps(rubric))
    with pytest.raises(DataError, match=f"case beta: .*rubric.json: .*{message}"):
        read_case(sides[0] / "beta", sides[1] / "beta")


@pytest.mark.parametrize(
    ("planted", "content", "message"),
    [
        ("notes.txt", "The form still works.", "text of criterion 2"),
        ("a.patch", "gold of alpha\n", "copy of .*gold.patch"),
        ("b.json", '{"case": "alpha", "truth": {}}', "copy of .*truth.json"),
    ],
)
def test_what_a_solver_must_not_see_never_enters_an_archive(
    planted: str, content: str, message: str, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    (sides[0] / "alpha/project" / planted).write_text(content)
    with pytest.raises(DataError, match=message):
        pack_release(*sides, tmp_path / "out", ABOUT)


def test_a_link_out_of_the_application_is_refused(sides: tuple[Path, Path], tmp_path: Path) -> None:
    (sides[0] / "beta/project/out").symlink_to("../../alpha")
    with pytest.raises(DataError, match="outside of the application"):
        pack_release(*sides, tmp_path / "out", ABOUT)


def test_a_case_on_one_side_only_is_named(sides: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.rmtree(sides[1] / "beta")
    with pytest.raises(DataError, match="case beta: no folder"):
        pack_release(*sides, tmp_path / "out", ABOUT)


def test_an_earlier_release_is_replaced_and_anything_else_is_left_alone(
    sides: tuple[Path, Path], tmp_path: Path
) -> None:
    out = pack_release(*sides, tmp_path / "out", ABOUT)
    (out / "old.txt").write_text("old")
    pack_release(*sides, out, ABOUT)
    assert not (out / "old.txt").exists()
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="no release"):
        pack_release(*sides, home, ABOUT)
    assert (home / "thesis.txt").read_text() == "mine"
    assert issubclass(UsageError, CdbError)
