"""What was spent was spent: an adopted seal's money counts once, and what nobody knows is no 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judged_run import make_judged_run

from bench.journal import Journal
from evaluator.cases import read_cases
from evaluator.spend import spend


def spent(tmp_path: Path, *more: dict[str, Any]) -> Any:
    run = make_judged_run(tmp_path)
    with Journal(run.entry / "journal.jsonl") as journal:
        for record in more:
            journal.append({"type": "trial", "digest": None, **record})
    found = spend(read_cases(run.results / "cases.json"), run.results, run.results / "journal.jsonl")
    return found["solve"]["usage"]["cost_usd"]


def test_the_money_of_a_seal_whose_line_was_lost_counts(tmp_path: Path) -> None:
    adopted = {"case": "clock", "adopted": True, "account": {"calls": 1, "cost_usd": 7.5}}
    assert spent(tmp_path, adopted) == 3 * 0.25 + 7.5


def test_it_counts_once_where_another_line_tells_of_it(tmp_path: Path) -> None:
    account = {"calls": 1, "cost_usd": 7.5}
    lines = [{"case": "clock", "account": account}, {"case": "clock", "adopted": True, "account": account}]
    assert spent(tmp_path, *lines) == 3 * 0.25 + 7.5


def test_without_any_submission_nobody_knows_what_solving_cost(tmp_path: Path) -> None:
    run = make_judged_run(tmp_path)
    cases = read_cases(run.results / "cases.json")
    bare = [case.model_copy(update={"submission": None}) for case in cases.cases]
    found = spend(cases.model_copy(update={"cases": bare}), run.results, run.results / "journal.jsonl")
    assert found["solve"]["usage"] == {"cost_usd": None}
