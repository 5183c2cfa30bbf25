"""`cdb dataset verify` and `info`: checksums first, then archives, indexes and rubric exports against each other."""

from __future__ import annotations

import csv
import io
import json
import tarfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from bench.errors import DataError
from bench.release import EVALUATION_ARCHIVE, SOLVER_ARCHIVE, Release, open_release, verify_files
from bench.task import QUERIES
from evaluator.attachments import ORDER, primary_kind
from evaluator.rubric import RUBRIC, Criterion, parse_rubric
from evaluator.strict_json import parse_json

MAX_INDEXED_BYTES = 16 * 1024 * 1024
"""Cap for a single user_queries.json or rubric.json inside an archive."""


def verify_release(folder: Path) -> dict[str, Any]:
    """Check a release as a whole. Raises DataError or UsageError for the first fault, naming file and remedy."""
    release = open_release(folder)
    good = verify_files(release)
    solver = _small_files(release, SOLVER_ARCHIVE)
    evaluation = _small_files(release, EVALUATION_ARCHIVE)
    if leaked := [name for name in solver if name.endswith("/" + RUBRIC)]:
        raise DataError(f"{SOLVER_ARCHIVE} holds a rubric ({leaked[0]}); never give this archive to a solver")
    rubrics = {case: _rubric(case, evaluation) for case in release.case_ids}
    _check_count(release, rubrics)
    _check_tasks(release, solver, evaluation)
    _check_rubric_index(release, rubrics)
    _check_exports(release, rubrics)
    return {
        "name": release.name,
        "version": release.version,
        "files": len(good),
        "tasks": len(release.case_ids),
        "criteria": sum(len(r) for r in rubrics.values()),
    }


def describe_release(folder: Path) -> dict[str, Any]:
    """Name, counts and the table by primary attachment, from the index alone; nothing is verified."""
    release = open_release(folder)
    kinds = Counter(primary_kind(row["attachment_paths"]) for row in _rows(folder / "data/tasks.parquet"))
    return {
        "name": release.name,
        "version": release.version,
        "tasks": len(release.case_ids),
        "criteria": release.criteria,
        "by_attachment": {kind: kinds.get(kind, 0) for kind in (*ORDER, "none")},
    }


def _small_files(release: Release, archive: str) -> dict[str, bytes]:
    """`user_queries.json` and `rubric.json` of every case, by member name; read as a stream."""
    found: dict[str, bytes] = {}
    wanted = {f"cases/{case}/{name}" for case in release.case_ids for name in (QUERIES, RUBRIC)}
    try:
        with tarfile.open(release.folder / archive, "r|gz") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if name not in wanted and not name.endswith("/" + RUBRIC):
                    continue
                if member.size > MAX_INDEXED_BYTES:
                    raise DataError(f"{archive}: {name} has {member.size} bytes; that is no {Path(name).name}")
                stream = tar.extractfile(member)
                found[name] = stream.read() if stream else b""
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{archive} cannot be read to its end ({error}); download it again") from error
    return found


def _rubric(case: str, evaluation: dict[str, bytes]) -> tuple[Criterion, ...]:
    name = f"cases/{case}/{RUBRIC}"
    if name not in evaluation:
        raise DataError(f"{EVALUATION_ARCHIVE} lacks {name}; download it again")
    return parse_rubric(parse_json(evaluation[name], name), case, name)


def _check_count(release: Release, rubrics: dict[str, tuple[Criterion, ...]]) -> None:
    count = sum(len(rubric) for rubric in rubrics.values())
    if count != release.criteria:
        raise DataError(f"manifest.json declares {release.criteria} criteria, the archive's rubrics hold {count}")


def _check_tasks(release: Release, solver: dict[str, bytes], evaluation: dict[str, bytes]) -> None:
    rows = {row["case_id"]: row for row in _rows(release.folder / "data/tasks.parquet")}
    if list(rows) != list(release.case_ids):
        raise DataError("data/tasks.parquet does not list the manifest's cases in its order; download it again")
    for case in release.case_ids:
        name = f"cases/{case}/{QUERIES}"
        if name not in solver or solver.get(name) != evaluation.get(name):
            raise DataError(f"{name} is missing from an archive or differs between the two; download both again")
        entries = parse_json(solver[name], name)
        text = entries[0].get("text") if isinstance(entries, list) and isinstance(entries[0], dict) else None
        if text != rows[case]["request"]:
            raise DataError(f"{name}: its first text is not the request in data/tasks.parquet; download both again")


def _check_rubric_index(release: Release, rubrics: dict[str, tuple[Criterion, ...]]) -> None:
    rows = _rows(release.folder / "data/rubrics.parquet")
    found = [(r["case_id"], r["criterion_index"], r["rubric_id"], r["criterion"]) for r in rows]
    expected = [(case, c.criterion_index, c.rubric_id, c.text) for case, rubric in rubrics.items() for c in rubric]
    _same(found, expected, "data/rubrics.parquet")


def _check_exports(release: Release, rubrics: dict[str, tuple[Criterion, ...]]) -> None:
    expected = [(case, c.text) for case, rubric in rubrics.items() for c in rubric]
    folder = release.folder / "rubrics"
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
        rows = [
            parse_json(line.encode(), f"{path.name}, line {n}") for n, line in enumerate(lines, 1) if line.strip()
        ]
        _same([(_cell(r, "case_id"), _cell(r, "criterion")) for r in rows], expected, f"rubrics/{path.name}")
    for path in sorted(folder.glob("*.csv")):
        table = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
        _same([(_cell(r, "case_id"), _cell(r, "criterion")) for r in table], expected, f"rubrics/{path.name}")


def _same(found: list[Any], expected: list[Any], name: str) -> None:
    if found == expected:
        return
    for n, (a, b) in enumerate(zip(found, expected, strict=False), start=1):
        if a != b:
            raise DataError(f"{name}, record {n}: {json.dumps(a)[:120]} is not what the archive's rubric has")
    raise DataError(f"{name} holds {len(found)} criteria, the archive's rubrics hold {len(expected)}")


def _cell(row: Any, key: str) -> Any:
    """A row's value, None where it has no such key: it then differs from what is expected and is named."""
    return row.get(key) if isinstance(row, dict) else None


INDEX_COLUMNS = {
    "tasks.parquet": {"case_id", "request", "attachment_paths"},
    "rubrics.parquet": {"case_id", "criterion_index", "rubric_id", "criterion"},
}
"""Columns of the two indexes that are compared with the archives."""


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.lib
    import pyarrow.parquet

    if not path.is_file():
        raise DataError(f"{path} is missing; download it again")
    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.lib.ArrowException, OSError) as error:
        raise DataError(f"{path} is no readable parquet file ({error}); download it again") from error
    if missing := sorted(INDEX_COLUMNS[path.name] - set(table.column_names)):
        raise DataError(f"{path} has no column {missing[0]}; found {table.column_names}; download it again")
    columns = [name for name in table.column_names if name != "annotation_image"]
    rows: list[dict[str, Any]] = table.select(columns).to_pylist()
    return rows
