"""`cdb audit diff`: two judgings of the same submissions: agreement, flips with evidence, score difference.

Judge, refuter and their settings may differ, since that is what is looked at; submissions, criteria and plans may
not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UsageError
from evaluator.audit.agreement import kappa
from evaluator.audit.frame import RANKS, Judged, Judging, read_judging
from evaluator.compare.compatible import differences
from evaluator.compare.entrants import Result, read_result
from evaluator.compare.statistics import difference, sign_flip
from evaluator.metrics import METRICS, mean, percent
from evaluator.records import Column, CriterionRecord, Verdict

SCHEMA = "cdb.rejudge_diff/1"
NAMES: tuple[Verdict | None, ...] = ("PASS", "PARTIAL", "FAIL", None)


def rejudge_diff(first: Path, second: Path, column: Column, *, seed: int = 0) -> dict[str, Any]:
    """Everything `cdb audit diff --json` prints, explained in docs/records.md. Percentages, differences in points.

    Differences are second minus first. Raises UsageError where the two did not judge the same thing.
    """
    if first.resolve() == second.resolve():
        raise UsageError(f"{first} is given twice; give two judgings of the same submissions")
    judgings = [read_judging(folder, column) for folder in (first, second)]
    results = [read_result(folder, column) for folder in (first, second)]
    _check(results)
    ours = {(c.case.case, c.criterion_index): c for c in judgings[0].criteria}
    pairs = [(ours[c.case.case, c.criterion_index], c) for c in judgings[1].criteria]
    both = [(RANKS[a.verdict], RANKS[b.verdict]) for a, b in pairs if a.verdict and b.verdict]
    ranks = np.array(both, dtype=np.int64).reshape(-1, 2)
    return {
        "schema": SCHEMA,
        "column": column,
        "judgings": [_judging(judging, result) for judging, result in zip(judgings, results, strict=True)],
        "criteria": len(pairs),
        "agreement": kappa(ranks[:, 0], ranks[:, 1], 3, seed=seed).as_json(),
        "table": {
            _name(a): {_name(b): sum((x.verdict, y.verdict) == (a, b) for x, y in pairs) for b in NAMES}
            for a in NAMES
        },
        "scores": {metric: _scores(results, metric, seed) for metric in METRICS},
        "flips": [_flip(a, b, judgings, column) for a, b in pairs if a.verdict != b.verdict],
        "other_rules": sum(a.verdict == b.verdict and _rule(a, column) != _rule(b, column) for a, b in pairs),
    }


def _check(results: list[Result]) -> None:
    """Raises UsageError listing what differs beside the judge."""
    one, other = results
    faults = [line for line in differences(one, other) if not line.startswith("evaluator.judge")]
    mine = {case.case: case for case in one.cases.cases}
    theirs = {case.case: case for case in other.cases.cases}
    if alone := sorted(mine.keys() ^ theirs.keys()):
        faults.append(f"tasks that only one of them has: {', '.join(alone[:5])}{' …' if len(alone) > 5 else ''}")
    digests = [
        name
        for name in sorted(mine.keys() & theirs.keys())
        if (a := mine[name].submission) != (b := theirs[name].submission)
        and (a.digest if a else None) != (b.digest if b else None)
    ]
    if digests:
        faults.append(f"submission of {', '.join(digests[:5])}{' …' if len(digests) > 5 else ''}")
    if faults:
        raise UsageError(
            f"{one.folder} and {other.folder} did not judge the same thing:\n  "
            + "\n  ".join(faults)
            + "\nJudge the same cases.json twice; `cdb compare` compares entries."
        )


def _judging(judging: Judging, result: Result) -> dict[str, Any]:
    return {
        "folder": str(judging.folder),
        "entry": judging.cases.entry,
        "judge": result.settings.get("judge"),
        "unscored": sum(c.verdict is None for c in judging.criteria),
        "usd": result.usd,
    }


def _scores(results: list[Result], metric: Any, seed: int) -> dict[str, Any]:
    """Over tasks that both scored whole, paired by task."""
    mine, theirs = (result.values[metric] for result in results)
    shared = [case.case for case in results[0].cases.cases if case.case in mine and case.case in theirs]
    if not shared:
        return {"tasks": 0, "first": None, "second": None, "difference": None, "low": None, "high": None, "p": None}
    a, b = [mine[case] for case in shared], [theirs[case] for case in shared]
    found = difference(b, a, seed=seed)
    return {
        "tasks": len(shared), "first": percent(mean(a)), "second": percent(mean(b)),
        "difference": percent(found.mean), "low": percent(found.low), "high": percent(found.high),
        "p": round(sign_flip([y - x for x, y in zip(a, b, strict=True)], seed=seed), 6),
    }  # fmt: skip


def _flip(first: Judged, second: Judged, judgings: list[Judging], column: Column) -> dict[str, Any]:
    return {
        "case": first.case.case,
        "criterion_index": first.criterion_index,
        "criterion": first.text,
        "sides": [_side(one, judging, column) for one, judging in zip((first, second), judgings, strict=True)],
    }


def _side(one: Judged, judging: Judging, column: Column) -> dict[str, Any]:
    """One judging's word on a flipped criterion, with where its evidence lies (paths below its results folder)."""
    record = one.record
    return {
        "verdict": one.verdict,
        "rule": _rule(one, column),
        "reason": record.reason if record else "no record",
        "flags": record.flags if record else [],
        "frame": record.submission_frame if record else None,
        "parts": _parts(record, column) if record else [],
        "replay": f"cdb replay {judging.folder} {one.case.case} {one.criterion_index}",
    }


