"""What was judged before a case broke off stands, and is written before anything else can happen to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from judged_run import make_judged_run

from bench.errors import InfraError
from bench.journal import Journal
from bench.pool import StopFlag
from evaluator import case as case_module
from evaluator import stage as stage_module
from evaluator.applications import Bench
from evaluator.case import judge_case
from evaluator.cases import Case, read_cases
from evaluator.criterion import CriterionBroken, about
from evaluator.judging import _Kept
from evaluator.recon import Recon
from evaluator.records import CriterionRecord, Replay, Usage
from evaluator.replay import TIME_OVER
from evaluator.stage import ReplayError, Stage
from evaluator.witness import Witness

Broken = tuple[Case, Bench]


@pytest.fixture
def bench_of_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Broken:
    """A case of two criteria with a sealed submission; its applications run and look well without a container."""
    run = make_judged_run(tmp_path)
    clock = next(case for case in read_cases(run.results / "cases.json").cases if case.case == "clock")

    @contextmanager
    def running(*_: Any) -> Iterator[Any]:
        yield SimpleNamespace(flags=[])

    monkeypatch.setattr(case_module, "running_applications", running)
    monkeypatch.setattr(case_module, "look", lambda *_: Recon({}, {}, []))
    judge = SimpleNamespace(in_case=lambda _exhibits: None)
    bench = SimpleNamespace(
        cases_folder=run.results, results=run.results, judge=judge, refuter=None, evidence="minimal"
    )
    return clock, cast(Bench, bench)


def decided(case: Case, index: int, **more: Any) -> CriterionRecord:
    plan = next(plan for plan in case.plan if plan.criterion_index == index)
    return CriterionRecord(**about(case, plan), **{"outcome": "ok", "verdict": "FAIL", **more})


@pytest.mark.parametrize("broken", ["the start application does not serve", "a bug"])
def test_a_case_that_breaks_off_keeps_the_verdicts_it_had(
    bench_of_clock: Broken, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    case, bench = bench_of_clock
    kept: list[int] = []

    def judge_criterion(_case: Case, criterion: Any, *_: Any) -> CriterionRecord:
        if criterion.criterion_index == 1:
            return decided(case, 1, usage={"judge": Usage(calls=3, cost_usd=1.4)})
        if broken == "a bug":
            raise ZeroDivisionError(broken)
        spent = {"judge": Usage(calls=1, cost_usd=0.2)}
        raise CriterionBroken(
            decided(case, 2, outcome="infra_error", verdict=None, reason=broken, usage=spent)
        ) from InfraError(broken)

    monkeypatch.setattr(case_module, "judge_criterion", judge_criterion)
    result = judge_case(case, bench, cast(Any, None), keep=lambda record: kept.append(record.criterion_index))
    assert result.case.outcome == "infra_error"
    assert broken in result.case.reason
    assert [(r.criterion_index, r.outcome, r.verdict) for r in result.criteria] == [
        (1, "ok", "FAIL"), (2, "infra_error", None)
    ]  # fmt: skip
    assert kept[0] == 1, "before the case ended"
    costs = [usage.cost_usd for record in result.criteria for usage in record.usage.values()]
    assert costs == ([1.4, 0.2] if broken != "a bug" else [1.4])


def test_each_record_is_written_once_and_none_after_a_stop(bench_of_clock: Broken, tmp_path: Path) -> None:
    case, _ = bench_of_clock
    path, stop = tmp_path / "new/journal.jsonl", StopFlag()
    with Journal(path) as journal:
        keep = _Kept(journal, {("clock", 2): 7}, stop)
        for index in (1, 1, 2):
            keep(decided(case, index))
        stop.set(15)
        keep(decided(case, 1).model_copy(update={"criterion_index": 3}))
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["criterion_index"], r.get("supersedes")) for r in records] == [(1, None), (2, 7)]


def test_a_witness_that_needs_more_time_than_there_is_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def run_witness(*_: Any, deadline_s: float, **__: Any) -> Replay:
        limits.append(deadline_s)
        return Replay(app="submission", purpose="propose", outcome="error", reason=f"Step 3, wait 20 s: {TIME_OVER}")

    monkeypatch.setattr(stage_module, "run_witness", run_witness)
    browser = SimpleNamespace(recorder=None, answers=lambda: True)
    stage = Stage(cast(Any, SimpleNamespace(submission=browser)), tmp_path, tmp_path / "evidence")
    witness = Witness.model_validate({"schema": "cdb.witness/1", "steps": [{"expect": "console_clean"}]})
    with pytest.raises(ReplayError, match="time was over"):
        stage.run(witness, "a", "propose")
    assert limits == [60, 240], "the second time with more patience altogether"
