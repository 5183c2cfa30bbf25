"""PDF: the text of every page, and the first pages as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.media.found import Found, Picture, one_line
from bench.media.picture import jpeg
from bench.media.settings import Settings

MAX_SCALE = 4.0
"""A picture of a small page is not blown up further: 72 points an inch times this."""
_PASSWORD = 4


def read_pdf(path: Path, settings: Settings, folder: Path, found: Found) -> None:
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == _PASSWORD
        found.unread.append("all of it: it is encrypted" if locked else f"all of it: {found.said(error)}")
        return
    try:
        found.facts["Pages"] = str(len(document))
        with found.part("metadata"):
            told = document.get_metadata_dict(skip_empty=True)
            found.facts |= {
                key: one_line(value) for key, value in told.items() if key in ("Title", "Author", "Subject")
            }
        with found.part("attached files"):
            names = [document.get_attachment(n).get_name() for n in range(min(20, document.count_attachments()))]
            if names:
                found.facts["Attached files"] = ", ".join(one_line(name) for name in names)
        _texts(document, settings, found)
        _pictures(document, settings, folder, found)
    finally:
        document.close()


def _texts(document: Any, settings: Settings, found: Found) -> None:
    room = settings.text_chars
    empty = []
    for number in range(min(len(document), settings.pdf_pages)):
        with found.part(f"text of page {number + 1}"):
            page = document[number]
            text = page.get_textpage().get_text_bounded().replace("\r\n", "\n")
            page.close()
            if not text.strip():
                empty.append(str(number + 1))
            found.text(f"Page {number + 1}", text[:room])
            room -= len(text)
        if room <= 0:
            found.limit(f"text: {settings.text_chars} characters; it stops on page {number + 1}")
            break
    if len(document) > settings.pdf_pages:
        found.limit(f"pages: text of the first {settings.pdf_pages} only")
    if empty:
        found.facts["Pages without text"] = ", ".join(empty[:50])


def _pictures(document: Any, settings: Settings, folder: Path, found: Found) -> None:
    shown = min(len(document), settings.page_images)
    for number in range(shown):
        with found.part(f"picture of page {number + 1}"):
            page = document[number]
            width, height = page.get_size()
            scale = min(MAX_SCALE, settings.picture_px / max(width, height, 1.0))
            image = page.render(scale=scale).to_pil()
            name = f"page-{number + 1:02}.jpg"
            (folder / name).write_bytes(jpeg(image))
            found.pictures.append(Picture(file=name, caption=f"page {number + 1}"))
            page.close()
    if len(document) > shown:
        found.limit(f"page pictures: the first {shown} of {len(document)}")