def _parts(record: CriterionRecord, column: Column) -> list[dict[str, Any]]:
    credit = {"judge": "proposed", "card": "card", "witnessed": "witnessed"}[column]
    return [
        {
            "id": sub.id, "text": sub.text, "core": sub.core, "credited": bool(getattr(sub, credit)),
            "said": sub.reason, "lowered_by": sub.lowered_by, "witness": sub.witness,
            "replays": [
                {"app": r.app, "purpose": r.purpose, "outcome": r.outcome, "reason": r.reason} for r in sub.replays
            ],
        }
        for sub in record.sub_requirements
    ]  # fmt: skip


def _rule(one: Judged, column: Column) -> str:
    decided = one.record.columns.get(column) if one.record else None
    return decided.rule if decided else ""


def _name(verdict: Verdict | None) -> str:
    return verdict or "unscored"


def lines(found: dict[str, Any]) -> list[str]:
    """What `cdb audit diff` prints without --json."""
    first, second = found["judgings"]
    said = [f"column {found['column']}: {first['folder']} and {second['folder']}, second minus first"]
    same = found["agreement"]
    value = "undefined" if same["value"] is None else f"{same['value']:.2f}"
    if same["low"] is not None:
        value += f" [{same['low']:.2f}, {same['high']:.2f}]"
    said.append(f"{found['criteria']} criteria, {len(found['flips'])} flips; kappa {value} over {same['items']}")
    for metric, m in found["scores"].items():
        if m["tasks"]:
            said.append(
                f"  {metric:<7} {m['first']:.1f} and {m['second']:.1f}: {m['difference']:+.1f} "
                f"[{m['low']:+.1f}, {m['high']:+.1f}], p {m['p']:.4f}, {m['tasks']} tasks"
            )
    for flip in found["flips"]:
        a, b = flip["sides"]
        said.append(f"{flip['case']} criterion {flip['criterion_index']}: {_side_line(a)} → {_side_line(b)}")
        said += [f"  {side['replay']}" for side in (a, b)]
    return said


def _side_line(side: dict[str, Any]) -> str:
    reasons = [r["reason"] for part in side["parts"] for r in part["replays"] if r["reason"]]
    why = side["reason"] or next(iter(reasons), "")
    return f"{_name(side['verdict'])} ({side['rule'] or 'no rule'}{': ' + why[:120] if why else ''})"
