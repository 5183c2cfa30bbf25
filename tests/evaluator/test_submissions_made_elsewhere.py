"""Trees that others left under `submissions/` are taken in by the rules a container's tree is taken by."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import DataError, UsageError
from bench.submission import read_manifest, seal_in_place
from bench.tree import list_tree
from evaluator.cases import Case, Cases, read_cases
from evaluator.prepare import prepare

APP = {"index.html": "<h1>Hi</h1>", "app.js": "let a = 1;"}


@pytest.fixture
def dataset(make_dataset: Callable[..., Path]) -> Path:
    root = make_dataset({"one": APP, "two": APP})
    for case in ("one", "two"):
        (root / "cases" / case / "rubric.json").write_text(json.dumps(["First."]))
    return root


@pytest.fixture
def submissions(dataset: Path, tmp_path: Path) -> Path:
    """The card's own layout with one submission, and nothing of ours in it."""
    folder = tmp_path / "theirs"
    shutil.copytree(dataset / "cases/one/project", folder / "one")
    return folder


def only_case(found: Cases) -> Case:
    return next(case for case in found.cases if case.case == "one")


def test_packages_in_a_foreign_tree_are_left_out_of_a_sealed_copy_and_recorded(
    dataset: Path, submissions: Path, tmp_path: Path
) -> None:
    for name in ("node_modules/p/a.js", "sub/node_modules/q/b.js", ".git/config"):
        (submissions / "one" / name).parent.mkdir(parents=True)
        (submissions / "one" / name).write_text("12345")
    (submissions / "one/package-lock.json").write_text("{}")
    before = list_tree(submissions)
    said: list[str] = []
    found = only_case(prepare(dataset, submissions, tmp_path / "out", progress=said.append))
    assert found.submission and found.submission.folder == "sealed/one"
    manifest = read_manifest(tmp_path / "out/sealed", "one")
    assert manifest and manifest.changes == ["added: package-lock.json"]
    assert [(n.path, n.files, n.bytes) for n in manifest.left_out] == [
        (".git", 1, 5), ("node_modules", 1, 5), ("sub/node_modules", 1, 5)
    ]  # fmt: skip
    assert "left out .git (1 files)" in said[0] and "sealed/one" in said[0]
    assert list_tree(submissions) == before


def test_odd_nodes_in_a_foreign_tree_are_refused_by_name_and_never_opened(
    dataset: Path, submissions: Path, tmp_path: Path
) -> None:
    app = submissions / "one"
    os.mkfifo(app / "pipe")
    (app / "out").symlink_to("/etc/passwd")
    (app / "loop").symlink_to("loop")
    (app / "home").symlink_to(app / "app.js")
    (app / "app.js").chmod(0o4755)
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(app)
        server.bind("sock")
        os.chdir(here)
        prepare(dataset, submissions, tmp_path / "out")
    manifest = read_manifest(tmp_path / "out/sealed", "one")
    assert manifest
    assert {n.path: n.reason for n in manifest.refused} == {
        "pipe": "FIFO", "sock": "socket", "loop": "links in a circle, or more than 40 in a row", "out": "absolute link to '/etc/passwd'"
    }  # fmt: skip
    assert [n.path for n in manifest.altered] == ["app.js", "home"]
    assert (tmp_path / "out/sealed/one/home").readlink() == Path("app.js")


def test_a_second_prepare_takes_what_lies_there_now(dataset: Path, submissions: Path, tmp_path: Path) -> None:
    os.mkfifo(submissions / "one/pipe")
    one = only_case(prepare(dataset, submissions, tmp_path / "out"))
    again = only_case(prepare(dataset, submissions, tmp_path / "out"))
    (submissions / "one/app.js").write_text("let a = 2;")
    after = only_case(prepare(dataset, submissions, tmp_path / "out"))
    assert one == again
    assert one.submission and after.submission and one.submission.digest != after.submission.digest
    assert one.outcome == "unchanged" and after.outcome == "ok"


def test_a_foreign_tree_over_a_cap_is_refused_naming_cap_and_file(
    dataset: Path, submissions: Path, tmp_path: Path
) -> None:
    with (submissions / "one/huge.bin").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match=r"huge\.bin.*remove what is no part"):
        prepare(dataset, submissions, tmp_path / "out")
    assert not (tmp_path / "out/cases.json").exists()


def test_a_copy_never_replaces_the_submissions_themselves(dataset: Path, submissions: Path, tmp_path: Path) -> None:
    os.mkfifo(submissions / "one/pipe")
    theirs = submissions.rename(tmp_path / "sealed")
    with pytest.raises(UsageError, match="choose another --out"):
        prepare(dataset, theirs, tmp_path)
    assert (theirs / "one/pipe").is_fifo()


