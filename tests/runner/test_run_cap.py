"""`budget.run_usd` is the cap of the whole run: what solving and earlier judgings spent is no longer there to be spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.journal import Journal
from bench.pool import StopFlag
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.settings import Caps
from runner.conduct import NOTHING_LEFT_USD, _Run
from runner.config import RunConfig
from runner.entries import Entry
from runner.standing import PlannedEntry, RunPlan


def a_run(folder: Path, spent: dict[str, float | None], cap: float = 5.0) -> _Run:
    """A run of one entry whose journals (`solve`, `judge`) say what was spent."""
    RunPlan("r", [PlannedEntry("e", ["e/results"])], ["a"], "card", {}).write(folder)
    for place, usd in spent.items():
        path = folder / ("e" if place == "solve" else "e/results") / "journal.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"type": "trial", "case": "a", "outcome": "ok", "account": {"cost_usd": usd}}
        if place == "judge":
            told = {"type": "criterion", "case": "a", "criterion_index": 1, "usage": {"judge": {"cost_usd": usd}}}
        with Journal(path) as journal:
            journal.append(told)
    content = {"name": "r", "out": str(folder), "agents": ["noop"], "budget": {"run_usd": cap}}
    judges = [{"model": "openai/gpt-x"}, {"model": "recorded"}]
    return _Run(RunConfig.model_validate({**content, "judges": judges}), None, print, StopFlag())


def test_a_step_is_told_what_all_others_spent_for_it_counts_its_own_journal_itself(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 1.5, "judge": 0.1234567})
    paid, free = run.config.judges
    entry, other = (Entry("noop", None, 1, None, tmp_path / name) for name in "ef")
    assert run._cap(entry) == ["--run-usd", "5.0", "--spent-usd", "0.123457"]
    assert run._cap(other) == ["--run-usd", "5.0", "--spent-usd", "1.623457"]
    assert run._judge_cap(paid, tmp_path / "e/results") == ["--run-usd", "3.5"]
    assert run._judge_cap(paid, tmp_path / "f/results") == ["--run-usd", "3.376543"]
    assert run._judge_cap(free, tmp_path / "e/results") == []


def test_a_judging_that_goes_on_still_has_what_it_had_left(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 3.0, "judge": 1.2})
    cap = float(run._judge_cap(run.config.judges[0], tmp_path / "e/results")[1])
    ledger = Ledger(Caps(run_usd=cap))
    ledger.carry([{"case": "a", "criterion_index": 1, "usage": {"judge": {"cost_usd": 1.2, "calls": 1}}}])
    ledger.purse("a").check()  # raises OutOfBudget where the cap is used up


def test_a_run_without_money_left_asks_no_model(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 4.0, "judge": 2.0})
    assert run._judge_cap(run.config.judges[0], tmp_path / "f/results") == ["--run-usd", f"{NOTHING_LEFT_USD!r}"]


def test_no_cap_is_passed_where_the_run_has_none(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 1.0}, cap=0.0)
    assert run._judge_cap(run.config.judges[0], tmp_path / "e/results") == []


def test_a_cap_that_cannot_be_held_stops_the_run_before_a_judge_is_paid(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": None})
    with pytest.raises(UsageError, match="run_usd cannot be held"):
        run._judge_cap(run.config.judges[0], tmp_path / "e/results")
