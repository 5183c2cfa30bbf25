"""A person's `serve.json` overrules detection, for the start and for every submission."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import DataError
from evaluator.cases import read_cases, what_is_judged, write_cases
from evaluator.prepare import prepare
from evaluator.serve_file import plan_of
from evaluator.serve_plan import Fitted, fitted

SERVE = {"kind": "npm", "build": ["make", "pages"], "output": "www", "env": {"LANGUAGE": "en"}}


@pytest.fixture
def project(make_dataset: Callable[..., Path]) -> Path:
    return make_dataset({"shop": {"index.html": "<h1>Shop"}}) / "cases" / "shop" / "project"


def test_without_the_file_the_plan_is_learned(project: Path) -> None:
    assert (plan_of(project).kind, plan_of(project).by_hand) == ("static", False)


def test_the_file_is_the_plan_and_no_tree_changes_it(project: Path, tmp_path: Path) -> None:
    (project.parent / "serve.json").write_text(json.dumps(SERVE))
    plan = plan_of(project)
    assert (plan.kind, plan.build, plan.output, plan.env) == ("npm", ["make", "pages"], "www", {"LANGUAGE": "en"})
    assert plan.by_hand
    assert fitted(plan, tmp_path / "anything") == Fitted(plan, "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**SERVE, "folder": "x"}, "folder: Extra inputs"),
        ({"output": "www"}, "kind: Field required"),
        ([], "Extra inputs|the file"),
        ({**SERVE, "output": "../../etc"}, "output leads out"),
        ({**SERVE, "root": "/etc"}, "root leads out"),
        ({"kind": "npm", "build": ["x"]}, "needs `output`"),
        ({"kind": "static", "build": ["x"]}, "write kind npm"),
        ("{", "not strict JSON"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_fault(project: Path, content: object, said: str) -> None:
    file = project.parent / "serve.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(DataError, match=said) as error:
        plan_of(project)
    assert str(file) in str(error.value)


def test_prepare_takes_it_and_the_lock_of_a_judging_names_it(project: Path, tmp_path: Path) -> None:
    rubric = [{"rubric_id": "r1", "criterion": "The heading is red."}]
    (project.parent / "rubric.json").write_text(json.dumps(rubric))
    (project.parent / "serve.json").write_text(json.dumps(SERVE))
    (tmp_path / "submissions" / "shop").mkdir(parents=True)
    (tmp_path / "submissions" / "shop" / "index.html").write_text("<h1>Shop")
    cases = prepare(project.parents[2], tmp_path / "submissions", tmp_path / "out")
    plan = cases.cases[0].serve_plan
    assert plan is not None and plan.by_hand and plan.output == "www"
    assert what_is_judged(cases)["serve_plans_by_hand"]["shop"]["output"] == "www"


def test_a_plan_edited_in_cases_json_is_taken_as_it_is(project: Path, tmp_path: Path) -> None:
    (project.parent / "rubric.json").write_text(json.dumps([{"rubric_id": "r1", "criterion": "The heading is red."}]))
    (tmp_path / "submissions" / "shop").mkdir(parents=True)
    (tmp_path / "submissions" / "shop" / "index.html").write_text("<h1>Shop")
    cases = prepare(project.parents[2], tmp_path / "submissions", tmp_path / "out")
    assert "serve_plans_by_hand" not in what_is_judged(cases)
    path = tmp_path / "out" / "cases.json"
    content = json.loads(path.read_text())
    content["cases"][0]["serve_plan"] |= {"entry": "admin/", "by_hand": True}
    path.write_text(json.dumps(content))
    edited = read_cases(path).cases[0].serve_plan
    assert edited is not None and fitted(edited, project) == Fitted(edited, "")
    write_cases(read_cases(path), path)
