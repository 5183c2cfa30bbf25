"""From a journal of verdicts to `scores.json`. Same journal, same bytes.

Strict = #PASS/n, Graded = (#PASS + ½ #PARTIAL)/n, Full = all PASS, per task; then the mean over tasks with equal
weight, in percent (dataset card, "Evaluation and metrics").
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import DataError, UsageError
from bench.journal import read_journal
from evaluator.cases import Cases, what_is_judged
from evaluator.intervals import Interval, bootstrap_mean, wilson
from evaluator.records import COLUMNS, Column, Verdict
from evaluator.strict_json import read_json

VERDICTS: tuple[Verdict, ...] = ("PASS", "PARTIAL", "FAIL")
METRICS = ("strict", "graded", "full")


@dataclass(frozen=True)
class TaskScore:
    """One task in one column. Fractions, not percent. Unscored criteria count as FAIL here and are counted."""

    case: str
    passed: int
    partial: int
    failed: int
    unscored: int

    @property
    def n(self) -> int:
        return self.passed + self.partial + self.failed + self.unscored

    @property
    def strict(self) -> float:
        return self.passed / self.n

    @property
    def graded(self) -> float:
        return (self.passed + 0.5 * self.partial) / self.n

    @property
    def full(self) -> float:
        return float(self.passed == self.n)

    def at_best(self) -> TaskScore:
        """The same task if every unscored criterion were PASS."""
        return TaskScore(self.case, self.passed + self.unscored, self.partial, self.failed, 0)


def read_verdicts(
    journal: Path, cases: Cases
) -> tuple[dict[tuple[str, int], dict[Column, Verdict | None]], list[str]]:
    """The winning verdicts of a journal, ours or foreign, and warnings about lines that were not used.

    Key: case and criterion index. A foreign line needs `case` (or `case_id`), `criterion` (a position, or the text
    or id of the rubric) and `verdict`; it stands for all three columns. A second verdict for a criterion is
    ignored with a warning unless it says what it supersedes.
    """
    lookup = _criterion_lookup(cases)
    won: dict[tuple[str, int], dict[Column, Verdict | None]] = {}
    won_by: dict[tuple[str, int], Any] = {}
    warnings: list[str] = []
    for number, record in _lines(journal, warnings):
        if record.get("type", "criterion") != "criterion":
            continue
        key = _key(record, lookup)
        if key is None:
            warnings.append(f"line {number}: no such criterion in these cases, ignored")
        elif key in won and record.get("supersedes") != won_by[key]:
            warnings.append(f"line {number}: a second verdict for {key[0]} criterion {key[1]}, ignored")
        else:
            won[key] = _columns(record, number, journal)
            won_by[key] = record.get("seq", number)
    return won, warnings


def score(cases: Cases, journal: Path, *, settings: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    """Everything `scores.json` holds, explained in docs/records.md. Percentages 0–100."""
    if not cases.cases:
        raise UsageError("this cases.json holds no case, so there is nothing to score")
    won, warnings = read_verdicts(journal, cases)
    tables = {column: _task_scores(cases, won, column) for column in COLUMNS}
    headline: Column = "witnessed"
    unscored = sum(task.unscored for task in tables[headline])
    scored_tasks = [task for task in tables[headline] if task.unscored == 0]
    incomplete = unscored > 0
    return {
        "schema": "cdb.scores/1",
        "headline": headline,
        "dataset": cases.dataset,
        "scope": cases.scope,
        "entry": cases.entry,
        "settings": settings,
        "columns": {column: _summary(_scored(tables[column]), seed) for column in COLUMNS},
        "coverage": {
            "tasks_scored": len(scored_tasks),
            "tasks": len(cases.cases),
            "criteria_scored": sum(task.n - task.unscored for task in tables[headline]),
            "criteria": sum(task.n for task in tables[headline]),
        },
        "submissions": {
            "present": sum(case.submission is not None for case in cases.cases),
            "of": len(cases.cases),
            "missing": [case.case for case in cases.cases if case.outcome == "missing"],
        },
        "incomplete": incomplete,
        "bounds": _bounds(tables[headline]) if incomplete else None,
        "by_attachment": _strata(cases, tables[headline]),
        "cases": [_case_line(cases, task, won) for task in tables[headline]],
        "flags": _flags(journal),
        "warnings": warnings,
    }


def _task_scores(
    cases: Cases, won: dict[tuple[str, int], dict[Column, Verdict | None]], column: Column
) -> list[TaskScore]:
    scores = []
    for case in cases.cases:
        verdicts = [won.get((case.case, c.criterion_index), {}).get(column) for c in case.criteria]
        counts = Counter(verdicts)
        scores.append(TaskScore(case.case, counts["PASS"], counts["PARTIAL"], counts["FAIL"], counts[None]))
    return scores


def _scored(tasks: Sequence[TaskScore]) -> list[TaskScore]:
    return [task for task in tasks if task.unscored == 0]


def _summary(tasks: Sequence[TaskScore], seed: int) -> dict[str, dict[str, float | None]]:
    """Mean and 95 % interval of each metric over the tasks that were scored whole."""
    if not tasks:
        return {metric: {"mean": None, "low": None, "high": None} for metric in METRICS}
    intervals: dict[str, Interval] = {
        metric: bootstrap_mean([getattr(task, metric) for task in tasks], seed=seed)
        for metric in ("strict", "graded")
    }
    intervals["full"] = wilson(sum(task.full == 1 for task in tasks), len(tasks))
    return {
        metric: {"mean": _percent(i.mean), "low": _percent(i.low), "high": _percent(i.high)}
        for metric, i in intervals.items()
    }


def _bounds(tasks: Sequence[TaskScore]) -> dict[str, dict[str, float]]:
    """Every metric with the unscored criteria as FAIL (low) and as PASS (high), over all tasks in scope."""
    return {
        metric: {
            "low": _percent(_mean(getattr(task, metric) for task in tasks)),
            "high": _percent(_mean(getattr(task.at_best(), metric) for task in tasks)),
        }
        for metric in METRICS
    }


def _strata(cases: Cases, tasks: Sequence[TaskScore]) -> dict[str, dict[str, float | int]]:
    kinds = {case.case: case.attachment for case in cases.cases}
    strata: dict[str, dict[str, float | int]] = {}
    for kind in sorted(set(kinds.values())):
        chosen = [task for task in _scored(tasks) if kinds[task.case] == kind]
        strata[kind] = {"tasks": len(chosen)}
        if chosen:
            strata[kind] |= {m: _percent(_mean(getattr(task, m) for task in chosen)) for m in METRICS}
    return strata


def _case_line(
    cases: Cases, task: TaskScore, won: dict[tuple[str, int], dict[Column, Verdict | None]]
) -> dict[str, Any]:
    case = next(c for c in cases.cases if c.case == task.case)
    if task.unscored:
        outcome = "unscored"
    elif case.submission is None:
        outcome = "missing"
    else:
        outcome = "unchanged" if case.submission.changed_files == 0 else "ok"
    numbers = {m: None if task.unscored else _percent(getattr(task, m)) for m in METRICS}
    return {
        "case": task.case,
        "attachment": case.attachment,
        "outcome": outcome,
        **numbers,
        "pass": task.passed,
        "partial": task.partial,
        "fail": task.failed,
        "unscored": task.unscored,
    }


def _lines(journal: Path, warnings: list[str]) -> list[tuple[int, dict[str, Any]]]:
    """Line numbers and records. A journal of ours must hold its hash chain; a foreign one is taken as it is."""
    if not journal.is_file():
        raise DataError(f"{journal} does not exist; make it with `cdb judge`")
    content = journal.read_bytes()
    if b'"cdb.journal/' in content:
        found = read_journal(journal)
        if found.torn_bytes:
            warnings.append("the last line is torn (no newline), ignored")
        return list(enumerate(found.records, start=1))
    lines = [(n, line) for n, line in enumerate(content.split(b"\n"), start=1) if line.strip()]
    records = []
    for number, line in lines:
        try:
            record = json.loads(line.decode("utf-8-sig"))
        except ValueError as error:
            if number == lines[-1][0] and not content.endswith(b"\n"):
                warnings.append("the last line is torn, ignored")
                break
            raise DataError(f"{journal}, line {number}: not JSON ({error}); repair or remove the line") from error
        if not isinstance(record, dict):
            raise DataError(f"{journal}, line {number}: not an object with case, criterion and verdict")
        records.append((number, record))
    return records


def _criterion_lookup(cases: Cases) -> dict[tuple[str, str | int], tuple[str, int]]:
    lookup: dict[tuple[str, str | int], tuple[str, int]] = {}
    for case in cases.cases:
        for c in case.criteria:
            for name in (c.criterion, c.rubric_id, c.criterion_index):
                lookup[case.case, name] = (case.case, c.criterion_index)
    return lookup


def _key(record: dict[str, Any], lookup: dict[tuple[str, str | int], tuple[str, int]]) -> tuple[str, int] | None:
    case = record.get("case", record.get("case_id"))
    for field in ("criterion_index", "rubric_id", "criterion"):
        value = record.get(field)
        if isinstance(case, str) and isinstance(value, str | int) and (case, value) in lookup:
            return lookup[case, value]
    return None


def _columns(record: dict[str, Any], number: int, journal: Path) -> dict[Column, Verdict | None]:
    if "verdict" not in record:
        raise DataError(f"{journal}, line {number}: no `verdict`; found {sorted(record)}")
    columns = record.get("columns") or {column: {"verdict": record["verdict"]} for column in COLUMNS}
    found: dict[Column, Verdict | None] = {}
    for column in COLUMNS:
        entry = columns.get(column) if isinstance(columns, dict) else None
        verdict = entry.get("verdict") if isinstance(entry, dict) else columns
        if verdict is not None and (not isinstance(verdict, str) or verdict not in VERDICTS):
            raise DataError(f"{journal}, line {number}: verdict {verdict!r}; allowed are PASS, PARTIAL and FAIL")
        found[column] = verdict
    return found


def _flags(journal: Path) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for _, record in _lines(journal, []):
        flags = record.get("flags")
        if isinstance(flags, list):
            counts.update(flag for flag in flags if isinstance(flag, str))
    return dict(sorted(counts.items()))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _percent(fraction: float) -> float:
    return round(100 * fraction, 4)


def settings_beside(journal: Path, cases: Cases) -> dict[str, Any]:
    """Judge, images, conditions and versions from the lock beside a journal of ours; empty for a foreign one.

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
    return {
        key: content[key] for key in ("judge", "images", "conditions", "versions", "plans_sha256") if key in content
    }
