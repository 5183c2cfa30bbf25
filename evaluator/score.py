"""From a journal of verdicts to `scores.json`. Same journal, same bytes.

Per task Strict, Graded and Full (`evaluator.metrics`); then the mean over tasks with equal weight, in percent.
Several attempts at a task are averaged first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UsageError
from bench.strict_json import read_json
from evaluator.attempts import pass_at_k, pass_hat_k, variance_split
from evaluator.case_rows import case_rows, outcome_counts
from evaluator.cases import Cases, what_is_judged
from evaluator.evidence_shares import evidence_shares
from evaluator.intervals import Interval, bootstrap_mean, nested_bootstrap, wilson
from evaluator.metrics import METRICS, Metric, TaskCounts, Values, by_task, count, mean, percent
from evaluator.overrides import Override, apply_overrides
from evaluator.records import COLUMNS, Column
from evaluator.verdicts import read_verdicts

HEADLINE: Column = "witnessed"
SCHEMA = "cdb.scores/1"
LARGEST_K = 10


def score(
    cases: Cases,
    journal: Path,
    *,
    settings: dict[str, Any],
    seed: int = 0,
    attempts: bool = False,
    overrides: Sequence[Override] = (),
) -> dict[str, Any]:
    """Everything `scores.json` holds, explained in docs/records.md. Percentages 0–100.

    `attempts`: the journal holds several independent attempts at each task. Raises UsageError without a case or
    for an override of something that is not there, DataError for a journal that cannot be trusted.
    """
    if not cases.cases:
        raise UsageError("this cases.json holds no case, so there is nothing to score")
    table = read_verdicts(journal, cases, attempts=attempts)
    overruled = apply_overrides(table, list(overrides))
    counts = {column: count(table, column) for column in COLUMNS}
    headline = counts[HEADLINE]
    incomplete = bool(headline.unscored.any())
    coverage = _coverage(headline)
    rows = case_rows(cases, table, headline)
    return {
        "schema": SCHEMA,
        "headline": HEADLINE,
        "label": _label(cases, coverage, incomplete=incomplete),
        "dataset": cases.dataset,
        "scope": cases.scope,
        "entry": cases.entry,
        "settings": {**settings, "solve": cases.solve} if cases.solve else settings,
        "columns": _each(counts, lambda own: {m: _summary(own.scored(m), m, seed) for m in METRICS}),
        "coverage": coverage,
        "submissions": {
            "present": sum(case.submission is not None for case in cases.cases),
            "of": len(cases.cases),
            "missing": [case.case for case in cases.cases if case.outcome == "missing"],
        },
        "incomplete": incomplete,
        "partial": bool((~table.seen).any()),
        "bounds": _bounds(headline) if incomplete else None,
        "evidence": evidence_shares(table),
        "attempts": _attempts(counts) if len(table.attempts) > 1 else None,
        "by_attachment": _strata(cases, headline),
        "noop": noop_entry(cases),
        "outcomes": outcome_counts(rows),
        "cases": rows,
        "overrides": overruled,
        "flags": dict(sorted(table.flags.items())),
        "warnings": table.warnings,
    }


def noop_entry(cases: Cases) -> dict[str, Any]:
    """What an untouched application scores, from the plans and at no cost: what works on the start keeps working,
    so preservation criteria are PASS; every other one asks for a change, so it is FAIL. Without plans it is 0."""
    shares = [
        sum(part.kind == "preservation" for part in case.plan) / len(case.plan) if case.planned and case.plan else 0.0
        for case in cases.cases
    ]
    share = percent(mean(shares))
    return {
        "strict": share,
        "graded": share,
        "full": percent(mean(float(share == 1) for share in shares)),
        "preservation_criteria": sum(p.kind == "preservation" for c in cases.cases if c.planned for p in c.plan),
        "planned_tasks": sum(case.planned for case in cases.cases),
    }


def _label(cases: Cases, coverage: dict[str, int], *, incomplete: bool) -> str:
    """What this result may call itself."""
    label = str(cases.scope.get("label", "unnamed scope"))
    if not incomplete:
        return label
    return f"INCOMPLETE ({coverage['tasks_scored']} of {coverage['tasks']} tasks scored), not a result of: {label}"


def _coverage(counts: TaskCounts) -> dict[str, int]:
    whole = counts.unscored == 0
    return {
        "tasks_scored": int(whole.all(axis=0).sum()),
        "tasks": whole.shape[1],
        "criteria_scored": int((counts.n - counts.unscored).sum()),
        "criteria": int(counts.n.sum()),
    }


def _each(counts: dict[Column, TaskCounts], say: Callable[[TaskCounts], dict[str, Any]]) -> dict[str, Any]:
    """What is said of each column; columns with the same counts (a foreign journal's) are worked out once."""
    said: dict[str, Any] = {}
    for column, own in counts.items():
        twin = next((other for other in said if own.equals(counts[other])), None)  # type: ignore[index]
        said[column] = said[twin] if twin else say(own)
    return said


def _summary(scored: Values, metric: Metric, seed: int) -> dict[str, float | None]:
    """Mean and 95 % interval of one metric over the tasks and attempts that were scored whole."""
    if len(scored) == 1:
        values = [value for value in by_task(scored) if value is not None]
        if not values:
            return {"mean": None, "low": None, "high": None}
        if metric == "full":
            return _rounded(wilson(sum(value == 1 for value in values), len(values)))
        return _rounded(bootstrap_mean(values, seed=seed))
    tasks = [column[~np.isnan(column)].tolist() for column in scored.T]
    kept = [values for values in tasks if values]
    if not kept:
        return {"mean": None, "low": None, "high": None}
    return _rounded(nested_bootstrap(kept, seed=seed))


def _rounded(interval: Interval) -> dict[str, float | None]:
    return {"mean": percent(interval.mean), "low": percent(interval.low), "high": percent(interval.high)}


def _bounds(counts: TaskCounts) -> dict[str, dict[str, float]]:
    """Every metric with the unscored criteria as FAIL (low) and as PASS (high), over all tasks in scope."""
    best = counts.at_best()
    return {
        metric: {
            "low": percent(mean(counts.values(metric).ravel().tolist())),
            "high": percent(mean(best.values(metric).ravel().tolist())),
        }
        for metric in METRICS
    }


def _attempts(counts: dict[Column, TaskCounts]) -> dict[str, Any]:
    whole = counts[HEADLINE].unscored == 0
    return {
        "count": len(whole),
        "trials_scored": int(whole.sum()),
        "trials": int(whole.size),
        "columns": _each(counts, lambda own: {**pass_rates(own), "variance": _variance(own)}),
    }


def pass_rates(counts: TaskCounts) -> dict[str, dict[str, float]]:
    """pass@k and pass^k in percent: the mean over tasks, where an attempt succeeds when the task is Full.

    Up to the smallest number of attempts that a task has scored whole (tasks without one are left out), at most 10.
    """
    full, whole = counts.scored("full"), counts.unscored == 0
    tries = [(int(np.nansum(column)), int(n)) for column, n in zip(full.T, whole.sum(axis=0), strict=True) if n]
    ks = range(1, min([LARGEST_K, *(n for _, n in tries)]) + 1) if tries else range(0)
    return {
        "pass_at": {str(k): percent(mean(pass_at_k(c, n, k) for c, n in tries)) for k in ks},
        "pass_hat": {str(k): percent(mean(pass_hat_k(c, n, k) for c, n in tries)) for k in ks},
    }


def _variance(counts: TaskCounts) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for metric in METRICS:
        tasks = [[[v] for v in column[~np.isnan(column)].tolist()] for column in counts.scored(metric).T]
        split = variance_split([task for task in tasks if task])
        said[metric] = {k: None if v is None else round(v, 6) for k, v in split._asdict().items()}
    return said


def _strata(cases: Cases, counts: TaskCounts) -> dict[str, dict[str, float | int]]:
    kinds = np.array([case.attachment for case in cases.cases])
    strata: dict[str, dict[str, float | int]] = {}
    values = {metric: by_task(counts.scored(metric)) for metric in METRICS}
    for kind in sorted(set(kinds.tolist())):
        chosen = {
            metric: [v for v, k in zip(values[metric], kinds, strict=True) if k == kind and v is not None]
            for metric in METRICS
        }
        strata[kind] = {"tasks": len(chosen["strict"])}
        if chosen["strict"]:
            strata[kind] |= {metric: percent(mean(chosen[metric])) for metric in METRICS}
    return strata


_SETTINGS = ("judge", "refuter", "evidence", "digests_sha256", "images", "conditions", "versions", "plans_sha256")


def settings_beside(journal: Path, cases: Cases) -> dict[str, Any]:
    """What the lock beside a journal of ours says of how it was judged (`_SETTINGS`); empty for a foreign journal.

    Raises UsageError when that lock is of another entry, other submissions, plans or scope than `cases`.
    """
    lock = journal.parent / "lock.json"
    if not lock.is_file():
        return {}
    content = read_json(lock)
    if not isinstance(content, dict) or content.get("step") != "judge":
        return {}
    if differing := [key for key, value in what_is_judged(cases).items() if content.get(key) != value]:
        raise UsageError(
            f"{journal} was judged for another cases.json (different: {', '.join(differing)}); "
            f"use {journal.parent / 'cases.json'}"
        )
    return {key: content[key] for key in _SETTINGS if key in content}
