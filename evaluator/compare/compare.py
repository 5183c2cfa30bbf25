"""`cdb compare`: any number of results, paired by task, in one column."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from evaluator.attempts import pass_at_k, pass_hat_k, variance_split
from evaluator.compare.compatible import check_compatible
from evaluator.compare.entrants import Entrant, read_entrants
from evaluator.compare.statistics import difference, holm, mcnemar_mid_p, sign_flip, smallest_detectable
from evaluator.intervals import nested_bootstrap, wilson
from evaluator.metrics import METRICS, Metric, mean, percent
from evaluator.records import Column
from evaluator.score import LARGEST_K

SCHEMA = "cdb.comparison/1"
ALPHA = 0.05


def compare(folders: list[Path], column: Column, *, seed: int = 0) -> dict[str, Any]:
    """Everything `cdb compare --json` prints, explained in docs/records.md. Percentages, differences in points.

    Results of the same agent, model and harness are attempts of one entrant (or judgings, where the submissions
    are the same). Raises UsageError for results that may not stand in one table, with the difference.
    """
    if not folders:
        raise UsageError("give at least one results folder")
    entrants = read_entrants(folders, column)
    check_compatible([result for entrant in entrants for result in entrant.results])
    return {
        "schema": SCHEMA,
        "column": column,
        "entrants": [_entrant(entrant, seed) for entrant in entrants],
        "pairs": _pairs(entrants, seed),
        "table": _table(entrants),
        "cases": _case_rows(entrants),
    }


def _entrant(entrant: Entrant, seed: int) -> dict[str, Any]:
    agent, model, harness = entrant.who
    scope = {case.case for result in entrant.results for case in result.cases.cases}
    costs = [result.usd for result in entrant.results]
    usd = None if None in costs else round(sum(cost for cost in costs if cost is not None), 6)
    scored = len(entrant.levels("strict"))
    return {
        "name": entrant.name, "agent": agent, "model": model, "harness": harness,
        "results": [str(result.folder) for result in entrant.results],
        "attempts": len(entrant.attempts),
        "judgings": max(len(judgings) for judgings in entrant.attempts),
        "tasks_scored": scored, "tasks": len(scope), "incomplete": scored < len(scope),
        "metrics": {metric: _interval(entrant, metric, seed) for metric in METRICS},
        **_pass_rates(entrant),
        "variance": {metric: _variance(entrant, metric) for metric in METRICS},
        "usd": usd,
        "usd_per_task": None if usd is None else round(usd / (len(scope) * len(entrant.results)), 6),
    }  # fmt: skip


def _interval(entrant: Entrant, metric: Metric, seed: int) -> dict[str, float | None]:
    tasks = [[mean(judgings) for judgings in attempts] for attempts in entrant.levels(metric).values()]
    if not tasks:
        return {"mean": None, "low": None, "high": None}
    if metric == "full" and len(entrant.results) == 1:
        found = wilson(sum(values[0] == 1 for values in tasks), len(tasks))
    else:
        found = nested_bootstrap(tasks, seed=seed)
    return {"mean": percent(found.mean), "low": percent(found.low), "high": percent(found.high)}


def _pass_rates(entrant: Entrant) -> dict[str, Any]:
    """pass@k and pass^k over attempts; an attempt succeeds when every judging of it says Full."""
    n = len(entrant.attempts)
    tries = [sum(min(judgings) == 1 for judgings in attempts) for attempts in entrant.levels("full").values()]
    if n < 2 or not tries:
        return {"pass_at": {}, "pass_hat": {}}
    ks = range(1, min(n, LARGEST_K) + 1)
    return {
        "pass_at": {str(k): percent(mean(pass_at_k(c, n, k) for c in tries)) for k in ks},
        "pass_hat": {str(k): percent(mean(pass_hat_k(c, n, k) for c in tries)) for k in ks},
    }


def _variance(entrant: Entrant, metric: Metric) -> dict[str, float | None]:
    split = variance_split(list(entrant.levels(metric).values()))
    return {source: None if value is None else round(value, 6) for source, value in split._asdict().items()}


def _pairs(entrants: list[Entrant], seed: int) -> list[dict[str, Any]]:
    """Every pair of entrants; Holm's adjustment runs over all pairs of one metric."""
    pairs = [_pair(first, second, seed) for first, second in combinations(entrants, 2)]
    for metric in METRICS:
        tested = [pair for pair in pairs if pair["matched"]]
        for pair, p in zip(tested, holm([p["metrics"][metric]["p"] for p in tested]), strict=True):
            said = pair["metrics"][metric]
            said["p_holm"] = round(p, 6)
            said["finding"] = _finding(pair, said)
    return pairs


def _pair(first: Entrant, second: Entrant, seed: int) -> dict[str, Any]:
    own, theirs = first.task_means("strict"), second.task_means("strict")
    matched = [case for case in own if case in theirs]
    scope = {case.case: None for e in (first, second) for r in e.results for case in r.cases.cases}
    return {
        "first": first.name,
        "second": second.name,
        "matched": len(matched),
        "unmatched": [case for case in scope if case not in matched],
        "metrics": {metric: _tests(first, second, matched, metric, seed) for metric in METRICS} if matched else {},
    }


def _tests(first: Entrant, second: Entrant, matched: list[str], metric: Metric, seed: int) -> dict[str, Any]:
    own, theirs = first.task_means(metric), second.task_means(metric)
    a, b = [own[case] for case in matched], [theirs[case] for case in matched]
    differences = [x - y for x, y in zip(a, b, strict=True)]
    found = difference(a, b, seed=seed)
    smallest = smallest_detectable(differences)
    said: dict[str, Any] = {
        "difference": percent(found.mean), "low": percent(found.low), "high": percent(found.high),
        "p": round(sign_flip(differences, seed=seed), 6),
        "smallest_detectable": None if smallest is None else percent(smallest),
        "wins": sum(d > 0 for d in differences),
        "ties": sum(d == 0 for d in differences),
        "losses": sum(d < 0 for d in differences),
    }  # fmt: skip
    if metric == "full" and len(first.results) == len(second.results) == 1:
        said["mcnemar_mid_p"] = round(mcnemar_mid_p(said["wins"], said["losses"]), 6)
    return said


def _finding(pair: dict[str, Any], said: dict[str, Any]) -> str:
    """In words. "Better" only when the interval leaves 0 out and the adjusted p is below 5 %."""
    if said["low"] > 0 and said["p_holm"] < ALPHA:
        return f"{pair['first']} is better"
    if said["high"] < 0 and said["p_holm"] < ALPHA:
        return f"{pair['second']} is better"
    return "no difference shown"


def _table(entrants: list[Entrant]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Harness (agent) × model: each metric's mean."""
    table: dict[str, dict[str, dict[str, float | None]]] = {}
    for entrant in entrants:
        agent, model, harness = entrant.who
        row = agent if harness in (None, "cdb") else f"{agent} ({harness})"
        table.setdefault(row, {})[model or "none"] = {
            metric: percent(mean(values)) if (values := list(entrant.task_means(metric).values())) else None
            for metric in METRICS
        }
    return table


def _case_rows(entrants: list[Entrant]) -> list[dict[str, Any]]:
    scope = {case.case: None for e in entrants for r in e.results for case in r.cases.cases}
    means = [(entrant.name, {metric: entrant.task_means(metric) for metric in METRICS}) for entrant in entrants]
    return [
        {
            "case": case,
            "entrants": {
                name: {m: None if (v := own[m].get(case)) is None else percent(v) for m in METRICS}
                for name, own in means
            },
        }
        for case in scope
    ]