def test_a_seal_by_hand_refuses_links_out_of_the_tree(submissions: Path) -> None:
    (submissions / "one/away").symlink_to("../../secret")
    with pytest.raises(DataError, match="away may not stay"):
        seal_in_place(submissions / "one", None, who={})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: (s / "one").rename(s / "x") and (s / "one").symlink_to("x"), "is a link"),
        (lambda s: shutil.rmtree(s / "two", ignore_errors=True) or (s / "two").write_text(""), "is no folder"),
        (lambda s: (s / "two").mkdir(), "two is empty; .* count as missing"),
        (lambda s: (s / "two.zip").write_bytes(b"PK"), r"two\.zip is packed; unpack it into .*two"),
        (lambda s: (s / "two.tar.gz").write_bytes(b""), r"two\.tar\.gz is packed"),
    ],
)
def test_a_submission_in_another_form_is_no_missing_one(
    dataset: Path, submissions: Path, tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    spoil(submissions)
    with pytest.raises(DataError, match=message):
        prepare(dataset, submissions, tmp_path / "out")


def test_folders_of_no_case_are_named_with_what_was_probably_meant(
    dataset: Path, submissions: Path, tmp_path: Path
) -> None:
    (submissions / "TWO").mkdir()
    (submissions / "notes").mkdir()
    said: list[str] = []
    prepare(dataset, submissions, tmp_path / "out", progress=said.append)
    assert any("TWO is named after no case" in line and "meant for two?" in line for line in said)
    assert any(line.endswith("notes is named after no case and is not used") for line in said)


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("run", "Did you mean one of .*a__m__1/submissions, .*b__m__1/submissions"),
        ("run/a__m__1", "Did you mean .*a__m__1/submissions"),
        ("run/a__m__1/submissions/one", "one case's folder. Did you mean .*a__m__1/submissions"),
        ("run/a__m__1/submissions/one/src", "lies in one case's folder. Did you mean .*a__m__1/submissions"),
        ("run/a__m__1/trials", "logs of trials. Did you mean .*a__m__1/submissions"),
        ("empty", "It is empty"),
        ("dataset", "Did you mean|inputs, not submissions"),
        ("dataset/cases", "inputs, not submissions"),
        ("alike", "'One' is not case 'one'"),
        ("packed.zip", "unpack it and pass the folder"),
        ("nowhere", "does not exist"),
    ],
)
def test_c8_the_wrong_folder_is_recognised_and_the_right_one_named(
    dataset: Path, submissions: Path, tmp_path: Path, folder: str, message: str
) -> None:
    for entry in ("a__m__1", "b__m__1"):
        shutil.copytree(submissions, tmp_path / "run" / entry / "submissions")
        (tmp_path / "run" / entry / "submissions/one/src").mkdir()
        (tmp_path / "run" / entry / "trials/one/1").mkdir(parents=True)
        (tmp_path / "run" / entry / "journal.jsonl").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "alike/One").mkdir(parents=True)
    (tmp_path / "packed.zip").write_bytes(b"PK")
    with pytest.raises(UsageError, match=message):
        prepare(dataset, tmp_path / folder, tmp_path / "out")
    assert not (tmp_path / "out/cases.json").exists()


def test_entry_json_names_who_made_them_and_is_read_strictly(
    dataset: Path, submissions: Path, tmp_path: Path
) -> None:
    who = {"agent": "a", "model": "m", "harness": "h", "notes": "by hand", "attempt": 2}
    (submissions / "entry.json").write_text(json.dumps(who))
    assert prepare(dataset, submissions, tmp_path / "out").entry == {**who, "reportable": True}
    for wrong, message in (
        ({"agent": 1}, "agent must be a text"), ({"attempt": "2"}, "attempt must be a whole number"),
        ({"attempt": 0}, "from 1"), ({"Agent": "a"}, r"unknown keys \['Agent'\]"), (["a"], "must be an object"),
    ):  # fmt: skip
        (submissions / "entry.json").write_text(json.dumps(wrong))
        with pytest.raises(DataError, match=message):
            prepare(dataset, submissions, tmp_path / "out")


def test_c61_of_96_cases_two_are_missing_in_cases_json_and_in_the_score(
    make_dataset: Callable[..., Path], tmp_path: Path, run_cdb: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ids = [f"case-{number:02d}" for number in range(96)]
    root = make_dataset(dict.fromkeys(ids, APP))
    for case in ids:
        (root / "cases" / case / "rubric.json").write_text(json.dumps(["First."]))
    for case in ids[:94]:
        shutil.copytree(root / "cases" / case / "project", tmp_path / "theirs" / case)
        (tmp_path / "theirs" / case / "app.js").write_text("let a = 2;")
    ended = run_cdb(["prepare", "--dataset", root, "--submissions", tmp_path / "theirs", "--out", tmp_path / "out"])
    assert ended.returncode == 0, ended.stderr
    assert "96 cases, 2 without a submission" in ended.stdout
    outcomes = {case.case: case.outcome for case in read_cases(tmp_path / "out/cases.json").cases}
    assert len(outcomes) == 96 and [case for case, o in outcomes.items() if o == "missing"] == ids[94:]
    lines = [{"case": case, "criterion": 1, "verdict": "PASS" if case in ids[:94] else "FAIL"} for case in ids]
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    scored = run_cdb(
        ["score", "--cases", tmp_path / "out/cases.json", "--results", journal, "--out", tmp_path / "scores.json"]
    )
    assert "94/96 with a submission" in scored.stdout
    assert "every criterion of a missing submission counts as FAIL: case-94, case-95" in scored.stdout
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["submissions"] == {"present": 94, "of": 96, "missing": ids[94:]}
    assert scores["columns"]["witnessed"]["full"]["mean"] == pytest.approx(100 * 94 / 96, abs=0.001)
