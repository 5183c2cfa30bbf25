"""Reading results folders for a comparison: which of them are attempts, or judgings, of the same entrant."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UsageError
from bench.strict_json import read_json
from evaluator.cases import Cases, read_cases
from evaluator.metrics import METRICS, Metric, TaskCounts, count, mean
from evaluator.overrides import Override, apply_overrides
from evaluator.records import Column
from evaluator.score import settings_beside
from evaluator.verdicts import read_verdicts

Who = tuple[str, str | None, str | None]
"""Agent, model, harness."""


@dataclass(frozen=True)
class Result:
    """One results folder. `values`: metric → case → fraction, for cases scored whole only."""

    folder: Path
    cases: Cases
    settings: dict[str, Any]
    values: dict[Metric, dict[str, float]]
    usd: float | None
    """What solving and judging cost; None where it is unknown."""

    @property
    def who(self) -> Who:
        """Submissions of unknown origin are an entrant of their own: nothing says that two sets have one maker."""
        entry = self.cases.entry
        unknown = f"unknown {hashlib.sha256(self.submissions.encode()).hexdigest()[:8]}"
        return str(entry.get("agent") or unknown), entry.get("model"), entry.get("harness")

    @property
    def submissions(self) -> str:
        """Identifies what was judged: two results with the same are two judgings of one attempt."""
        return json.dumps([[c.case, c.submission.digest if c.submission else None] for c in self.cases.cases])

    @property
    def attempt(self) -> tuple[Any, str]:
        return self.cases.entry.get("attempt"), self.submissions


@dataclass
class Entrant:
    """One agent × model × harness with all its results."""

    who: Who
    results: list[Result] = field(default_factory=list)

    @property
    def name(self) -> str:
        agent, model, harness = self.who
        base = f"{agent}__{model}" if model else agent
        return base if harness in (None, "cdb") else f"{base} ({harness})"

    @property
    def attempts(self) -> list[list[Result]]:
        """Its results, one list of judgings for each attempt."""
        grouped: dict[tuple[Any, str], list[Result]] = {}
        for result in self.results:
            grouped.setdefault(result.attempt, []).append(result)
        return list(grouped.values())

    def levels(self, metric: Metric) -> dict[str, list[list[float]]]:
        """Case → for each attempt its judgings' values; cases not scored whole everywhere are left out."""
        cases = set.intersection(*(set(result.values[metric]) for result in self.results))
        return {
            case.case: [[r.values[metric][case.case] for r in judgings] for judgings in self.attempts]
            for case in self.results[0].cases.cases
            if case.case in cases
        }

    def task_means(self, metric: Metric) -> dict[str, float]:
        """Case → mean over its attempts of the mean over their judgings."""
        return {case: mean(mean(j) for j in attempts) for case, attempts in self.levels(metric).items()}


def read_entrants(folders: list[Path], column: Column) -> list[Entrant]:
    """Group results by who made them, in the order given. Raises UsageError when one folder is given twice."""
    entrants: dict[Who, Entrant] = {}
    for place, folder in enumerate(folders):
        if folder.resolve() in [other.resolve() for other in folders[:place]]:
            raise UsageError(f"{folder} is given twice; a result compares with others, not with itself")
        result = read_result(folder, column)
        entrants.setdefault(result.who, Entrant(result.who)).results.append(result)
    return list(entrants.values())


def read_result(folder: Path, column: Column) -> Result:
    """Raises UsageError for a folder that is no results folder, DataError for a journal that cannot be trusted."""
    if not (folder / "journal.jsonl").is_file() or not (folder / "cases.json").is_file():
        raise UsageError(f"{folder} is no results folder (cases.json, journal.jsonl); give what `cdb judge` wrote")
    cases = read_cases(folder / "cases.json")
    table = read_verdicts(folder / "journal.jsonl", cases)
    apply_overrides(table, _overrides(folder))
    values = _values(cases, count(table, column))
    return Result(folder, cases, settings_beside(folder / "journal.jsonl", cases), values, _usd(folder))


def _values(cases: Cases, counts: TaskCounts) -> dict[Metric, dict[str, float]]:
    names = [case.case for case in cases.cases]
    return {
        metric: {n: v for n, v in zip(names, counts.scored(metric)[0].tolist(), strict=True) if not np.isnan(v)}
        for metric in METRICS
    }


def _overrides(folder: Path) -> list[Override]:
    """The ones scores.json was made with, so that both say the same."""
    path = folder / "scores.json"
    said = read_json(path).get("overrides", []) if path.is_file() else []
    return [Override.model_validate({k: v for k, v in line.items() if k != "raw"}) for line in said]


def _usd(folder: Path) -> float | None:
    path = folder / "spend.json"
    if not path.is_file():
        return None
    spent = read_json(path)
    parts = [spent[side]["usage"].get("cost_usd", 0.0) for side in ("solve", "judge")]
    return None if None in parts else float(sum(parts))
