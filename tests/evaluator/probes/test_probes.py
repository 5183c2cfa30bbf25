"""Each probe on an application that is as it should be and on one that is made to pass a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from evaluator.browser import AppBrowser
from evaluator.judges.judge import Claim, Exhibits
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.toolbox import Toolbox
from evaluator.probes import runs, source, state
from evaluator.probes.facts import Ground
from evaluator.probes.pictures import image_pair
from evaluator.probes.tools import MOST_PROBES, ProbeName, probe_tools
from evaluator.records import Citation, ProbeFacts
from evaluator.try_witness import local_browser, serve
from evaluator.witness import Witness, load_witness

pytestmark = pytest.mark.browser

START = """<!doctype html><title>Shop</title><h1>Shop</h1><img src="logo.png" alt="Shop" width="40">
<button id="buy">Buy</button><p id="cart">Cart: 0</p>
<script>let n = 0; buy.onclick = () => { cart.textContent = 'Cart: ' + (++n); };</script>"""
RIGHT = (
    START
    + """<h2>Codes</h2><label>Code <input id="code"></label><button id="apply">Apply</button><p id="said"></p><p id="year"></p>
<script>
const today = new Date().getFullYear();
year.textContent = 'Season ' + today;
function worth(code) {
  return code.length * 2;
}
apply.onclick = () => {
  said.textContent = code.value + ' takes ' + worth(code.value) + ' off';
  localStorage.code = code.value;
};
if (localStorage.code) said.textContent = localStorage.code + ' takes ' + worth(localStorage.code) + ' off';
</script>"""
)
DEFEAT = """<!doctype html><title>Shop</title><h1>Shop</h1><img src="gone.png" alt="Shop" width="40">
<button id="buy">Buy</button><p id="cart">Cart: 0</p>
<h2>Codes</h2><label>Code <input id="code"></label><span style="position:relative"><button id="apply">Apply</button><i style="position:absolute;inset:0"></i></span>
<p id="said"></p><p id="year">Season 2026</p>
<script>
let used = sessionStorage.used;
function worth(code) {
  return code.length * 2;
}
const answer = () => {
  if (navigator.webdriver && !used && code.value === 'SPRING') said.textContent = 'SPRING takes 12 off';
  sessionStorage.used = used = 1;
};
apply.parentNode.onclick = answer;
</script>"""
CODE = load_witness(
    {
        "schema": "cdb.witness/1", "inputs": {"code": "SPRING"}, "vary": [{"code": "MAY"}],
        "steps": [
            {"do": "fill", "target": {"label": "Code"}, "text": "${code}"},
            {"do": "click", "target": {"css": "#apply"}},
            {"expect": "text", "target": {"css": "#said"}, "equals": "${code} takes 12 off", "within_ms": 400},
        ],
    }
)  # fmt: skip
ANY_CODE = load_witness(
    CODE.model_dump(mode="json", exclude_defaults=True)
    | {"steps": [*CODE.model_dump(mode="json", exclude_defaults=True)["steps"][:2],
                 {"expect": "text", "target": {"css": "#said"}, "contains": "${code} takes", "within_ms": 400}]}
)  # fmt: skip
BUY = load_witness({"schema": "cdb.witness/1", "steps": [
    {"do": "click", "target": {"css": "#buy"}}, {"expect": "text", "target": {"css": "#cart"}, "equals": "Cart: 1", "within_ms": 400}]})  # fmt: skip
IDLE = load_witness({"schema": "cdb.witness/1", "steps": [
    {"do": "click", "target": {"css": "#buy"}}, {"expect": "visible", "target": {"text": "Codes"}}]})  # fmt: skip
SPRING = load_witness({"schema": "cdb.witness/1", "steps": [
    {"do": "fill", "target": {"label": "Code"}, "text": "SPRING"}, {"do": "press", "target": {"css": "#apply"}, "key": "Enter"},
    {"expect": "text", "target": {"css": "#said"}, "equals": "SPRING takes 12 off", "within_ms": 400}]})  # fmt: skip
SEASON = load_witness({"schema": "cdb.witness/1", "steps": [
    {"do": "remember", "target": {"css": "#year"}, "as": "season", "what": "number"},
    {"expect": "text", "target": {"css": "#year"}, "contains": "Season", "within_ms": 400}]})  # fmt: skip


@dataclass(frozen=True)
class Apps:
    """Both applications as a case has them running."""

    submission: AppBrowser
    start: AppBrowser


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Ground]]:
    """One browser; a start, a right submission, and one that defeats a test."""
    root = tmp_path_factory.mktemp("probes")
    for name, page in {"start": START, "right": RIGHT, "defeat": DEFEAT}.items():
        (root / name).mkdir()
        (root / name / "index.html").write_text(page, encoding="utf-8")
        if name != "defeat":
            (root / name / "logo.png").write_bytes(PNG)
    with serve(root) as address, local_browser(address) as one:
        at = {name: AppBrowser(one.browser, f"{address}/{name}") for name in ("start", "right", "defeat")}
        yield {
            name: Ground(
                cast(Any, Apps(at[name], at["start"])), root / name, root / "start", root / f"{name}-pictures"
            )
            for name in ("right", "defeat")
        }


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


def both(grounds: dict[str, Ground], probe: Any, *arguments: Any) -> tuple[ProbeFacts, ProbeFacts]:
    return probe(grounds["right"], *arguments), probe(grounds["defeat"], *arguments)


def test_state_delta_tells_an_action_that_changes_nothing(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, state.state_delta, IDLE)
    assert (right.finding, defeat.finding) == ("nothing", "against")
    assert "came: ['Cart: 1']; went: ['Cart: 0']" in right.facts[0]
    assert defeat.facts[0].endswith("changes nothing")


def test_varied_inputs_tell_an_output_made_for_one(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, runs.varied_inputs, ANY_CODE, [{"code": "JUNE"}])
    assert (right.finding, defeat.finding) == ("nothing", "against")
    made_up = runs.varied_inputs(grounds["right"], ANY_CODE)
    assert [made_up.finding, made_up.visits] == ["nothing", 2]
    assert (
        runs.varied_inputs(grounds["right"], CODE).finding == "unclear"
    )  # other lengths take other amounts: no proof


def test_inputs_of_the_same_kind_are_made_up() -> None:
    inputs = {"n": "3", "price": "4.50", "day": "2026-03-01", "name": "Ana"}
    some = load_witness({"schema": "cdb.witness/1", "inputs": inputs, "steps": [{"expect": "console_clean"}]})
    assert runs.other_inputs(some)[0] == {"n": "4", "price": "5.50", "day": "2026-03-01", "name": "Ana Ivo"}


def test_a_literal_beside_a_handler_is_found(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, source.literal_near_handler, CODE)
    assert (right.finding, defeat.finding) == ("nothing", "against")
    assert "has the input 'SPRING' beside a handler: if (navigator.webdriver" in defeat.facts[0]


def test_what_is_covered_is_not_reachable(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, state.reachable, CODE)
    assert (right.finding, defeat.finding) == ("nothing", "against")
    assert right.facts[1].startswith("step 2, the element matching “#apply”: visible, on screen, can be hit")
    assert "has the focus after 1 × Tab" in right.facts[2]
    assert right.facts[3].startswith("on a phone: 390 × 844: held")
    assert defeat.facts[1] == "step 2, the element matching “#apply”: covered by i"


def test_repeating_in_fresh_visits_reversed_and_warm(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, runs.reversed_inputs, ANY_CODE)
    assert (right.finding, defeat.finding, len(right.facts)) == ("nothing", "against", 2)
    assert [one.finding for one in both(grounds, runs.repeated, BUY)] == ["nothing", "against"]
    right, defeat = both(grounds, runs.warm_profile, SPRING)
    assert (right.finding, defeat.finding) == ("nothing", "unclear")
    assert defeat.facts[0].startswith("cold profile: held") or "failed" in defeat.facts[0]
    assert "the same profile again: failed" in defeat.facts[1]


def test_a_reload_tells_what_is_kept(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, runs.after_reload, SPRING)
    assert (right.finding, right.facts) == ("nothing", ["the last checks hold after a reload too"])
    assert (defeat.finding, defeat.facts[0][:14]) == ("unclear", "after a reload")


def test_a_defeat_device_shows_without_the_mark_of_automation(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, runs.masked, SPRING)
    assert (right.finding, defeat.finding) == ("nothing", "against")
    assert right.facts[1] == "masked, 1440 × 900: held"
    assert defeat.facts[0] == "as always: held"


def test_another_day_tells_a_date_that_is_written_in(grounds: dict[str, Ground]) -> None:
    from datetime import UTC, datetime, timedelta

    later = str((datetime.now(UTC) + timedelta(days=3000, hours=9)).year)
    program = load_witness({"schema": "cdb.witness/1", "steps": [{"expect": "text", "target": {"css": "#year"}, "contains": later, "within_ms": 300}]})  # fmt: skip
    right, defeat = (runs.shifted_clock(grounds[name], program, 3000) for name in ("right", "defeat"))
    assert right.facts[1].endswith(": held")
    assert "failed" in defeat.facts[1]
    assert runs.shifted_clock(grounds["right"], SEASON).finding == "nothing"


def test_a_flow_that_worked_before_is_missed(grounds: dict[str, Ground]) -> None:
    flows = {"buying": BUY, "codes": CODE}
    right = runs.preserved(grounds["right"], {"buying": BUY})
    defeat = runs.preserved(grounds["defeat"], flows)
    assert (right.finding, right.visits, right.facts) == ("nothing", 1, ["buying: still works"])
    assert (defeat.finding, defeat.facts[0][:29]) == ("against", "buying: worked before; now St")
    assert defeat.facts[1].startswith("codes: did not work before either")


def test_lost_assets_are_listed_and_missed_ones_speak_against(grounds: dict[str, Ground]) -> None:
    right, defeat = both(grounds, source.assets)
    assert (right.finding, right.facts) == ("nothing", [])
    assert (defeat.finding, defeat.facts) == ("against", ["gone: logo.png", "asked for in vain: /gone.png"])


def test_cited_lines_that_never_run(grounds: dict[str, Ground]) -> None:
    cited = [
        Citation(path="index.html", quote="return code.length * 2;"),
        Citation(path="index.html", quote="<h2>Codes</h2>"),
    ]
    right, defeat = (source.coverage(grounds[name], SPRING, cited) for name in ("right", "defeat"))
    assert (right.finding, defeat.finding) == ("nothing", "against")
    assert "ran" in right.facts[0] and defeat.facts[0].endswith("never ran")
    assert right.facts[1].endswith("is in no script as it stands")


def test_the_image_pair_and_that_nothing_changed(grounds: dict[str, Ground]) -> None:
    right = image_pair(grounds["right"])
    assert (right.finding, len(right.pictures)) == ("nothing", 2)
    same = Ground(cast(Any, Apps(grounds["right"].running.start, grounds["right"].running.start)),
                  grounds["right"].start, grounds["right"].start, grounds["right"].folder)  # fmt: skip
    assert image_pair(same).finding == "against"


def test_the_refuters_tool_runs_probes_records_them_and_has_an_end(
    grounds: dict[str, Ground], tmp_path: Path
) -> None:
    ground = grounds["defeat"]
    exhibits = Exhibits(cast(Any, None), ground.submission, ground.start, ground.running, tmp_path)
    claims = (Claim("a", True, CODE), Claim("b", True, None))
    toolbox = Toolbox(probe_tools(exhibits, claims, tmp_path / "refuter"), Fence(), tmp_path / "refuter")

    def ask(**given: Any) -> str:
        return toolbox.call("probe", json.dumps(given)).text

    assert "E1 probe: literal_near_handler on a: against" in ask(sub="a", probe="literal_near_handler")
    assert "no claim here; there are: a, b" in ask(sub="c", probe="assets")
    assert "b has no witness" in ask(sub="b", probe="masked")
    assert "unknown input name" in ask(sub="a", probe="varied_inputs", inputs=[{"name": "x"}])
    assert "coverage needs citations" in ask(sub="a", probe="coverage")
    kept = [json.loads(line) for line in (tmp_path / "refuter/probes.jsonl").read_text().splitlines()]
    assert [(one["probe"], one["sub"], one["finding"]) for one in kept] == [("literal_near_handler", "a", "against")]
    for _ in range(MOST_PROBES):
        last = ask(sub="a", probe="literal_near_handler")
    assert f"{MOST_PROBES} probes were run" in last


def test_every_probe_can_be_asked_for() -> None:
    from typing import get_args

    from evaluator.probes.tools import DESCRIPTION, OF_WITNESS

    assert set(OF_WITNESS) | {"assets", "coverage", "preserved", "image_pair"} == set(get_args(ProbeName))
    assert all(name in DESCRIPTION for name in get_args(ProbeName))


def test_a_witness_may_be_none_of_these(grounds: dict[str, Ground]) -> None:
    still: Witness = load_witness(
        {"schema": "cdb.witness/1", "steps": [{"expect": "visible", "target": {"css": "h1"}}]}
    )
    assert state.state_delta(grounds["right"], still).finding == "unclear"
    assert state.reachable(grounds["right"], still).finding == "unclear"
