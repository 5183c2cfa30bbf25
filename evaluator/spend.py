"""`spend.json`: money, tokens and time of a result. A resume may change them, so they are not in scores.json."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.journal import JournalStream, Record, of_type
from bench.submission import read_manifest
from bench.usage import summed, usages_of
from evaluator.cases import Cases

SCHEMA = "cdb.spend/1"


def spend(cases: Cases, folder: Path, journal: Path) -> dict[str, Any]:
    """What solving and judging took, every try and every superseded verdict included: what was spent was spent.

    `folder`: the one cases.json lies in, which its paths are relative to. Unknown cost is null, never 0.
    """
    judged = _ours(journal)
    return {
        "schema": SCHEMA,
        "solve": _sum(_solved(cases, folder)),
        "judge": {**_sum(judged), "duration_s": _time(of_type(judged, "case"))},
    }


def _solved(cases: Cases, folder: Path) -> list[Record]:
    """The trials of the entry the submissions lie in; for submissions made elsewhere what their seals tell."""
    if not any(case.submission for case in cases.cases):
        return [{"usage": {"cost_usd": None}}]  # nothing leads to what it took
    places = [((folder / case.submission.folder).parent, case.case) for case in cases.cases if case.submission]
    entry = places[0][0].parent / "journal.jsonl" if places else None
    if entry and entry.is_file():
        scope = {case.case for case in cases.cases}
        return _once([record for record in _ours(entry) if record["type"] == "trial" and record["case"] in scope])
    seals = [read_manifest(submissions, case) for submissions, case in places]
    return [{"duration_s": seal.duration_s, "usage": seal.usage} for seal in seals if seal]


def _once(trials: list[Record]) -> list[Record]:
    """Without the adopted records (of a seal whose line was lost) that tell what another line of the case tells."""
    told = [(record["case"], record.get("account")) for record in trials if not record.get("adopted")]
    return [r for r in trials if not r.get("adopted") or (r["case"], r.get("account")) not in told]


def _ours(journal: Path) -> list[Record]:
    """The records of a journal of ours that tell of time or money; none of a foreign one."""
    with journal.open("rb") as stream:
        if b'"cdb.journal/' not in stream.readline():
            return []
    kept = ("type", "case", "duration_s", "usage", "account", "adopted")
    return [
        {key: record[key] for key in kept if key in record}
        for record in JournalStream(journal)
        if record.get("type") in ("criterion", "case", "trial")
    ]


def _sum(records: list[Record]) -> dict[str, Any]:
    return {
        "duration_s": _time(records),
        "usage": summed(usage for record in records for usage in usages_of(record)),
    }


def _time(records: Iterable[Record]) -> float:
    return round(sum(float(record.get("duration_s") or 0) for record in records), 3)
