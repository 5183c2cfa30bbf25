"""`budget.run_usd` is the cap of the whole run: what solving and earlier judgings spent is no longer there to be spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.journal import Journal
from bench.pool import StopFlag
from runner.conduct import NOTHING_LEFT_USD, _Run
from runner.config import RunConfig
from runner.standing import PlannedEntry, RunPlan


def a_run(folder: Path, spent: dict[str, float | None], cap: float = 5.0) -> _Run:
    """A run of one entry whose journals (`solve`, `judge`) say what was spent."""
    RunPlan("r", [PlannedEntry("e", ["e/results"])], ["a"], "card", {}).write(folder)
    for place, usd in spent.items():
        path = folder / ("e" if place == "solve" else "e/results") / "journal.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with Journal(path) as journal:
            journal.append({"type": "trial", "case": "a", "outcome": "ok", "cost_usd": usd})
    content = {"name": "r", "out": str(folder), "agents": ["noop"], "budget": {"run_usd": cap}}
    judges = [{"model": "openai/gpt-x"}, {"model": "recorded"}]
    return _Run(RunConfig.model_validate({**content, "judges": judges}), None, print, StopFlag())


def test_a_judging_gets_what_solving_and_judging_left(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 1.5, "judge": 0.25})
    paid, free = run.config.judges
    assert run._cap() == ["--run-usd", "5", "--spent-usd", "1.75"]
    assert run._judge_cap(paid) == ["--run-usd", "3.25"]
    assert run._judge_cap(free) == []


def test_a_run_without_money_left_asks_no_model(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 4.0, "judge": 2.0})
    assert run._judge_cap(run.config.judges[0]) == ["--run-usd", f"{NOTHING_LEFT_USD:g}"]


def test_no_cap_is_passed_where_the_run_has_none(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": 1.0}, cap=0.0)
    assert run._judge_cap(run.config.judges[0]) == []


def test_a_cap_that_cannot_be_held_stops_the_run_before_a_judge_is_paid(tmp_path: Path) -> None:
    run = a_run(tmp_path, {"solve": None})
    with pytest.raises(UsageError, match="run_usd cannot be held"):
        run._judge_cap(run.config.judges[0])
