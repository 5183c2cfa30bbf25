"""Judges of every character on an application of the sample, witnesses really run in a Chromium.

`witnessed` must hold whatever the judge is like: a judge that claims everything keeps nothing that does not replay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from fakes.model_server import ModelServer, tool
from judge_desk import NoBrowser

from evaluator.applications import Applications
from evaluator.browser import AppBrowser
from evaluator.cases import Case, CriterionText
from evaluator.criterion import Stage, judge_criterion
from evaluator.judges.judge import Exhibits
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.litellm_chat import LiteLlmChat
from evaluator.judges.model.refuter import ModelRefuter
from evaluator.judges.model.settings import Caps, ModelSettings
from evaluator.plans import plan_case
from evaluator.records import CriterionPlan, CriterionRecord
from evaluator.rubric import read_rubric
from evaluator.start_replays import StartReplays
from evaluator.try_witness import local_browser, prepare, serve

pytestmark = [pytest.mark.browser, pytest.mark.timeout(280)]
REPOSITORY = Path(__file__).parents[3]
SOURCES = REPOSITORY / "harness/sample/cases/plant-shop"
TRUTH = REPOSITORY / "evaluator/sample/cases/plant-shop"
CHANGES = (1, 2, 3)
VACUOUS = {"schema": "cdb.witness/1", "steps": [{"expect": "visible", "target": {"label": "Search plants"}}]}
WEAK = {  # something the start lacks, and beside the point
    1: {"expect": "visible", "target": {"role": "button", "name_matches": "^Saved"}},
    2: {"expect": "visible", "target": {"role": "progressbar"}},
    3: {"expect": "visible", "target": {"label": "Promo code"}},
}
OPEN_CART = [
    {"do": "click", "target": {"role": "button", "name": "Add Monstera to cart"}},
    {"do": "click", "target": {"role": "button", "name_matches": "^Cart"}},
]
NOTE = {"expect": "text", "target": {"css": ".delivery-note"}, "contains": "€22.00"}
COUNTER = {  # each holds on the stub and shows what is wrong with it
    1: [
        {"do": "click", "target": {"role": "button", "name_matches": "^Save ", "nth": 2}},
        {"do": "wait", "ms": 300},
        {"expect": "text", "target": {"css": "#saved-count"}, "equals": "2"},
    ],
    2: [*OPEN_CART, NOTE, {"do": "click", "target": {"role": "button", "name": "One Monstera more"}}, NOTE],
    3: [
        *OPEN_CART,
        {"do": "fill", "target": {"label": "Promo code"}, "text": "NONSENSE"},
        {"do": "click", "target": {"role": "button", "name": "Apply"}},
        {"expect": "visible", "target": {"css": "#sum-discount"}},
    ],
}


@dataclass
class Shop:
    """One version of the plant shop, served, beside its start."""

    submission: AppBrowser
    start: AppBrowser
    start_seen: StartReplays
    tree: Path


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Shop]]:
    folder = tmp_path_factory.mktemp("shops")
    trees = {"start": prepare(SOURCES / "project", folder / "start")}
    for name in ("gold", "stub"):
        trees[name] = prepare(SOURCES / "project", folder / name, SOURCES / f"edits/{name}.patch")
    seen = StartReplays(folder / "seen", "plant-shop")
    with (
        serve(trees["start"]) as start, serve(trees["gold"]) as gold, serve(trees["stub"]) as stub,
        local_browser(start) as browser,
    ):  # fmt: skip
        found = {}
        for name, address in (("gold", gold), ("stub", stub)):
            found[name] = Shop(AppBrowser(browser.browser, address), browser, seen, trees[name])
        yield found


def recorded(index: int) -> dict[str, Any]:
    listed = json.loads((TRUTH / "witnesses.json").read_text())["witnesses"]
    return {one["sub"]: one["witness"] for one in listed if one["criterion_index"] == index}


@dataclass
class Court:
    """Judges criteria of one shop with scripted models."""

    server: ModelServer
    shop: Shop
    results: Path

    def judged(
        self, index: int, claims: list[dict[str, Any]], refutations: list[dict[str, Any]] | None = None
    ) -> CriterionRecord:
        self.server.play({"scenarios": {
            "judge": {"turns": [[tool("verdict", claims=claims)]] * 3},
            "refuter": {"turns": [[tool("verdict", refutations=refutations or [])]] * 3},
        }})  # fmt: skip
        criteria = read_rubric(TRUTH)
        plan = plan_case("plant-shop", criteria, None)[0].criteria[index - 1]
        text = CriterionText(criterion_index=index, rubric_id=f"r{index}", criterion=criteria[index - 1].text)
        case = self._case(text, plan)
        exhibits = Exhibits(
            case, self.shop.tree, SOURCES / "project", NoBrowser(), self.results / "evidence/plant-shop"
        )
        ledger = Ledger(Caps())
        judge = ModelJudge("litellm", self._chat("judge"), ledger).in_case(exhibits)
        refuter = ModelRefuter(self._chat("refuter"), ledger).in_case(exhibits) if refutations else None
        stage = Stage(cast(Applications, self.shop), self.results, exhibits.folder / f"{index:02d}")
        return judge_criterion(case, text, plan, judge, stage, refuter)

    def _chat(self, name: str) -> LiteLlmChat:
        return LiteLlmChat(ModelSettings(
            model=f"openai/{name}", api_base=f"{self.server.address}/v1", key_env="CDB_TEST_KEY", vision=False,
        ))  # fmt: skip

    def _case(self, text: CriterionText, plan: CriterionPlan) -> Case:
        return Case.model_validate({
            "case": "plant-shop", "request": "Please.", "attachment": "none", "attachments": [], "annotation": None,
            "project": "start", "start_digest": "sha256:0", "serve_plan": None, "criteria": [text.model_dump()],
            "plan": [plan.model_dump()], "planned": True,
        })  # fmt: skip


@pytest.fixture
def court(model_server: ModelServer, shops: dict[str, Shop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CDB_TEST_KEY", "sk-test")
    return lambda name: Court(model_server, shops[name], tmp_path)


def subs(index: int) -> list[str]:
    plan = json.loads((TRUTH / "plan.json").read_text())["criteria"][index - 1]
    return [sub["id"] for sub in plan["sub_requirements"]]


def claims(index: int, witnesses: Any) -> list[dict[str, Any]]:
    return [{"sub": sub, "holds": True, "witness": witnesses(sub), "reason": "It does."} for sub in subs(index)]


@pytest.mark.parametrize("index", [1, 2, 3, 4])
def test_a_perfect_judge_gives_gold_everything(court: Any, index: int) -> None:
    record = court("gold").judged(index, claims(index, recorded(index).get))
    assert [column.verdict for column in record.columns.values()] == ["PASS"] * 3


@pytest.mark.parametrize("index", CHANGES)
def test_a_judge_that_passes_all_keeps_nothing_of_a_stub(court: Any, index: int) -> None:
    record = court("stub").judged(index, claims(index, recorded(index).get))
    assert (record.columns["judge"].verdict, record.verdict) == ("PASS", "FAIL")


@pytest.mark.parametrize("index", CHANGES)
def test_c99_a_gullible_judge_with_vacuous_witnesses_keeps_nothing(court: Any, index: int) -> None:
    record = court("stub").judged(index, claims(index, lambda _sub: VACUOUS))
    assert (record.columns["judge"].verdict, record.verdict) == ("PASS", "FAIL")
    assert record.columns["witnessed"].rule == "vacuous"


@pytest.mark.parametrize("index", CHANGES)
def test_a_lazy_judge_keeps_nothing_even_on_gold(court: Any, index: int) -> None:
    record = court("gold").judged(index, claims(index, lambda _sub: None))
    assert (record.columns["card"].verdict, record.verdict) == ("PASS", "FAIL")


def test_a_judge_that_fails_all_gives_nothing(court: Any) -> None:
    given = [{**claim, "holds": False} for claim in claims(1, recorded(1).get)]
    record = court("gold").judged(1, given)
    assert (record.verdict, record.flags) == ("FAIL", ["attempt_holds"])


def weak(index: int) -> dict[str, Any]:
    steps = [WEAK[index]] if index == 1 else [*OPEN_CART, WEAK[index]]
    return {"schema": "cdb.witness/1", "steps": steps}


def refuted(index: int) -> list[dict[str, Any]]:
    counter = {"schema": "cdb.witness/1", "steps": COUNTER[index]}
    core = {"sub": "a", "outcome": "downgrade", "reason": "it changes nothing", "counter": counter}
    return [core, *({"sub": sub, "outcome": "uphold", "reason": "it stands"} for sub in subs(index)[1:])]


@pytest.mark.parametrize("index", CHANGES)
def test_a_weak_judge_keeps_its_credit_on_a_stub_without_a_refuter_and_loses_it_to_a_competent_one(
    court: Any, index: int
) -> None:
    given = claims(index, lambda _sub: weak(index))
    assert court("stub").judged(index, given).verdict == "PASS"  # known: why a refuter is wanted
    record = court("stub").judged(index, given, refuted(index))
    assert (record.verdict, record.columns["witnessed"].rule) == ("FAIL", "counter_witness")


def test_the_same_counter_witness_does_not_lower_the_right_application(court: Any) -> None:
    record = court("gold").judged(1, claims(1, recorded(1).get), refuted(1))
    assert (record.columns["card"].verdict, record.verdict) == ("FAIL", "PASS")
