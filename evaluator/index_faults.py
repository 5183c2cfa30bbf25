"""The two parquet indexes of a release, field by field against its archives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bench.checksums import why_no_content
from bench.errors import DataError
from bench.layout import ANNOTATIONS, ATTACHMENTS, CASES, PROJECT, QUERIES, SOLVER_ARCHIVE, Release
from bench.names import find_name, nfc
from bench.queries import read_queries
from evaluator.release_contents import Contents
from evaluator.rubric import Criterion

TASKS = "data/tasks.parquet"
RUBRICS = "data/rubrics.parquet"
COLUMNS = {
    TASKS: ("case_id", "request", "query_path", "project_path", "annotation_path", "attachment_paths"),
    RUBRICS: ("rubric_id", "case_id", "criterion_index", "criterion"),
}
"""The columns that are compared. The embedded picture is a preview and is never loaded."""
_REMEDY = "download both again"

Row = dict[str, Any]


def read_index(release: Release, name: str) -> list[Row]:
    """The rows of an index, its compared columns only. Raises DataError naming the file and the remedy."""
    import pyarrow.lib
    import pyarrow.parquet

    path = release.folder / name
    if why := why_no_content(path):
        raise DataError(why.replace(path.name, name, 1))
    try:
        there = pyarrow.parquet.read_schema(path).names
        if missing := [column for column in COLUMNS[name] if column not in there]:
            raise DataError(f"{name} has no column {missing[0]}; found {there}; download it again")
        table = pyarrow.parquet.read_table(path, columns=list(COLUMNS[name]), partitioning=None)
        rows: list[Row] = table.to_pylist()
        if not all(isinstance(row["case_id"], str) for row in rows):
            raise DataError(f"{name}: a row has no case_id that is a text; download it again")
    except (pyarrow.lib.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name} is no readable parquet file ({error}); download it again") from error
    return rows


def task_index_faults(release: Release, rows: list[Row], solver: Contents) -> Iterator[str]:
    """Every case once, its request verbatim, its paths in the archive, no attachment left out."""
    by_case = {row["case_id"]: row for row in rows}
    yield from _case_faults(TASKS, [row["case_id"] for row in rows], release)
    for case in release.case_ids:
        queries = solver.small.get(f"{CASES}/{case}/{QUERIES}")
        if case in by_case and queries is not None:
            yield from _request_faults(case, by_case[case]["request"], queries)
            yield from _path_faults(case, by_case[case], solver)


def rubric_index_faults(
    release: Release, rows: list[Row], rubrics: Mapping[str, tuple[Criterion, ...]]
) -> Iterator[str]:
    """Every criterion of every rubric, verbatim and in order, with an id of its own."""
    yield from _case_faults(RUBRICS, list(dict.fromkeys(row["case_id"] for row in rows)), release)
    ids = [row["rubric_id"] for row in rows]
    if twice := sorted({str(i) for i, times in Counter(ids).items() if times > 1 or not i}):
        yield f"{RUBRICS} gives {twice[0]!r} as the rubric_id of several criteria, or of none; download it again"
    by_case: dict[str, list[Row]] = {}
    for row in rows:
        by_case.setdefault(row["case_id"], []).append(row)
    for case, rubric in rubrics.items():
        if not (found := by_case.get(case)):
            continue
        yield from criteria_faults(RUBRICS, case, [row["criterion"] for row in found], rubric)
        indexes = [row["criterion_index"] for row in found]
        if indexes != list(range(1, len(found) + 1)):
            yield f"{RUBRICS} numbers the criteria of {case} {indexes}, not in order from 1; download it again"
        for row, criterion in zip(found, rubric, strict=False):
            if criterion.id_key == "rubric_id" and row["rubric_id"] != criterion.rubric_id:
                yield (
                    f"{RUBRICS} calls criterion {criterion.criterion_index} of {case} {row['rubric_id']!r}, its "
                    f"rubric.json {criterion.rubric_id!r}; {_REMEDY}"
                )


def criteria_faults(name: str, case: str, found: list[Any], rubric: tuple[Criterion, ...]) -> Iterator[str]:
    """How the criteria that `name` gives for a case differ from its rubric: their number, or the first one."""
    if len(found) != len(rubric):
        yield f"{name} holds {len(found)} criteria of {case}, its rubric.json {len(rubric)}; {_REMEDY}"
    for text, criterion in zip(found, rubric, strict=False):
        if text != criterion.text:
            yield (
                f"{name}: criterion {criterion.criterion_index} of {case} is {_short(text)}, which is not the text "
                f"in its rubric.json; {_REMEDY}"
            )
            return


def index_notes(release: Release, rows: list[Row]) -> list[str]:
    """What is unusual and harmless."""
    order = [row["case_id"] for row in rows]
    if sorted(map(str, order)) == sorted(release.case_ids) and order != list(release.case_ids):
        return [f"{TASKS} lists the cases in another order than manifest.json; the manifest's is used"]
    return []


def _case_faults(name: str, cases: list[Any], release: Release) -> Iterator[str]:
    listed, declared = set(cases), set(release.case_ids)
    if len(listed) != len(cases):
        twice = next(case for case in cases if cases.count(case) > 1)
        yield f"{name} lists the case {twice!r} twice; download it again"
    if missing := sorted(declared - listed):
        yield f"{name} lacks {len(missing)} of the manifest's {len(declared)} cases, first {missing[0]}; {_REMEDY}"
    if more := sorted(map(repr, listed - declared)):
        yield f"{name} lists {len(more)} cases that manifest.json does not name, first {more[0]}; {_REMEDY}"


def _request_faults(case: str, request: Any, content: bytes) -> Iterator[str]:
    name = f"{CASES}/{case}/{QUERIES}"
    try:
        text = read_queries(content, name)[0]
    except DataError as error:
        yield f"{SOLVER_ARCHIVE}: {error}"
        return
    if text != request:
        yield f"{name}: its first text is not the request {_short(request)} in {TASKS}; {_REMEDY}"


def _path_faults(case: str, row: Row, solver: Contents) -> Iterator[str]:
    base = f"{CASES}/{case}"
    for column, wanted in (("query_path", f"{base}/{QUERIES}"), ("project_path", f"{base}/{PROJECT}")):
        if _plain(row[column]) != wanted:
            yield f"{TASKS}: {column} of {case} is {_short(row[column])}, not {wanted!r}; {_REMEDY}"
    stored = solver.by_case.get(case, [])
    if row["annotation_path"] or solver.assets(case, ANNOTATIONS):
        yield from _missing(case, "annotation_path", row["annotation_path"], stored)
    listed = row["attachment_paths"] or []
    if not isinstance(listed, list):
        yield f"{TASKS}: attachment_paths of {case} is no list but {_short(listed)}; download it again"
        return
    for path in listed:
        yield from _missing(case, "attachment_paths", path, stored)
    named = {nfc(_plain(path)) for path in listed}
    for path in (path for path in solver.assets(case, ATTACHMENTS) if nfc(path) not in named):
        yield f"{TASKS} does not list {path!r} among the attachments of {case}; {_REMEDY}"
    if len(listed) > len({_plain(path) for path in listed}):
        yield f"{TASKS} lists an attachment of {case} twice; download it again"


def _missing(case: str, column: str, path: Any, stored: list[str]) -> Iterator[str]:
    """Names are compared under NFC; the archive keeps those it has."""
    plain = _plain(path)
    if not plain.startswith(f"{CASES}/{case}/{PROJECT}/"):
        yield f"{TASKS}: {column} of {case} names {_short(path)}, outside of its {PROJECT}/; {_REMEDY}"
        return
    try:
        if find_name(plain, stored) is None:
            yield f"{TASKS}: {column} of {case} names {_short(path)}, which the archives lack; {_REMEDY}"
    except DataError as error:
        yield f"{TASKS}: {column} of {case}: {error}; {_REMEDY}"


def _plain(path: Any) -> str:
    return str(path).removeprefix("./").rstrip("/")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "…"
