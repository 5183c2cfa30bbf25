"""Criterion plans: made once, blind to submissions, held to the rubric, frozen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import ModelServer, say, tool

from bench.errors import DataError, UsageError
from evaluator.judges.catalogue import find_chat
from evaluator.plan_maker import make_plans
from evaluator.plans import plan_case
from evaluator.rubric import read_rubric

SUB = {"id": "a", "text": "The total follows.", "core": True}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer({"turns": []}) as running:
        yield running


@pytest.fixture
def dataset(make_dataset: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> Path:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.address}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    root = make_dataset({"shop": {"index.html": "<h1>Shop</h1>"}})
    (root / "cases/shop/rubric.json").write_text('["The total follows.", "The search still works."]')
    return root


def planned(*kinds: str, first: int = 1) -> list[dict[str, Any]]:
    criteria = [
        {"criterion_index": first + n, "kind": kind, "sub_requirements": [SUB]} for n, kind in enumerate(kinds)
    ]
    return [tool("plan", criteria=criteria)]


def test_a_model_plans_each_case_once_and_sees_no_submission(
    dataset: Path, server: ModelServer, tmp_path: Path
) -> None:
    server.play({"turns": [[tool("read_file", path="index.html")], planned("behaviour", "preservation")]})
    done = make_plans(dataset, tmp_path / "plans", find_chat("openai/planner"))
    assert (done.made, done.kept, done.failed) == (("shop",), (), {})
    assert "The search still works." in server.requests()[1]["body"]
    plan, found = plan_case("shop", read_rubric(dataset / "cases/shop"), tmp_path / "plans")
    assert (found, [part.kind for part in plan.criteria]) == (True, ["behaviour", "preservation"])
    calls = len(server.requests())
    again = make_plans(dataset, tmp_path / "plans", find_chat("openai/planner"))
    assert (again.made, again.kept, again.sha256) == ((), ("shop",), done.sha256)
    assert len(server.requests()) == calls


@pytest.mark.parametrize(
    "wrong",
    [planned("behaviour"), planned("behaviour", "behaviour", "behaviour"), planned("behaviour", "pass"),
     planned("behaviour", "mixed", first=2), [say("Here is my plan.")],
     [tool("plan", criteria=[{"criterion_index": n, "kind": "mixed", "sub_requirements": [SUB | {"core": False}]} for n in (1, 2)])]],
    ids=["one-short", "one-more", "bad-kind", "other-indexes", "prose", "no-core"],
)  # fmt: skip
def test_a_plan_that_does_not_fit_the_rubric_is_asked_for_again_and_never_written(
    dataset: Path, server: ModelServer, tmp_path: Path, wrong: list[Any]
) -> None:
    server.play({"turns": [wrong] * 4})
    done = make_plans(dataset, tmp_path / "plans", find_chat("openai/planner"))
    assert list(done.failed) == ["shop"]
    assert not (tmp_path / "plans/shop/plan.json").exists()
    server.play({"turns": [wrong, planned("behaviour", "preservation")]})
    assert make_plans(dataset, tmp_path / "plans", find_chat("openai/planner")).made == ("shop",)


def test_a_frozen_plan_that_is_touched_is_refused(dataset: Path, server: ModelServer, tmp_path: Path) -> None:
    server.play({"turns": [planned("behaviour", "preservation")]})
    make_plans(dataset, tmp_path / "plans", find_chat("openai/planner"))
    path = tmp_path / "plans/shop/plan.json"
    path.write_text(path.read_text().replace("behaviour", "visual"))
    with pytest.raises(DataError, match="is not the plan that was frozen"):
        plan_case("shop", read_rubric(dataset / "cases/shop"), tmp_path / "plans")


def test_plans_by_hand_need_no_model_and_must_fit(dataset: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/mixed/visual/' \"$1\"\n")
    editor.chmod(0o755)
    done = make_plans(dataset, tmp_path / "plans", None, editor=str(editor))
    assert done.made == ("shop",)
    plan, _ = plan_case("shop", read_rubric(dataset / "cases/shop"), tmp_path / "plans")
    assert [part.kind for part in plan.criteria] == ["visual", "visual"]
    editor.write_text("#!/bin/sh\necho '{}' > \"$1\"\n")
    with pytest.raises(UsageError, match="is no plan of this case"):
        make_plans(dataset, tmp_path / "plans", None, editor=str(editor))
    assert json.loads((tmp_path / "plans/shop/plan.json").read_text())["case"] == "shop"


def test_the_verb_plans_freezes_and_prepare_takes_the_plans(
    dataset: Path, server: ModelServer, tmp_path: Path, run_cdb: Callable[..., Any]
) -> None:
    nobody = run_cdb(["plan", "--dataset", dataset, "--out", tmp_path / "plans"])
    assert (nobody.returncode, "who plans?" in nobody.stderr) == (2, True)
    server.play({"turns": [planned("behaviour", "preservation")]})
    verb = ["plan", "--dataset", dataset, "--out", tmp_path / "plans", "--model", "openai/planner", "--json"]
    ended = run_cdb(verb)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert (told["made"], told["usage"]["calls"], told["sha256"][:7]) == (["shop"], 1, "sha256:")
    (tmp_path / "submissions/shop").mkdir(parents=True)
    (tmp_path / "submissions/shop/index.html").write_text("<h1>Other shop</h1>")
    inputs = ["--dataset", dataset, "--submissions", tmp_path / "submissions", "--out", tmp_path / "evaluation"]
    ended = run_cdb(["prepare", *inputs, "--plans", tmp_path / "plans"])
    assert ended.returncode == 0, ended.stderr
    [case] = json.loads((tmp_path / "evaluation/cases.json").read_text())["cases"]
    assert (case["planned"], [part["kind"] for part in case["plan"]]) == (True, ["behaviour", "preservation"])
    (tmp_path / "plans/shop/plan.json").write_text((tmp_path / "plans/shop/plan.json").read_text() + "\n")
    ended = run_cdb(["prepare", *inputs, "--plans", tmp_path / "plans"])
    assert (ended.returncode, "is not the plan that was frozen" in ended.stderr) == (1, True)
