"""C8: a wrong folder is named by every verb, with what is missing, for how many cases, and the likely right one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_archives import SOLVER, tiny_release

from bench.errors import CdbError, DataError, UsageError
from bench.release import extract, open_release
from bench.task import open_dataset, open_solver_inputs
from bench.wrong_folder import no_root_hint


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """`release`, `work` with both roots (rubrics on the evaluator's side only), `empty` and `file`."""
    extract(open_release(tiny_release(tmp_path / "release")), tmp_path / "work")
    (tmp_path / "work/evaluation-inputs/cases/one/rubric.json").write_text('["First."]')
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere", "does not exist"),
        ("empty", "holds no cases/ folder"),
        ("file", "is a file"),
        ("release", "it is a release. Extract it with `cdb dataset extract"),
        (f"release/{SOLVER}", "is a file"),
        ("work/solver-inputs/cases", "Did you mean {}/work/solver-inputs?"),
        ("work/solver-inputs/cases/one", "Did you mean {}/work/solver-inputs?"),
        ("work/solver-inputs/cases/one/project", "Did you mean {}/work/solver-inputs?"),
        ("work/evaluation-inputs/cases", "Did you mean {}/work/evaluation-inputs?"),
        ("work/solver-inputs/cases/one/project/src/deep", "Did you mean {}/work/solver-inputs?"),
        ("work", "Did you mean {}/work/"),
        (".", "Did you mean {}/"),
    ],
)
def test_c8_no_root(places: Path, given: str, message: str) -> None:
    (places / "work/solver-inputs/cases/one/project/src/deep").mkdir(parents=True)
    with pytest.raises(UsageError) as caught:
        open_dataset(places / given)
    assert message.replace("{}", str(places)) in str(caught.value)
    assert str(places / given) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere", "no such folder"),
        ("empty", "it has no manifest.json"),
        ("work", "Did you mean {}/release?"),
        ("work/solver-inputs", "extracted root with 1 cases"),
        (f"release/{SOLVER}", "Did you mean {}/release?"),
        (".", "Did you mean {}/release?"),
    ],
)
def test_c8_no_release(places: Path, given: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_release(places / given)
    assert message.replace("{}", str(places)) in str(caught.value)


def test_c8_a_download_cache_is_looked_into(places: Path) -> None:
    snapshot = places / "empty/datasets--org--name/snapshots/0123"
    snapshot.parent.mkdir(parents=True)
    shutil.move(places / "release", snapshot)
    with pytest.raises(UsageError, match=f"Did you mean {snapshot}"):
        open_release(places / "empty")


def test_c8_folders_that_may_not_be_read_are_passed_by(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root reads everything, so the refusal is played."""
    plain = Path.is_file

    def denied(path: Path) -> bool:
        if "a-private" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path)

    (places / "a-private").mkdir()
    monkeypatch.setattr(Path, "is_file", denied)
    with pytest.raises(UsageError, match=f"Did you mean {places}/release"):
        open_release(places)


def test_c8_a_release_whose_manifest_is_gone_says_so(places: Path) -> None:
    (places / "release/manifest.json").unlink()
    with pytest.raises(UsageError, match=rf"it has no manifest\.json, though it has {SOLVER}.*download"):
        open_release(places / "release")


def test_c8_solving_is_never_given_the_evaluators_root(places: Path) -> None:
    assert len(open_solver_inputs(places / "work/solver-inputs").tasks) == 1
    with pytest.raises(
        UsageError, match=f"for the evaluator only: 1 files.*Did you mean {places}/work/solver-inputs"
    ):
        open_solver_inputs(places / "work/evaluation-inputs")


def test_c8_each_side_is_pointed_to_its_own_root(places: Path) -> None:
    with pytest.raises(UsageError, match=f"Did you mean {places}/work/solver-inputs"):
        open_solver_inputs(places / "work")
    with pytest.raises(UsageError, match=f"Did you mean {places}/work/evaluation-inputs"):
        open_dataset(places / "work")


def test_c8_folders_that_are_no_cases_are_counted(tmp_path: Path) -> None:
    for case in ("one", "two"):
        (tmp_path / "root/cases" / case / "src").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"2 of 2 cases in .*cases lack files: first .*one/project"):
        open_dataset(tmp_path / "root")
    assert "Did you mean" not in no_root_hint(tmp_path / "root", "")
    (tmp_path / "root/cases/two/project").mkdir()
    (tmp_path / "root/cases/two/user_queries.json").write_text('[{"text": "x"}]')
    with pytest.raises(DataError, match="1 of 2 cases"):
        open_dataset(tmp_path / "root")


@pytest.mark.parametrize(
    "card",
    [
        '{"name": "x", "case_ids": [], "criteria": 1}',
        '{"name": "x", "case_ids": ["one", "one"], "criteria": 1}',
        '{"name": "x", "case_ids": ["one", "gone"], "criteria": 1}',
        '{"name": "x"}',
        "[]",
        "no JSON",
    ],
)
def test_c8_a_card_that_declares_nothing_useful_is_never_an_empty_run(places: Path, card: str) -> None:
    root = places / "work/solver-inputs"
    (root / "dataset.json").write_text(card)
    with pytest.raises(CdbError, match=r"extract (the release )?again"):
        open_dataset(root)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["solve", "--agent", "noop", "--out", "{}/r", "--dataset", "{}/work/evaluation-inputs"], "Did you mean {}/work/solver-inputs"),
        (["solve", "--agent", "noop", "--out", "{}/r", "--dataset", "{}/release"], "dataset extract"),
        (["solve", "--agent", "noop", "--out", "{}/r", "--dataset", "{}/empty"], "no cases/ folder"),
        (["prepare", "--submissions", "{}/subs", "--out", "{}/o", "--dataset", "{}/work/solver-inputs"],
         "1 of 1 cases under {}/work/solver-inputs have no rubric.json"),
        (["prepare", "--submissions", "{}/subs", "--out", "{}/o", "--dataset", "{}/work/evaluation-inputs/cases"],
         "Did you mean {}/work/evaluation-inputs?"),
        (["prepare", "--submissions", "{}/subs", "--out", "{}/o", "--dataset", "{}/empty"], "no cases/ folder"),
        (["dataset", "verify", "{}/work/solver-inputs"], "extracted root"),
        (["dataset", "info", "{}/work"], "Did you mean {}/release?"),
        (["dataset", "extract", "{}/empty", "--out", "{}/o"], "no release"),
    ],
    ids=lambda value: " ".join([*value[:2], value[-1]]) if isinstance(value, list) else None,
)  # fmt: skip
def test_c8_every_verb_refuses_and_writes_nothing(
    places: Path, run_cdb: Callable[..., subprocess.CompletedProcess[str]], arguments: list[str], says: str
) -> None:
    shutil.copytree(places / "work/solver-inputs/cases/one/project", places / "subs/one")
    ended = run_cdb([part.replace("{}", str(places)) for part in arguments], deadline_s=60)
    assert ended.returncode == 2, ended.stderr
    assert says.replace("{}", str(places)) in ended.stderr
    assert not (places / "o").exists()
    assert not (places / "r").exists()
