"""Preparing looks at every case in scope, submitted or not, and refuses what was changed after sealing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import DataError, UsageError
from bench.submission import seal_in_place
from bench.tree import digest, list_tree
from evaluator.cases import moved, read_cases
from evaluator.prepare import prepare

APP = {"index.html": "<h1>Hi</h1>", "app.js": "let a = 1;"}


@pytest.fixture
def roots(make_dataset: Callable[..., Path], tmp_path: Path) -> tuple[Path, Path]:
    """An evaluation root of three cases and submissions for the first two."""
    root = make_dataset({"one": APP, "two": APP, "three": APP})
    for case in ("one", "two", "three"):
        (root / "cases" / case / "rubric.json").write_text(json.dumps(["First.", "Second."]))
    submissions = tmp_path / "submissions"
    for case in ("one", "two"):
        shutil.copytree(root / "cases" / case / "project", submissions / case)
    (submissions / "two" / "app.js").write_text("let a = 2;")
    return root, submissions


def test_c61_every_case_is_listed_with_what_is_missing(roots: tuple[Path, Path], tmp_path: Path) -> None:
    found = prepare(*roots, tmp_path / "out")
    assert [(c.case, c.submission is not None) for c in found.cases] == [
        ("one", True),
        ("three", False),
        ("two", True),
    ]
    assert found.dataset["criteria"] == 6


def test_a_submission_made_elsewhere_is_sealed_and_said_so(roots: tuple[Path, Path], tmp_path: Path) -> None:
    said: list[str] = []
    found = prepare(*roots, tmp_path / "out", progress=said.append)
    assert len(said) == 2
    assert (roots[1] / "one.manifest.json").is_file()
    assert found.entry == {"agent": "unknown", "model": None, "harness": None, "attempt": 1, "reportable": False}


def test_an_unchanged_submission_is_recognised_by_its_digest(roots: tuple[Path, Path], tmp_path: Path) -> None:
    found = {c.case: c.submission for c in prepare(*roots, tmp_path / "out").cases}
    assert found["one"] and found["one"].changed_files == 0
    assert found["two"] and found["two"].changed_files == 1


@pytest.mark.parametrize("name", ["app.js", "index.html"])
def test_one_byte_changed_in_a_sealed_submission_is_refused_naming_the_file(
    roots: tuple[Path, Path], tmp_path: Path, run_cdb: Callable[..., subprocess.CompletedProcess[str]], name: str
) -> None:
    seal_in_place(roots[1] / "two", None, who={})
    path = roots[1] / "two" / name
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(DataError, match=f"changed: {name}"):
        prepare(*roots, tmp_path / "out")
    ended = run_cdb(["prepare", "--dataset", roots[0], "--submissions", roots[1], "--out", tmp_path / "again"])
    assert ended.returncode == 1
    assert name in ended.stderr
    assert not (tmp_path / "again" / "cases.json").exists()


def test_c8_wrong_folders_are_refused_with_a_hint(roots: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no folder named after a case"):
        prepare(roots[0], tmp_path / "empty", tmp_path / "out")
    with pytest.raises(UsageError, match=f"Did you mean {roots[1]}"):
        prepare(roots[0], roots[1].parent, tmp_path / "out")
    with pytest.raises(UsageError, match="does not exist"):
        prepare(roots[0], tmp_path / "nowhere", tmp_path / "out")


def test_without_a_plan_a_criterion_is_taken_as_one_whole(roots: tuple[Path, Path], tmp_path: Path) -> None:
    case = prepare(*roots, tmp_path / "out").cases[0]
    assert not case.planned
    assert [(p.kind, p.sub_requirements[0].text) for p in case.plan] == [("mixed", "First."), ("mixed", "Second.")]


def test_a_plan_that_does_not_fit_the_rubric_is_refused(roots: tuple[Path, Path], tmp_path: Path) -> None:
    sub = {"id": "a", "text": "x", "core": True}
    plan = {"case": "one", "criteria": [{"criterion_index": 1, "kind": "visual", "sub_requirements": [sub]}]}
    (tmp_path / "plans/one").mkdir(parents=True)
    (tmp_path / "plans/one/plan.json").write_text(json.dumps(plan))
    with pytest.raises(DataError, match=r"plans criteria \[1\], the rubric has \[1, 2\]"):
        prepare(*roots, tmp_path / "out", plans=tmp_path / "plans")


def test_paths_follow_when_the_file_moves(roots: tuple[Path, Path], tmp_path: Path) -> None:
    prepare(*roots, tmp_path / "out")
    cases = read_cases(tmp_path / "out" / "cases.json")
    there = moved(cases, tmp_path / "out", tmp_path / "deep" / "er")
    assert (tmp_path / "deep" / "er" / there.cases[0].project).resolve() == roots[0] / "cases/one/project"


def test_a_subset_says_so(roots: tuple[Path, Path], tmp_path: Path) -> None:
    found = prepare(*roots, tmp_path / "out", only=("two",))
    assert [c.case for c in found.cases] == ["two"]
    assert "subset 1/3" in found.scope["label"]


def test_a_submission_that_is_not_what_its_trial_left_is_flagged_and_not_reportable(
    roots: tuple[Path, Path], tmp_path: Path
) -> None:
    from bench.journal import Journal

    entry = tmp_path / "entry"
    shutil.copytree(roots[1], entry / "submissions")
    (entry / "lock.json").write_text(
        json.dumps({"entry": {"agent": "a", "model": None, "harness": "cdb", "attempt": 1}})
    )
    with Journal(entry / "journal.jsonl") as journal:
        for case in ("one", "two"):
            manifest = seal_in_place(entry / "submissions" / case, None, who={"agent": "a"})
            journal.append({"type": "trial", "case": case, "outcome": "ok", "digest": manifest.digest})
    assert prepare(roots[0], entry / "submissions", tmp_path / "before").entry["reportable"]
    (entry / "submissions/two/app.js").write_text("let a = 'by hand';")
    (entry / "submissions/two.manifest.json").unlink()
    found = prepare(roots[0], entry / "submissions", tmp_path / "after")
    assert not found.entry["reportable"]
    assert {c.case: c.submission.flags for c in found.cases if c.submission} == {"one": [], "two": ["resealed"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [({"case": "other"}, "plan of 'other'"), ({"case": ""}, "plan of ''"), (None, "no plan for one")],
)
def test_plans_that_are_missing_or_of_another_case_are_refused(
    roots: tuple[Path, Path], tmp_path: Path, change: dict[str, str] | None, message: str
) -> None:
    plans = tmp_path / "plans"
    plans.mkdir()
    if change is not None:
        sub = {"id": "a", "text": "x"}
        criteria = [{"criterion_index": n, "kind": "visual", "sub_requirements": [sub]} for n in (1, 2)]
        (plans / "one").mkdir()
        (plans / "one/plan.json").write_text(json.dumps({"criteria": criteria, **change}))
    with pytest.raises((DataError, UsageError), match=message):
        prepare(*roots, tmp_path / "out", plans=plans)


def test_a_submission_no_serve_plan_can_be_thrown_off_by(tmp_path: Path) -> None:
    from evaluator.npm_plan import npm_facts
    from evaluator.serve_plan import learn_plan

    (tmp_path / "index.html").write_text(f'<a href="/{"a" * 5000}">x</a><img src="/\0">')
    assert learn_plan(tmp_path).kind == "static"
    (tmp_path / "package.json").write_text("[" * 100_000)
    assert npm_facts(tmp_path).broken


def test_a_case_the_solve_run_has_not_come_to_is_unscored_and_no_fail(
    roots: tuple[Path, Path], tmp_path: Path
) -> None:
    from bench.journal import Journal

    entry = tmp_path / "runs" / "a__none__1"
    (entry / "submissions").mkdir(parents=True)
    (entry / "lock.json").write_text(json.dumps({"step": "solve", "entry": {"agent": "a", "attempt": 1}}))
    with Journal(entry / "journal.jsonl") as journal:
        journal.append({"type": "run", "step": "solve", "waiting": 3, "done": 0})
        journal.append({"type": "trial", "case": "one", "outcome": "workspace_too_large", "digest": None})
    found = prepare(roots[0], entry / "submissions", tmp_path / "out")
    outcomes = {case.case: (case.outcome, case.trial.outcome if case.trial else None) for case in found.cases}
    assert outcomes["one"] == ("missing", "workspace_too_large")
    assert outcomes["two"] == outcomes["three"] == ("infra_error", "not_started")


def test_c123_one_corrupt_rubric_leaves_the_other_cases_alone_and_the_result_incomplete(
    roots: tuple[Path, Path], tmp_path: Path
) -> None:
    from evaluator.score import score

    (roots[0] / "cases/two/rubric.json").write_bytes(b'["First", \xe2\x28')
    said: list[str] = []
    found = prepare(*roots, tmp_path / "out", progress=said.append)
    broken = {case.case: case.rubric_error for case in found.cases}
    assert [bool(broken[name]) for name in ("one", "two", "three")] == [False, True, False]
    assert any("two" in line and "rubric.json" in line for line in said)
    rows = [
        {"case": case, "criterion_index": n, "verdict": "PASS"} for case in ("one", "three") for n in (1, 2)
    ] + [{"type": "case", "case": "two", "outcome": "infra_error", "reason": "the rubric cannot be read"}]  # fmt: skip
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores = score(found, journal, settings={})
    assert (scores["incomplete"], scores["coverage"]["tasks_scored"], scores["coverage"]["tasks"]) == (True, 2, 3)
    row = next(row for row in scores["cases"] if row["case"] == "two")
    assert (row["outcome"], row["whose"], row["reason"]) == (
        "infra_error",
        "infrastructure",
        "the rubric cannot be read",
    )
    assert scores["columns"]["witnessed"]["strict"]["mean"] == 100.0


def test_every_attachment_comes_with_its_digest_beside_cases_json(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    root = make_dataset({"one": {**APP, "_attachments/a b.txt": "wanted: blue"}}, root="attached")
    (root / "cases/one/rubric.json").write_text(json.dumps(["First."]))
    shutil.copytree(root / "cases/one/project", tmp_path / "made/one")
    first = prepare(root, tmp_path / "made", tmp_path / "out").cases[0].attachments[0]
    assert first.digest == "digests/one/_attachments/a b.txt"
    folder = tmp_path / "out" / first.digest
    assert "wanted: blue" in (folder / "digest.md").read_text()
    assert first.digest_sha256 == digest(list_tree(folder))
    before = (tmp_path / "out/cases.json").read_bytes()
    prepare(root, tmp_path / "made", tmp_path / "out")
    assert (tmp_path / "out/cases.json").read_bytes() == before
    found = moved(read_cases(tmp_path / "out/cases.json"), tmp_path / "out", tmp_path / "deep/er")
    there = found.cases[0].attachments[0].digest
    assert there and (tmp_path / "deep/er" / there).resolve() == folder.resolve()
