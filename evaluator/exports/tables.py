"""The two tables of `evaluator.exports.rows` as parquet, CSV or JSON lines, every column of one type."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.atomic import write_bytes
from evaluator.exports.entry import read_entries
from evaluator.exports.rows import CRITERIA, TRIALS, Kind, Row, criterion_rows, trial_rows

FORMATS = ("parquet", "csv", "jsonl")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Cells that begin so are run by spreadsheets as formulas; a text of a submission must not be."""


def write_tables(results: list[Path], out: Path, kind: str) -> dict[str, int]:
    """Write `out/criteria.KIND` and `out/trials.KIND`; gives how many rows each has."""
    entries = read_entries(results)
    write = _WRITERS[kind]
    counts = {}
    for name, columns, rows_of in (("criteria", CRITERIA, criterion_rows), ("trials", TRIALS, trial_rows)):
        rows = [{key: _clean(value) for key, value in row.items()} for entry in entries for row in rows_of(entry)]
        write(out / f"{name}.{kind}", rows, columns)
        counts[name] = len(rows)
    return counts


def _clean(value: Any) -> Any:
    """Texts that UTF-8 can hold: a lone surrogate becomes an escape, as in every file of ours."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return [_clean(one) for one in value] if isinstance(value, list) else value


def _parquet(path: Path, rows: Sequence[Row], columns: Mapping[str, Kind]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {
        "text": pa.string(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
        "texts": pa.list_(pa.string()),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), stream, compression="snappy")
    write_bytes(path, stream.getvalue())


def _csv(path: Path, rows: Sequence[Row], columns: Mapping[str, Kind]) -> None:
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(columns)
    table.writerows([_cell(row[name]) for name in columns] for row in rows)
    write_bytes(path, stream.getvalue().encode())


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = ";".join(value) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) else text


def _jsonl(path: Path, rows: Sequence[Row], columns: Mapping[str, Kind]) -> None:
    lines = [json.dumps({name: row[name] for name in columns}, ensure_ascii=False, allow_nan=False) for row in rows]
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())


_WRITERS: dict[str, Callable[[Path, Sequence[Row], Mapping[str, Kind]], None]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
}
