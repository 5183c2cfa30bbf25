"""`cdb compare`: paired, honest about what it cannot show, and refused where it would mean nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UsageError
from evaluator.cases import Case, Cases, CriterionText, SubmissionFacts, what_is_judged, write_cases
from evaluator.compare import compare, lines
from evaluator.records import CriterionPlan, SubRequirement

MakeResult = Callable[..., Path]
CONDITIONS = {"egress": "none", "hosted_tools": "off", "media": "native"}


@pytest.fixture
def make_result(tmp_path: Path) -> MakeResult:
    """Makes a results folder: case → its verdicts; `plan` is the kind of every criterion."""

    def make(
        name: str, verdicts: dict[str, list[str | None]], *, agent: str | None = None, model: str | None = None,
        attempt: int = 1, plan: str = "behaviour", judge: str = "recorded", digest: str | None = None,
        conditions: dict[str, str] = CONDITIONS, solve: dict[str, Any] | None = None,
        beside: dict[str, Any] | None = None,
    ) -> Path:  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        cases = Cases(
            dataset={"name": "D"}, scope={"label": "D", "whole": True},
            entry={"agent": None if agent == "" else agent or name, "model": model, "harness": "cdb", "attempt": attempt},
            solve={"conditions": conditions, **(solve or {})}, plans_sha256="x",
            cases=[
                Case(
                    case=case, request="r", attachment="none", attachments=[], annotation=None, project="p",
                    start_digest="s", serve_plan=None, planned=True,
                    criteria=[CriterionText(criterion_index=i + 1, rubric_id=f"{case}{i}", criterion=f"c{i}") for i in range(len(given))],
                    plan=[
                        CriterionPlan(criterion_index=i + 1, kind=plan, sub_requirements=[SubRequirement(id="a", text="t")])  # type: ignore[arg-type]
                        for i in range(len(given))
                    ],
                    submission=SubmissionFacts(folder="f", digest=digest or name, changed_files=1, outcome="ok"),
                )
                for case, given in verdicts.items()
            ],
        )  # fmt: skip
        write_cases(cases, folder / "cases.json")
        lock = {"step": "judge", **what_is_judged(cases), "judge": {"name": judge}, "conditions": {"egress": "none"}}
        lock |= beside or {}
        (folder / "lock.json").write_text(json.dumps(lock))
        rows = [
            {"case": case, "criterion_index": i + 1, "verdict": verdict}
            for case, given in verdicts.items() for i, verdict in enumerate(given)
        ]  # fmt: skip
        (folder / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    return make


def tasks(*verdicts: str | None) -> dict[str, list[str | None]]:
    return {f"t{n:02d}": [verdict] for n, verdict in enumerate(verdicts)}


def test_a_clear_difference_is_named_with_its_interval(make_result: MakeResult) -> None:
    good, bad = make_result("good", tasks(*["PASS"] * 20)), make_result("bad", tasks(*["FAIL"] * 18, "PASS", "PASS"))
    found = compare([good, bad], "witnessed")
    strict = found["pairs"][0]["metrics"]["strict"]
    assert (strict["difference"], strict["wins"], strict["ties"], strict["losses"]) == (90.0, 18, 2, 0)
    assert strict["finding"] == "good is better"
    assert strict["low"] > 0


def test_better_is_never_said_when_the_interval_covers_0(make_result: MakeResult) -> None:
    first = make_result("first", tasks("PASS", "FAIL", "PASS", "FAIL", "PASS", "PASS"))
    second = make_result("second", tasks("FAIL", "PASS", "PASS", "FAIL", "PASS", "FAIL"))
    found = compare([first, second], "witnessed")
    strict = found["pairs"][0]["metrics"]["strict"]
    assert strict["low"] <= 0 <= strict["high"]
    assert "better" not in "\n".join(lines(found))
    assert strict["smallest_detectable"] > 0


def test_tasks_without_a_partner_are_listed_and_not_paired(make_result: MakeResult) -> None:
    whole = make_result("whole", tasks("PASS", "PASS", "PASS"))
    torn = make_result("torn", tasks("PASS", None, "FAIL"))
    pair = compare([whole, torn], "witnessed")["pairs"][0]
    assert (pair["matched"], pair["unmatched"]) == (2, ["t01"])
    assert pair["metrics"]["strict"]["difference"] == 50.0


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"plan": "preservation"}, "criterion plan of t00"),
        ({"judge": "opus"}, 'evaluator.judge.name: "recorded", "opus"'),
        ({"conditions": {**CONDITIONS, "egress": "open"}}, 'solve.conditions.egress: "none", "open"'),
        ({"beside": {"refuter": {"model": "m"}}}, "evaluator.refuter: not recorded, "),
        ({"beside": {"evidence": "full"}}, 'evaluator.evidence: not recorded, "full"'),
    ],
)
def test_results_that_do_not_mean_the_same_are_refused_with_the_difference(
    make_result: MakeResult, other: dict[str, Any], named: str
) -> None:
    first, second = make_result("first", tasks("PASS")), make_result("second", tasks("PASS"), **other)
    with pytest.raises(UsageError) as refused:
        compare([first, second], "witnessed")
    assert named in str(refused.value)


def test_results_of_one_agent_are_attempts_and_those_of_one_submission_are_judgings(make_result: MakeResult) -> None:
    runs = [
        make_result("a1", tasks("PASS", "PASS"), agent="a", attempt=1),
        make_result("a2", tasks("PASS", "FAIL"), agent="a", attempt=2),
        make_result("a2-again", tasks("PASS", "PASS"), agent="a", attempt=2, digest="a2"),
    ]
    entrant = compare(runs, "witnessed")["entrants"][0]
    assert (entrant["attempts"], entrant["judgings"]) == (2, 2)
    assert entrant["metrics"]["strict"]["mean"] == 87.5  # t01: (1 + (0 + 1)/2)/2
    assert (entrant["pass_at"]["2"], entrant["pass_hat"]["2"]) == (100.0, 50.0)
    assert entrant["variance"]["strict"]["judge"] is not None


def test_one_name_for_two_systems_is_refused(make_result: MakeResult) -> None:
    runs = [
        make_result(f"a{n}", tasks("PASS"), agent="a", attempt=n, solve={"agent": {"version": f"0.{n}"}})
        for n in (1, 2)
    ]
    with pytest.raises(UsageError, match=r'attempts of one agent by their names: solve.agent.version: "0.1", "0.2"'):
        compare(runs, "witnessed")


def test_submissions_of_unknown_origin_are_never_attempts_of_one_entrant(make_result: MakeResult) -> None:
    one, other = (make_result(name, tasks(verdict), agent="") for name, verdict in (("a", "PASS"), ("b", "FAIL")))
    again = make_result("again", tasks("PASS"), agent="", digest="a")
    found = compare([one, other, again], "witnessed")
    assert [(e["attempts"], e["judgings"]) for e in found["entrants"]] == [(1, 2), (1, 1)]


def test_caps_are_no_difference_to_an_agent_that_calls_no_model(make_result: MakeResult) -> None:
    capped = make_result("capped", tasks("PASS"), solve={"caps": {"max_usd": 5}})
    assert compare([make_result("bare", tasks("FAIL")), capped], "witnessed")["pairs"]
    with pytest.raises(UsageError, match=r"solve\.caps\.max_usd: 5, 9"):
        compare([capped, make_result("richer", tasks("PASS"), solve={"caps": {"max_usd": 9}})], "witnessed")


def test_the_table_has_a_row_a_harness_and_a_column_a_model(make_result: MakeResult) -> None:
    folders = [
        make_result(f"{agent}-{model}", tasks("PASS" if model == "big" else "FAIL"), agent=agent, model=model)
        for agent in ("one", "two")
        for model in ("big", "small")
    ]
    found = compare(folders, "witnessed")
    assert found["table"]["two"]["big"]["strict"] == 100.0
    assert found["table"]["one"]["small"]["strict"] == 0.0
    assert len(found["pairs"]) == 6
    assert all(p["metrics"]["strict"]["p_holm"] >= p["metrics"]["strict"]["p"] for p in found["pairs"])


def test_a_result_is_not_compared_with_itself(make_result: MakeResult) -> None:
    folder = make_result("one", tasks("PASS"))
    with pytest.raises(UsageError, match="twice"):
        compare([folder, folder], "witnessed")


def test_an_unknown_cost_stays_unknown(make_result: MakeResult) -> None:
    folder = make_result("one", tasks("PASS"))
    (folder / "spend.json").write_text(json.dumps({"solve": {"usage": {"cost_usd": None}}, "judge": {"usage": {}}}))
    assert compare([folder], "witnessed")["entrants"][0]["usd"] is None
