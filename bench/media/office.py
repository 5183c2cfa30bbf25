"""Office documents (docx, xlsx, pptx, odt, ods, odp): headings, text, tables as tab-separated lines, sheet names."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from bench.media.found import Found
from bench.media.package import Archive, attribute, local
from bench.media.settings import Settings
from bench.media.sheets import read_workbook


def read_office(path: Path, settings: Settings, found: Found) -> None:
    with path.open("rb") as stream:
        if stream.read(8) == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            found.unread.append("all of it: it is encrypted, or in an office format of before 2007")
            return
    with zipfile.ZipFile(path) as opened:
        archive = Archive(opened, settings)
        room = _Room(settings.text_chars, found)
        if archive.has("word/document.xml"):
            _word(archive, found, room)
        elif archive.has("xl/workbook.xml"):
            sheets = archive.listed("xl/workbook.xml", "sheet")
            found.facts["Format"] = "spreadsheet (xlsx)"
            found.facts["Sheets"] = ", ".join(name for name, _ in sheets)
            for name, text in read_workbook(archive, sheets, found):
                room.add(f"Sheet {name}", text)
        elif archive.has("ppt/presentation.xml"):
            _slides(archive, found, room)
        elif archive.has("content.xml"):
            with found.part("content.xml"):
                _open_document(archive.xml("content.xml"), found, room)
        else:
            found.unread.append("all of it: no part of an office document is in it")
        pictures = [name for name in opened.namelist() if re.search(r"(?i)(media|Pictures)/[^/]+\.\w+$", name)]
        if pictures:
            found.facts["Pictures in it"] = f"{len(pictures)}, not shown here"


@dataclass
class _Room:
    """Text is taken until the digest is full."""

    left: int
    found: Found

    def add(self, title: str, text: str) -> None:
        if len(text) > self.left:
            self.found.limit(f"text: it stops in {title}")
        self.found.text(title, text[: self.left])
        self.left = max(0, self.left - len(text))


def _word(archive: Archive, found: Found, room: _Room) -> None:
    found.facts["Format"] = "text document (docx)"
    with found.part("word/document.xml"):
        body = next((one for one in archive.xml("word/document.xml") if local(one) == "body"), None)
        room.add("Text", "\n".join(_blocks(body)) if body is not None else "")
    for name in archive.names(r"word/(?:header|footer|footnotes|endnotes|comments)\d*\.xml"):
        with found.part(name):
            lines = [_run_text(one) for one in archive.xml(name).iter() if local(one) == "p"]
            room.add(name.removeprefix("word/").removesuffix(".xml").capitalize(), "\n".join(filter(None, lines)))


def _blocks(parent: Element, depth: int = 0) -> Iterator[str]:
    """Paragraphs (headings marked as in Markdown) and tables, in reading order; content controls are looked into."""
    for one in parent:
        match local(one):
            case "p":
                text = _run_text(one)
                style = next((attribute(e, "val") for e in one.iter() if local(e) == "pStyle"), "")
                heading = re.fullmatch(r"(?i)(?:heading|berschrift|titre)\s*(\d)|title", style)
                yield f"{'#' * int(heading[1] or 1)} {text}" if heading and text else text
            case "tbl":
                yield from _rows(one, "tr", "tc", "p")
            case "sdt" | "sdtContent" | "customXml" | "ins" if depth < 20:
                yield from _blocks(one, depth + 1)


def _rows(table: Element, row: str, cell: str, paragraph: str) -> Iterator[str]:
    for line in (one for one in table.iter() if local(one) == row):
        cells = [
            " ".join(filter(None, (_run_text(p) for p in one.iter() if local(p) == paragraph)))
            for one in line
            if local(one) == cell
        ]
        yield "\t".join(text.replace("\t", " ").replace("\n", " ") for text in cells)


def _run_text(paragraph: Element) -> str:
    parts = []
    for one in paragraph.iter():
        match local(one):
            case "t":
                parts.append(one.text or "")
            case "tab":
                parts.append("\t")
            case "br" | "cr":
                parts.append("\n")
    return "".join(parts).strip()


def _slides(archive: Archive, found: Found, room: _Room) -> None:
    slides = [part for _, part in archive.listed("ppt/presentation.xml", "sldId")]
    found.facts["Format"] = "slides (pptx)"
    found.facts["Slides"] = str(len(slides))
    for number, part in enumerate(slides, 1):
        with found.part(f"slide {number}"):
            room.add(f"Slide {number}", "\n".join(_slide(archive.xml(part))))
            for note in archive.targets(part).values():
                if "/notesSlides/" in note and archive.has(note):
                    room.add(f"Notes of slide {number}", "\n".join(_slide(archive.xml(note))))


def _slide(slide: Element) -> Iterator[str]:
    tables = [one for one in slide.iter() if local(one) == "tbl"]
    in_tables = {id(inner) for table in tables for inner in table.iter()}
    for one in slide.iter():
        if local(one) == "p" and id(one) not in in_tables and (text := _run_text(one)):
            yield text
    for table in tables:
        yield from _rows(table, "tr", "tc", "p")


def _open_document(content: Element, found: Found, room: _Room) -> None:
    body = next((one for one in content.iter() if local(one) == "body"), content)
    found.facts["Format"] = f"OpenDocument {local(body[0])}" if len(body) else "OpenDocument"
    sheets = [attribute(one, "name") for one in body.iter() if local(one) == "table"]
    if sheets:
        found.facts["Tables"] = ", ".join(filter(None, sheets[:100]))
    room.add("Text", "\n".join(_open_blocks(body)))


def _open_blocks(parent: Element, depth: int = 0) -> Iterator[str]:
    for one in parent:
        match local(one):
            case "h":
                level = attribute(one, "outline-level")
                yield f"{'#' * min(6, int(level) if level.isdigit() else 1)} {''.join(one.itertext())}"
            case "p":
                yield "".join(one.itertext())
            case "table":
                yield f"Table {attribute(one, 'name')}".strip()
                yield from _open_rows(one)
            case "annotation" | "tracked-changes" | "forms":
                continue
            case _ if depth < 40:
                if local(one) == "page":
                    yield f"# Slide {attribute(one, 'name')}".strip()
                yield from _open_blocks(one, depth + 1)


def _open_rows(table: Element) -> Iterator[str]:
    for row in (one for one in table.iter() if local(one) == "table-row"):
        cells: list[str] = []
        for cell in (one for one in row if local(one) in ("table-cell", "covered-table-cell")):
            text = " ".join("".join(p.itertext()) for p in cell if local(p) in ("p", "h"))
            times = attribute(cell, "number-columns-repeated")
            cells += [text] * (min(100, int(times)) if times.isdigit() and (text or int(times) < 100) else 1)
        if any(cells):
            yield "\t".join(cells).rstrip("\t")
