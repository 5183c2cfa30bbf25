"""Cells of an xlsx workbook as tab-separated lines: shared texts looked up, dates as dates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from bench.media.found import Found
from bench.media.package import Archive, attribute, local

MAX_ROWS, MAX_COLUMNS = 2000, 100
_DATE_FORMATS = frozenset({*range(14, 23), *range(45, 48)})
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')


@dataclass(frozen=True)
class _Book:
    texts: list[str] = field(default_factory=list)
    date_styles: frozenset[int] = frozenset()
    since: datetime = datetime(1899, 12, 30)


def read_workbook(archive: Archive, sheets: list[tuple[str, str]], found: Found) -> Iterator[tuple[str, str]]:
    """(sheet's name, its cells) for every sheet that can be read."""
    book = _book(archive, found)
    for name, part in sheets:
        with found.part(f"sheet {name}"):
            yield name, "\n".join(_lines(archive.xml(part), book, name, found))


def _book(archive: Archive, found: Found) -> _Book:
    texts: list[str] = []
    styles: list[int] = []
    since = _Book.since
    if archive.has("xl/sharedStrings.xml"):
        with found.part("shared texts"):
            texts = [_joined(one) for one in archive.xml("xl/sharedStrings.xml") if local(one) == "si"]
    if archive.has("xl/styles.xml"):
        with found.part("styles"):
            styles = _date_styles(archive.xml("xl/styles.xml"))
    settings = next((e for e in archive.xml("xl/workbook.xml").iter() if local(e) == "workbookPr"), None)
    if settings is not None and attribute(settings, "date1904") in ("1", "true"):
        since = datetime(1904, 1, 1)
    return _Book(texts, frozenset(styles), since)


def _date_styles(styles: Element) -> list[int]:
    """Numbers of the cell styles that show a date or a time."""
    own = {
        attribute(one, "numFmtId")
        for one in styles.iter()
        if local(one) == "numFmt" and re.search(r"[dyhs]", _QUOTED.sub("", attribute(one, "formatCode")).lower())
    }
    cells = next((one for one in styles if local(one) == "cellXfs"), None)
    formats = [attribute(one, "numFmtId") for one in cells] if cells is not None else []
    return [n for n, used in enumerate(formats) if used in own or (used.isdigit() and int(used) in _DATE_FORMATS)]


def _lines(sheet: Element, book: _Book, name: str, found: Found) -> Iterator[str]:
    for number, row in enumerate(one for one in sheet.iter() if local(one) == "row"):
        if number == MAX_ROWS:
            found.limit(f"rows: the first {MAX_ROWS} of sheet {name}")
            return
        cells: dict[int, str] = {}
        for cell in (one for one in row if local(one) == "c"):
            column = _column(attribute(cell, "r"), len(cells))
            if column >= MAX_COLUMNS:
                found.limit(f"columns: the first {MAX_COLUMNS} of sheet {name}")
                break
            cells[column] = _value(cell, book).replace("\t", " ").replace("\n", " ")
        if any(cells.values()):
            yield "\t".join(cells.get(column, "") for column in range(max(cells) + 1))


def _value(cell: Element, book: _Book) -> str:
    parts = {local(one): one for one in cell}
    kind = attribute(cell, "t")
    if "is" in parts:
        return _joined(parts["is"])
    if "v" not in parts:
        return f"={parts['f'].text or ''}" if "f" in parts else ""
    value = parts["v"].text or ""
    if kind == "s":
        return book.texts[int(value)] if value.isdigit() and int(value) < len(book.texts) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    style = attribute(cell, "s")
    if kind in ("", "n") and style.isdigit() and int(style) in book.date_styles:
        return _date(value, book.since)
    return value


def _date(value: str, since: datetime) -> str:
    try:
        days = float(value)
        moment = since + timedelta(seconds=round(days * 86400))
    except (ValueError, OverflowError):
        return value
    if 0 <= days < 1:
        return moment.strftime("%H:%M:%S")
    return moment.strftime("%Y-%m-%d" if days == int(days) else "%Y-%m-%d %H:%M:%S")


def _column(reference: str, otherwise: int) -> int:
    letters = re.match(r"[A-Z]{1,3}", reference)
    if not letters:
        return otherwise
    number = 0
    for letter in letters[0]:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _joined(item: Element) -> str:
    """Text of a shared or inline string, without its reading aids."""
    parts = []
    for one in item:
        if local(one) == "t":
            parts.append(one.text or "")
        elif local(one) == "r":
            parts += [t.text or "" for t in one if local(t) == "t"]
    return "".join(parts)
