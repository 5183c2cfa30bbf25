"""One entry's results as exports need them: read strictly, since a table or log is trusted where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from bench.journal import JournalStream, Record, of_type, read_journal
from bench.strict_json import read_json
from bench.submission import SubmissionManifest, read_manifest
from evaluator.case_rows import case_rows
from evaluator.cases import Case, Cases, read_cases
from evaluator.metrics import TaskCounts, count
from evaluator.overrides import Override, apply_overrides
from evaluator.records import Column
from evaluator.score import HEADLINE
from evaluator.verdicts import VerdictTable, read_verdicts

Key = tuple[str, int]


@dataclass(frozen=True)
class Entry:
    """What one results folder holds. `records`: the record that counts for each criterion; of a foreign journal,
    which has none of ours, empty. `trials`: the solve run's last record of each case, where there was one."""

    name: str
    folder: Path
    cases: Cases
    table: VerdictTable
    scores: dict[str, Any]
    lock: dict[str, Any]
    records: dict[Key, Record]
    trials: dict[str, Record]
    rows: list[dict[str, Any]]
    """As in scores.json's `cases`, in the order of cases.json; overruled verdicts are in."""

    def verdict(self, case: str, index: int, column: Column) -> str | None:
        """What was judged and found, before any person overruled it, comes from `records`; this is what counts."""
        return self.table.verdict((0, self.table.index.keys.index((case, index))), column)

    def seal(self, case: Case) -> SubmissionManifest | None:
        return read_manifest((self.folder / case.submission.folder).parent, case.case) if case.submission else None

    @property
    def solve_entry(self) -> Path | None:
        """The solve run's folder the submissions lie in, where it is still there."""
        return solve_entry(self.cases, self.folder)


def read_entries(results: list[Path]) -> list[Entry]:
    """Raises UsageError for a folder without scores.json or two of one name, DataError for a damaged journal."""
    entries = [read_entry(folder) for folder in results]
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two results folders are called {twice!r}; rename one, the name tells entries apart")
    return entries


def read_entry(folder: Path) -> Entry:
    scores_file, journal = folder / "scores.json", folder / "journal.jsonl"
    if not scores_file.is_file():
        raise UsageError(f"{folder} has no scores.json; run `cdb score` first, then export")
    scores, cases = read_json(scores_file), read_cases(folder / "cases.json")
    if scores.get("attempts"):
        raise UsageError(f"{folder} holds several attempts in one journal; export each attempt's own results folder")
    table = read_verdicts(journal, cases)
    apply_overrides(table, overrides_of(scores))
    lock = read_json(folder / "lock.json") if (folder / "lock.json").is_file() else {}
    solved = solve_entry(cases, folder)
    counts: TaskCounts = count(table, HEADLINE)
    return Entry(
        name=results_name(folder),
        folder=folder,
        cases=cases,
        table=table,
        scores=scores,
        lock=lock,
        records=_records(journal),
        trials={str(r["case"]): r for r in of_type(read_journal(solved / "journal.jsonl").records, "trial")}
        if solved
        else {},
        rows=case_rows(cases, table, counts),
    )


def results_name(folder: Path) -> str:
    """What a results folder is called: by its own name, or by its entry's where a run keeps it within the entry
    (`ENTRY/results/`, or `ENTRY/results/JUDGE/`)."""
    here = folder.resolve()
    if here.name == "results":
        return here.parent.name
    if here.parent.name == "results" and (here.parent.parent / "journal.jsonl").is_file():
        return f"{here.parent.parent.name}__{here.name}"
    return here.name


def overrides_of(scores: dict[str, Any]) -> list[Override]:
    """The verdicts a person overruled, as scores.json tells them."""
    told = scores.get("overrides") or []
    return [Override.model_validate({k: v for k, v in one.items() if k != "raw"}) for one in told]


def solve_entry(cases: Cases, folder: Path) -> Path | None:
    for case in cases.cases:
        if case.submission:
            entry = (folder / case.submission.folder).resolve().parent.parent
            return entry if (entry / "journal.jsonl").is_file() else None
    return None


def _records(journal: Path) -> dict[Key, Record]:
    """The record that counts for each criterion of a journal of ours: the last, which replaces those before."""
    with journal.open("rb") as stream:
        if b'"cdb.journal/' not in stream.readline():
            return {}
    return {(r["case"], r["criterion_index"]): r for r in JournalStream(journal) if r.get("type") == "criterion"}
