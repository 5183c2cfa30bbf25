"""One entry's results folder, brought in. Only a folder that is not there is an error.

A report is most wanted when something went wrong, so every file may be missing or partly unreadable; what is,
ends up in `notes`, which the page shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import DataError, UsageError
from bench.journal import read_journal
from evaluator.records import CaseRecord, CriterionRecord

Json = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """What one judging left behind. Keys of `criteria` are (case, criterion_index)."""

    folder: Path
    lock: Json
    scores: Json
    cases: list[Json]
    criteria: dict[tuple[str, int], CriterionRecord]
    case_records: dict[str, CaseRecord]
    judged_at: str = ""
    spend: Json = field(default_factory=dict)
    run_card: str = ""
    notes: list[str] = field(default_factory=list)


def read_results(folder: Path) -> Results:
    """Read lock.json, cases.json, scores.json and journal.jsonl of `folder`.

    Raises UsageError when it is no folder or holds none of the four.
    """
    names = ("lock.json", "cases.json", "scores.json", "journal.jsonl")
    if not any((folder / name).is_file() for name in names):
        raise UsageError(f"{folder} is no results folder (none of {', '.join(names)}); give what `cdb judge` wrote")
    notes: list[str] = []
    lock, cases, scores = (read_json(folder / name, notes) for name in names[:3])
    lines = journal_lines(folder / "journal.jsonl", notes)
    listed = [case for case in items(cases.get("cases")) if isinstance(case.get("case"), str)]
    places = {
        (case["case"], criterion.get(name)): criterion.get("criterion_index")
        for case in listed
        for criterion in items(case.get("criteria"))
        for name in ("criterion", "rubric_id")
        if isinstance(criterion.get(name), str)
    }
    criteria: dict[tuple[str, int], CriterionRecord] = {}
    case_records: dict[str, CaseRecord] = {}
    for number, line in lines:
        kind = line.get("type", "criterion")
        if kind == "case":
            case_record = _case_record(line, number, notes)
            if case_record:
                case_records[case_record.case] = case_record
        elif kind == "criterion":
            record = _criterion_record(line, number, places, notes)
            if record is None:
                continue
            key = (record.case, record.criterion_index)
            if key in criteria and "supersedes" not in line:
                notes.append(f"journal.jsonl, line {number}: a second verdict for {key[0]} #{key[1]} was ignored")
            else:
                criteria[key] = record
    notes += [f"scores.json: {warning}" for warning in scores.get("warnings") or () if isinstance(warning, str)]
    stamps = [line["at"] for _, line in lines if isinstance(line.get("at"), str)]
    spend = read_json(folder / "spend.json", []) if (folder / "spend.json").is_file() else {}
    return Results(
        folder, lock, scores, listed, criteria, case_records, max(stamps, default=""), spend,
        read_text(folder / "run_card.md"), notes,
    )  # fmt: skip


def mapping(value: object) -> Json:
    """`value` when it is a JSON object, else an empty one: a wrong shape shows as nothing, not as a crash."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Json]:
    """The objects in `value` when it is a JSON array, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: object) -> float | None:
    """`value` when it is a finite JSON number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e12 else None


def read_text(path: Path, at_most: int = 200_000) -> str:
    """The beginning of a text file; empty where there is none."""
    try:
        with path.open("rb") as stream:
            return stream.read(at_most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def read_json(path: Path, notes: list[str]) -> Json:
    """The object in `path`; an empty one where there is none, with the reason in `notes`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        notes.append(f"{path.name} is missing")
        return {}
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{path.name} could not be read: {error.__class__.__name__}")
        return {}
    if not isinstance(value, dict):
        notes.append(f"{path.name} is not a JSON object")
    return mapping(value)


def journal_lines(path: Path, notes: list[str]) -> list[tuple[int, Json]]:
    """The journal's objects with their line numbers; a broken hash chain or a bad line is noted, not fatal."""
    try:
        content = path.read_bytes()
    except OSError:
        notes.append(f"{path.name} is missing or unreadable: no verdict can be shown")
        return []
    lines: list[tuple[int, Json]] = []
    for at, text in enumerate(content.split(b"\n"), start=1):
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            notes.append(f"{path.name}, line {at} is not JSON and was skipped")
            continue
        if isinstance(value, dict):
            lines.append((at, value))
    if any("prev" in line for _, line in lines):
        try:
            read_journal(path)
        except DataError:
            notes.append(f"{path.name}: the hash chain is broken, so a line was edited, added or removed")
    return lines


def _case_record(line: Json, at: int, notes: list[str]) -> CaseRecord | None:
    try:
        return CaseRecord.model_validate({k: v for k, v in line.items() if k in CaseRecord.model_fields})
    except ValidationError:
        notes.append(f"journal.jsonl, line {at}: the case record does not have its format's shape")
        return None


def _criterion_record(
    line: Json, at: int, places: dict[tuple[str, Any], Any], notes: list[str]
) -> CriterionRecord | None:
    """A record of ours; or, of a foreign journal, case, criterion (position, text or id) and verdict alone."""
    known = {k: v for k, v in line.items() if k in CriterionRecord.model_fields}
    try:
        return CriterionRecord.model_validate(known)
    except ValidationError:
        pass
    case = line.get("case", line.get("case_id"))
    index = line.get("criterion_index", line.get("rubric_id", line.get("criterion")))
    if isinstance(case, str) and isinstance(index, str):
        index = places.get((case, index))
    bare: Json = {"case": case, "criterion_index": index, "verdict": line.get("verdict")}
    rest = {"rubric_id": "", "criterion": "", "kind": "mixed", "outcome": line.get("outcome", "ok")}
    try:
        record = CriterionRecord.model_validate(bare | rest)
    except ValidationError:
        notes.append(f"journal.jsonl, line {at}: the criterion record does not have its format's shape")
        return None
    if (
        len(line.keys() - {"type", "schema", "seq", "prev", "at", "case", "criterion", "criterion_index", "verdict"})
        > 0
    ):
        notes.append(f"journal.jsonl, line {at}: only case, criterion and verdict could be read")
    return record
