"""Strict, Graded and Full for each task and attempt (dataset card, "Evaluation and metrics")."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evaluator.records import COLUMNS, Column
from evaluator.verdicts import FAIL, NONE, PARTIAL, PASS, VerdictTable

Metric = Literal["strict", "graded", "full"]
METRICS: tuple[Metric, ...] = ("strict", "graded", "full")

Counts = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class TaskCounts:
    """How many criteria of each task and attempt got which verdict; every array is (attempts, tasks)."""

    passed: Counts
    partial: Counts
    failed: Counts
    unscored: Counts

    @property
    def n(self) -> Counts:
        """Criteria of each task."""
        return self.passed + self.partial + self.failed + self.unscored

    def values(self, metric: Metric) -> Values:
        """Fractions, with the unscored criteria as FAIL.

        Strict = #PASS/n, Graded = (#PASS + ½ #PARTIAL)/n, Full = 1 when all are PASS.
        """
        found: Values
        match metric:
            case "strict":
                found = self.passed / self.n
            case "graded":
                found = (self.passed + 0.5 * self.partial) / self.n
            case "full":
                found = (self.passed == self.n).astype(np.float64)
        return found

    def scored(self, metric: Metric) -> Values:
        """The same, NaN for a task and attempt with an unscored criterion: such a pair is in no mean."""
        return np.where(self.unscored == 0, self.values(metric), np.nan)

    def equals(self, other: TaskCounts) -> bool:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(own, theirs) for own, theirs in pairs)

    def at_best(self) -> TaskCounts:
        """The same tasks if every unscored criterion were PASS."""
        nothing = np.zeros_like(self.unscored)
        return TaskCounts(self.passed + self.unscored, self.partial, self.failed, nothing)


def count(table: VerdictTable, column: Column) -> TaskCounts:
    """Count one column of a table by task."""
    codes, starts = table.codes[COLUMNS.index(column)], table.index.starts

    def of(code: int) -> Counts:
        return np.add.reduceat(codes == code, starts, axis=1, dtype=np.int64)

    return TaskCounts(passed=of(PASS), partial=of(PARTIAL), failed=of(FAIL), unscored=of(NONE))


def by_task(scored: Values) -> list[float | None]:
    """Each task's mean over its scored attempts; None where no attempt was scored whole."""
    if len(scored) == 1:
        return [None if math.isnan(value) else value for value in scored[0].tolist()]
    means: list[float | None] = []
    for column in scored.T:
        values = column[~np.isnan(column)]
        means.append(mean(values.tolist()) if len(values) else None)
    return means


def mean(values: Iterable[float]) -> float:
    """Exactly rounded, so that no order of summing changes a digit. Raises ZeroDivisionError without a value."""
    listed = list(values)
    return math.fsum(listed) / len(listed)


def percent(fraction: float) -> float:
    return round(100 * fraction, 4)
