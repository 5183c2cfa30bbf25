"""Checks of a file's content: what it is by its first bytes, tables, JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from evaluator.replay.finding import has_text
from evaluator.replay.readings import amount, fold, number_fits
from evaluator.witness import checks as c

_STARTS: dict[str, tuple[bytes, ...]] = {
    "png": (b"\x89PNG\r\n\x1a\n",),
    "jpeg": (b"\xff\xd8\xff",),
    "gif": (b"GIF87a", b"GIF89a"),
    "pdf": (b"%PDF-",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
    "mp3": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
}
MAX_ROWS = 100_000


def kind_of(content: bytes) -> str:
    """The file's kind by its first bytes, or `other`."""
    for kind, starts in _STARTS.items():
        if content.startswith(starts):
            return kind
    if content[:4] == b"RIFF":
        return {b"WEBP": "webp", b"WAVE": "wav"}.get(content[8:12], "other")
    if content[4:8] == b"ftyp":
        return "mp4"
    return "svg" if b"<svg" in content[:1000] else "other"


def csv_fits(content: bytes, wanted: c.CsvContent) -> tuple[bool, str]:
    """Whether a table is as said, and what was seen of it."""
    text = content.decode("utf-8-sig", "replace")
    first = text.partition("\n")[0]
    between = max(",;\t", key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=between, strict=True) if row]
    except csv.Error as error:
        return False, f"no table: {error}"
    if not rows:
        return False, "an empty table"
    head, body = [fold(cell) for cell in rows[0]], rows[1 : MAX_ROWS + 1]
    holds = (
        (wanted.columns is None or _in_order([fold(name) for name in wanted.columns], head))
        and (wanted.rows is None or number_fits(len(body), wanted.rows))
        and (wanted.row_contains is None or any(_has_cells(row, wanted.row_contains) for row in body))
    )
    return holds, f"columns {', '.join(head)} and {len(body)} rows"[:200]


def _in_order(wanted: list[str], head: list[str]) -> bool:
    rest = iter(head)
    return all(name in rest for name in wanted)


def _has_cells(row: list[str], wanted: list[str]) -> bool:
    cells = [fold(cell) for cell in row]
    return all(fold(one) in cells for one in wanted)


def json_fits(content: bytes, wanted: c.JsonContent) -> tuple[bool, str]:
    """Whether the value at `at` is as said, and what was seen of it."""
    try:
        found: Any = json.loads(content)
        for name in wanted.at.split(".") if wanted.at else []:
            found = found[int(name)] if isinstance(found, list) else found[name]
    except (ValueError, RecursionError) as error:
        return False, f"no JSON: {error}"[:200]
    except (KeyError, IndexError, TypeError):
        return False, f"nothing at {wanted.at}"
    seen = json.dumps(found, ensure_ascii=False)[:200]
    if wanted.count is not None and not (isinstance(found, list | dict) and number_fits(len(found), wanted.count)):
        return False, seen
    if wanted.contains is not None and not has_text(found if isinstance(found, str) else seen, wanted.contains):
        return False, seen
    return wanted.equals is None or _equals(found, wanted.equals), seen


def _equals(found: Any, wanted: str | float | bool) -> bool:
    """Texts as texts, numbers as numbers; a wanted text also stands for a number (an input's value, a sum)."""
    if isinstance(wanted, str) and isinstance(found, int | float) and not isinstance(found, bool):
        try:
            return abs(amount(wanted) - found) < 1e-9
        except ValueError:
            return False
    return type(found) is type(wanted) and found == wanted if isinstance(wanted, bool | str) else found == wanted
