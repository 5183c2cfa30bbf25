"""`cdb dataset verify` and `info`: checksums first, then archives, indexes and rubric exports against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.checksums import file_faults
from bench.errors import DataError
from bench.layout import CASES, EVALUATION_ARCHIVE, MANIFEST, SOLVER_ARCHIVE, Release
from bench.release import all_faults, open_release
from bench.strict_json import parse_json
from evaluator.attachments import ORDER, primary_kind
from evaluator.export_faults import export_faults, exports
from evaluator.index_faults import (
    RUBRICS,
    TASKS,
    index_notes,
    read_index,
    rubric_index_faults,
    task_index_faults,
)
from evaluator.release_contents import Contents, archive_differences, content_faults, read_contents
from evaluator.rubric import RUBRIC, Criterion, parse_rubric

MOST_SHOWN = 40
LABELS = {"audio": "Audio", "video": "Video", "document": "Document", "image": "Image", "none": "No extra attachment"}
ME_96 = {"audio": 32, "video": 24, "document": 16, "image": 4, "none": 20}
"""The card's table."""


def verify_release(folder: Path) -> dict[str, Any]:
    """Check a release as a whole: counts, `notes`, and one message in `faults` for each fault, none when all is good.

    A file that its checksum condemns is looked at no further. Raises UsageError for a wrong folder and DataError
    when manifest or SHA256SUMS cannot be read at all.
    """
    release = open_release(folder)
    good, bad_files, notes = file_faults(release)
    faults = [fault.message for fault in bad_files]
    bad = {fault.name for fault in bad_files}
    rubrics: dict[str, tuple[Criterion, ...]] = {}
    skipped = [name for name in (MANIFEST, SOLVER_ARCHIVE, EVALUATION_ARCHIVE) if name in bad]
    archives = () if MANIFEST in bad else (SOLVER_ARCHIVE, EVALUATION_ARCHIVE)
    contents = {name: _contents(release, name, faults, notes) for name in archives if name not in bad}
    solver, evaluation = contents.get(SOLVER_ARCHIVE), contents.get(EVALUATION_ARCHIVE)
    if solver and evaluation:
        faults += archive_differences(solver, evaluation)
    if solver and TASKS not in bad:
        faults += _said(_task_index(release, solver, notes))
    if evaluation:
        faults += _said(_rubrics(release, evaluation, rubrics))
        if RUBRICS not in bad:
            faults += _said(_rubric_index(release, rubrics))
        for name in (name for name in exports(release) if name not in bad):
            faults += _said(export_faults(release, name, rubrics, notes))
    if skipped:
        notes.append(f"nothing was compared with {', '.join(skipped)}, bad as it is")
    return {
        "name": release.name,
        "version": release.version,
        "files": len(good),
        "tasks": len(release.case_ids),
        "criteria": sum(len(rubric) for rubric in rubrics.values()),
        "faults": faults,
        "notes": notes,
    }


def require_faultless(folder: Path, found: dict[str, Any]) -> None:
    """Raises DataError with every fault that `verify_release` found, the first `MOST_SHOWN` in full."""
    faults = list(found["faults"])
    if len(faults) > MOST_SHOWN:
        faults[MOST_SHOWN:] = [f"… and {len(faults) - MOST_SHOWN} more"]
    if faults:
        raise DataError(all_faults(folder, faults))


def describe_release(folder: Path) -> dict[str, Any]:
    """Name, counts and the table by primary attachment, from the index alone; nothing is verified.

    `notes` says when a release of 96 tasks does not come out as the card's ME-96.
    """
    release = open_release(folder)
    listed = [row["attachment_paths"] for row in read_index(release, TASKS)]
    if not all(paths is None or (isinstance(paths, list) and None not in paths) for paths in listed):
        raise DataError(f"{TASKS}: an attachment_paths is no list of texts; run `cdb dataset verify {folder}`")
    kinds = Counter(primary_kind(paths or ()) for paths in listed)
    table = {kind: kinds.get(kind, 0) for kind in (*ORDER, "none")}
    notes = []
    if len(release.case_ids) == sum(ME_96.values()) and table != ME_96:
        card = ", ".join(f"{LABELS[kind].lower()} {count}" for kind, count in ME_96.items())
        notes.append(
            f"this is not the table of ME-96's card ({card}). If it is ME-96, the rule by which attachments are "
            "told apart (docs/dataset.md) does not fit it: quote no numbers by attachment"
        )
    if sum(table.values()) != len(release.case_ids):
        notes.append(
            f"{TASKS} has {sum(table.values())} rows for {len(release.case_ids)} cases; run `cdb dataset verify`"
        )
    return {
        "name": release.name,
        "version": release.version,
        "tasks": len(release.case_ids),
        "criteria": release.criteria,
        "by_attachment": table,
        "notes": notes,
    }


def table_lines(found: dict[str, Any]) -> list[str]:
    """The card's table by primary attachment, for people."""
    rows = [(LABELS[kind], count) for kind, count in found["by_attachment"].items()]
    rows.append(("Total", sum(found["by_attachment"].values())))
    return [f"{'Primary attachment':<20} {'Tasks':>5}", *(f"{label:<20} {count:>5}" for label, count in rows)]


def _said(messages: Iterable[str]) -> list[str]:
    """Every message of a check, and the error that ended it early, if one did."""
    found: list[str] = []
    try:
        for message in messages:
            found.append(message)  # one by one: what came before an error is kept
    except DataError as error:
        found.append(str(error))
    return found


def _contents(release: Release, archive: str, faults: list[str], notes: list[str]) -> Contents | None:
    try:
        contents = read_contents(release, archive)
    except DataError as error:
        faults.append(str(error))
        return None
    faults += content_faults(release, contents)
    notes += contents.twins
    return contents


def _task_index(release: Release, solver: Contents, notes: list[str]) -> Iterator[str]:
    rows = read_index(release, TASKS)
    notes += index_notes(release, rows)
    yield from task_index_faults(release, rows, solver)


def _rubrics(release: Release, evaluation: Contents, rubrics: dict[str, tuple[Criterion, ...]]) -> Iterator[str]:
    """Fill `rubrics` with those that can be read; their number must be the manifest's."""
    for case in release.case_ids:
        name = f"{CASES}/{case}/{RUBRIC}"
        if (content := evaluation.small.get(name)) is None:
            continue
        try:
            rubrics[case] = parse_rubric(parse_json(content, name), case, name)
        except DataError as error:
            yield f"{EVALUATION_ARCHIVE}: {error}"
    found = sum(len(rubric) for rubric in rubrics.values())
    if len(rubrics) == len(release.case_ids) and release.criteria not in (None, found):
        yield (
            f"manifest.json declares {release.criteria} criteria, the rubrics in {EVALUATION_ARCHIVE} hold {found}; "
            "download both again"
        )


def _rubric_index(release: Release, rubrics: dict[str, tuple[Criterion, ...]]) -> Iterator[str]:
    yield from rubric_index_faults(release, read_index(release, RUBRICS), rubrics)
