"""The solver's side of one entry, where its folder is at hand: trials, seals, trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from evaluator.report.reading import Json, Results, journal_lines, mapping, read_json


@dataclass(frozen=True)
class Trial:
    """One case's last trial. `folder` None: the trial's own files are not at hand."""

    folder: Path | None = None
    submission: Path | None = None
    record: Json = field(default_factory=dict)
    seal: Json = field(default_factory=dict)
    missing: Json = field(default_factory=dict)
    """What cases.json says of the trial of a case without a submission."""


def read_trials(results: Results) -> dict[str, Trial]:
    """Case → trial, for every case of `results.cases`. What cannot be read is missing; its page says so."""
    submissions: dict[str, Path] = {}
    for case in results.cases:
        folder = mapping(case.get("submission")).get("folder")
        if isinstance(folder, str):
            submissions[case["case"]] = Path((results.folder / folder).absolute())
    entry = next(
        (p.parent.parent for p in submissions.values() if (p.parent.parent / "journal.jsonl").is_file()), None
    )
    records: dict[str, Json] = {}
    for _, line in journal_lines(entry / "journal.jsonl", []) if entry else ():
        if line.get("type") == "trial" and isinstance(line.get("case"), str):
            records[line["case"]] = line
    return {
        case["case"]: _trial(case, submissions.get(case["case"]), entry, records.get(case["case"], {}))
        for case in results.cases
    }


def _trial(case: Json, submission: Path | None, entry: Path | None, record: Json) -> Trial:
    seal: Json = {}
    if submission is not None:
        seal = read_json(submission.with_name(f"{submission.name}.manifest.json"), [])
    logs = record.get("logs")
    folder = None
    if entry is not None and isinstance(logs, str):
        inside = (entry / logs).resolve()
        folder = inside if inside.is_relative_to(entry.resolve()) and inside.is_dir() else None
    return Trial(folder, submission, record, seal, mapping(case.get("trial")))
