"""What an audit draws from: every criterion of a judging, with its verdict and the stratum it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import DataError, UsageError
from bench.journal import Record, of_type, read_journal
from bench.tree import file_sha256
from evaluator.audit.corrected import Frame
from evaluator.cases import Case, Cases, read_cases
from evaluator.judged import judged_so_far
from evaluator.records import CaseRecord, Column, CriterionRecord, Verdict

VALUES: dict[str, dict[Verdict | None, float]] = {
    "strict": {"PASS": 1.0, "PARTIAL": 0.0, "FAIL": 0.0, None: 0.0},
    "graded": {"PASS": 1.0, "PARTIAL": 0.5, "FAIL": 0.0, None: 0.0},
}
"""What a verdict is worth; no verdict counts as FAIL until people say otherwise."""
RANKS: dict[Verdict, int] = {"FAIL": 0, "PARTIAL": 1, "PASS": 2}
SETTLED = frozenset({"missing", "unchanged", "build_failed", "serve_failed", "app_hang"})
"""Rules that decide a criterion without anything to look at; such criteria are not drawn and count as they stand."""
LEVELS: tuple[tuple[str, ...], ...] = (
    ("attachment", "verdict", "flagged"),
    ("attachment", "verdict"),
    ("verdict",),
    (),
)
"""What strata are made by, finest first; a small audit has coarser ones."""


@dataclass(frozen=True)
class Judged:
    """One criterion as the judge left it. `settled`: nobody needs to look."""

    case: Case
    criterion_index: int
    text: str
    verdict: Verdict | None
    record: CriterionRecord | None
    settled: bool

    def traits(self, level: tuple[str, ...]) -> dict[str, Any]:
        told = {
            "attachment": self.case.attachment,
            "verdict": self.verdict or "none",
            "flagged": bool(self.record and self.record.flags),
        }
        return {name: told[name] for name in level}


@dataclass(frozen=True)
class Judging:
    """A results folder, read for an audit."""

    folder: Path
    cases: Cases
    criteria: list[Judged]
    case_records: dict[str, CaseRecord]
    journal_sha256: str

    def strata(self, level: tuple[str, ...]) -> list[tuple[dict[str, Any], list[int]]]:
        """Strata in a fixed order: their traits and the positions of their criteria."""
        found: dict[tuple[str, ...], list[int]] = {}
        for position, criterion in enumerate(self.criteria):
            if not criterion.settled:
                key = tuple(str(value) for value in criterion.traits(level).values())
                found.setdefault(key, []).append(position)
        return [(self.criteria[p[0]].traits(level), p) for _, p in sorted(found.items())]

    def frame(self, level: tuple[str, ...], metric: str) -> Frame:
        n = len(self.criteria)
        stratum = np.full(n, -1, dtype=np.int64)
        for number, (_, positions) in enumerate(self.strata(level)):
            stratum[positions] = number
        tasks = {case.case: number for number, case in enumerate(self.cases.cases)}
        _, task = np.unique([tasks[c.case.case] for c in self.criteria], return_inverse=True)
        by_verdict = "verdict" in level
        pool = [(RANKS[c.verdict] + 1 if c.verdict else 0) if by_verdict else 0 for c in self.criteria]
        judge = np.array([VALUES[metric][c.verdict] for c in self.criteria])
        return Frame(task.astype(np.int64), stratum, np.array(pool, dtype=np.int64), judge)


def read_judging(folder: Path, column: Column) -> Judging:
    """Raises UsageError for what is no finished judging of ours, DataError for a journal that cannot be trusted."""
    journal = folder / "journal.jsonl"
    if not journal.is_file() or not (folder / "cases.json").is_file():
        raise UsageError(f"{folder} is no results folder (cases.json, journal.jsonl); give what `cdb judge` wrote")
    cases = read_cases(folder / "cases.json")
    records = read_journal(journal).records
    case_records = {r["case"]: _case_record(r, journal) for r in of_type(records, "case")}
    if behind := [case.case for case in cases.cases if case.case not in case_records]:
        raise UsageError(f"{folder}: {behind[0]} is not judged yet; finish it with the same `cdb judge`")
    last = judged_so_far(records).last
    criteria = [
        _judged(case, c.criterion_index, c.criterion, last.get((case.case, c.criterion_index)), case_records, column)
        for case in cases.cases
        for c in case.criteria
    ]
    return Judging(folder, cases, criteria, case_records, f"sha256:{file_sha256(journal)}")


def _judged(
    case: Case, index: int, text: str, line: Record | None, cases: dict[str, CaseRecord], column: Column
) -> Judged:
    if line is None:
        settled = cases[case.case].outcome in SETTLED
        return Judged(case, index, text, "FAIL" if settled else None, None, settled)
    try:
        record = CriterionRecord.model_validate({k: v for k, v in line.items() if k in CriterionRecord.model_fields})
    except ValueError as error:
        raise DataError(f"{case.case} criterion {index}: the record has not its format's shape: {error}") from error
    decided = record.columns.get(column)
    settled = decided is not None and decided.rule in SETTLED
    return Judged(case, index, text, decided.verdict if decided else None, record, settled)


def _case_record(line: Record, journal: Path) -> CaseRecord:
    try:
        return CaseRecord.model_validate({k: v for k, v in line.items() if k in CaseRecord.model_fields})
    except ValueError as error:
        raise DataError(f"{journal}: the record of a case has not its format's shape: {error}") from error
