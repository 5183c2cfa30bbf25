"""`spend.json`: money, tokens and time of a result. A resume may change them, so they are not in scores.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.journal import JournalStream, Record
from bench.submission import read_manifest
from evaluator.cases import Cases

SCHEMA = "cdb.spend/1"


def spend(cases: Cases, folder: Path, journal: Path) -> dict[str, Any]:
    """What solving (from the submissions' seals) and judging (from the journal) took. Unknown cost is null, never 0.

    `folder`: the one cases.json lies in, which its paths are relative to.
    """
    seals = [
        read_manifest((folder / case.submission.folder).parent, case.case) for case in cases.cases if case.submission
    ]
    solved = [
        {"duration_s": seal.duration_s or 0.0, "usage": seal.usage} for seal in seals if seal and seal.started_at
    ]
    return {"schema": SCHEMA, "solve": _sum(solved), "judge": _sum(_judged(journal))}


def _judged(journal: Path) -> list[Record]:
    """Every record that cost something, superseded ones too: what was spent was spent."""
    with journal.open("rb") as stream:
        if b'"cdb.journal/' not in stream.readline():
            return []
    kept = ("type", "duration_s", "usage")
    return [
        {key: record[key] for key in kept if key in record and (key != "duration_s" or record["type"] == "case")}
        for record in JournalStream(journal)
        if record.get("type") in ("criterion", "case")
    ]


def _sum(records: list[Record]) -> dict[str, Any]:
    usages = [_flat(usage) for record in records if isinstance(usage := record.get("usage"), dict) and usage]
    keys = sorted({key for usage in usages for key, value in usage.items() if _is_number(value) or value is None})
    return {
        "duration_s": round(sum(float(record.get("duration_s") or 0) for record in records), 3),
        "usage": {key: _total([usage[key] for usage in usages if key in usage]) for key in keys},
    }


def _flat(usage: Record) -> Record:
    """Token counts by kind become `tokens.input` and so on."""
    tokens = usage.get("tokens")
    inner = {f"tokens.{kind}": value for kind, value in tokens.items()} if isinstance(tokens, dict) else {}
    return {**usage, **inner}


def _total(values: list[Any]) -> float | int | None:
    """The sum, null as soon as one is unknown."""
    if not all(_is_number(value) for value in values):
        return None
    total = sum(values)
    return round(total, 6) if isinstance(total, float) else total


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
