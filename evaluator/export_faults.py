"""The rubric exports of a release against the rubrics in its evaluation archive: CSV, JSONL, grouped JSON, ZIP.

The card names these files without their fields, so each is read by the keys that rubrics have; a file of another
shape is a fault that shows what was found, and one of an unknown kind is said to be left out.
"""

from __future__ import annotations

import csv
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from bench.errors import DataError
from bench.layout import Release
from bench.strict_json import parse_json
from evaluator.index_faults import criteria_faults
from evaluator.release_contents import MAX_SMALL_BYTES
from evaluator.rubric import RUBRIC, Criterion, parse_rubric

FOLDER = "rubrics"
_TEXTS = ("criterion", "text", "description")
_REMEDY = "download it again"
_BAD_ZIP = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, NotImplementedError, RuntimeError, ValueError),  # RuntimeError: it is encrypted
)

Rubrics = Mapping[str, tuple[Criterion, ...]]


def exports(release: Release) -> list[str]:
    """Names of the export files that are there: everything in `rubrics/`, and the ZIP packages."""
    folder = release.folder / FOLDER
    found = [*(folder.iterdir() if folder.is_dir() else ()), *release.folder.glob("*.zip")]
    names = [path.relative_to(release.folder).as_posix() for path in found if path.is_file()]
    return sorted(name for name in names if not PurePosixPath(name).name.startswith("."))


def export_faults(release: Release, name: str, rubrics: Rubrics, notes: list[str]) -> Iterator[str]:
    """How one export differs from the archive's rubrics. Adds to `notes` when there is no way to compare it."""
    path = release.folder / name
    match path.suffix:
        case ".jsonl":
            yield from _rows_faults(release, name, _jsonl_rows(path, name), rubrics)
        case ".csv":
            yield from _rows_faults(release, name, _csv_rows(path, name), rubrics)
        case ".json":
            yield from _json_faults(release, name, parse_json(path.read_bytes(), name), rubrics)
        case ".txt":
            ids = path.read_bytes().decode("utf-8-sig", "replace").split()
            yield from _case_list_faults(release, name, ids)
        case ".zip":
            yield from _zip_faults(release, path, rubrics)
        case _:
            notes.append(f"{name} is of no kind that is compared with the rubrics")


def _jsonl_rows(path: Path, name: str) -> Iterator[Any]:
    """Lines end in a newline only: a text may hold the other characters that Python's splitlines breaks at."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line.strip():
            yield parse_json(line, f"{name}, line {number}")


def _csv_rows(path: Path, name: str) -> Iterator[Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        csv.field_size_limit(MAX_SMALL_BYTES)
        yield from csv.DictReader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{name} is no CSV in UTF-8 ({error}); {_REMEDY}") from error


def _rows_faults(release: Release, name: str, rows: Iterator[Any], rubrics: Rubrics) -> Iterator[str]:
    found: dict[str, list[Any]] = {}
    for number, row in enumerate(rows, start=1):
        keys = [key for key in _TEXTS if isinstance(row, dict) and row.get(key) is not None]
        if not keys or not isinstance(row.get("case_id"), str):
            shown = sorted(map(str, row)) if isinstance(row, dict) else type(row).__name__
            raise DataError(f"{name}, record {number}: no `case_id` with a `criterion`; found {shown}; {_REMEDY}")
        found.setdefault(row["case_id"], []).append(row[keys[0]])
    yield from _grouped_faults(release, name, found, rubrics)


def _json_faults(release: Release, name: str, content: Any, rubrics: Rubrics) -> Iterator[str]:
    """Grouped criteria (case → rubric, or a list of objects that name their case), or the list of cases."""
    if isinstance(content, list) and all(isinstance(item, str) for item in content):
        yield from _case_list_faults(release, name, content)
        return
    groups = content
    if isinstance(content, dict) and not set(content) & set(rubrics):
        lists = [key for key in ("tasks", "cases", "rubrics") if isinstance(content.get(key), (list, dict))]
        if len(lists) != 1:
            raise DataError(f"{name}: no rubrics by case; found keys {sorted(content)[:8]}; {_REMEDY}")
        groups = content[lists[0]]
    if isinstance(groups, list):
        groups = _by_case(groups, name)
    found = {}
    for case, group in groups.items():
        found[case] = [c.text for c in parse_rubric(group, case, f"{name}, {case}")]
    yield from _grouped_faults(release, name, found, rubrics)


def _by_case(groups: list[Any], name: str) -> dict[str, Any]:
    """A list of groups by the case each names; rows of single criteria are gathered in their order."""
    if not all(isinstance(group, dict) and isinstance(group.get("case_id"), str) for group in groups):
        raise DataError(f"{name}: a group without `case_id`; {_REMEDY}")
    if all(any(key in group for key in _TEXTS) for group in groups):
        rows: dict[str, Any] = {}
        for group in groups:
            rows.setdefault(group["case_id"], []).append(group)
        return rows
    found = {group["case_id"]: group for group in groups}
    if len(found) != len(groups):
        raise DataError(f"{name}: a case has two groups; {_REMEDY}")
    return found


def _grouped_faults(release: Release, name: str, found: Mapping[str, list[Any]], rubrics: Rubrics) -> Iterator[str]:
    for case in rubrics:
        if case not in found:
            yield f"{name} holds no criterion of {case}; {_REMEDY}"
        else:
            yield from criteria_faults(name, case, found[case], rubrics[case])
    for case in sorted(set(found) - set(release.case_ids)):
        yield f"{name} holds criteria of {case!r}, a case that manifest.json does not name; {_REMEDY}"


def _case_list_faults(release: Release, name: str, ids: list[str]) -> Iterator[str]:
    differing = sorted(set(ids) ^ set(release.case_ids))
    if differing or len(ids) != len(release.case_ids):
        what = f"first {differing[0]!r}" if differing else "one is there twice"
        yield f"{name} does not list the cases of manifest.json ({what}); {_REMEDY}"


def _zip_faults(release: Release, path: Path, rubrics: Rubrics) -> Iterator[str]:
    found: dict[str, list[Any]] = {}
    try:
        with zipfile.ZipFile(path) as package:
            for info in package.infolist():
                if (case := _case_of(info.filename, rubrics)) is None:
                    continue
                if case in found:
                    yield f"{path.name} holds two rubrics of {case}; {_REMEDY}"
                found[case] = _rubric_in(package, info, case, path.name)
    except _BAD_ZIP as error:
        raise DataError(f"{path.name} cannot be read ({error}); {_REMEDY}") from error
    if not found:
        raise DataError(f"{path.name} holds no rubric: expected CASE/{RUBRIC}; {_REMEDY}")
    yield from _grouped_faults(release, path.name, found, rubrics)


def _case_of(member: str, rubrics: Rubrics) -> str | None:
    """The case whose rubric a member is: `…/CASE/rubric.json`, or `…/CASE.json` in a flat package."""
    path = PurePosixPath(member)
    if path.suffix != ".json" or "__MACOSX" in path.parts or path.name.startswith("._"):
        return None
    if path.name == RUBRIC:
        return path.parent.name or None
    return path.stem if path.stem in rubrics else None


def _rubric_in(package: zipfile.ZipFile, info: zipfile.ZipInfo, case: str, name: str) -> list[str]:
    if info.file_size > MAX_SMALL_BYTES:
        raise DataError(f"{name}: {info.filename} has {info.file_size} bytes; that is no {RUBRIC}; {_REMEDY}")
    where = f"{name}, {info.filename}"
    return [c.text for c in parse_rubric(parse_json(package.read(info), where), case, where)]
