"""Text in PDFs, images, audio and video: what their own readers give, metadata included. No pixels, no speech."""

from __future__ import annotations

import contextlib
import ctypes
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.errors import InfraError

MAX_PDF_PAGES = 2_000
MAX_STREAM_BYTES = 32 * 1024 * 1024
MAX_PACKETS = 20_000
_STREAM = re.compile(rb"stream\r?\n")
_WINDOWS_NOTES = frozenset({0x9C9B, 0x9C9C, 0x9C9D, 0x9C9E, 0x9C9F})
"""EXIF tags that Windows writes as UTF-16 bytes: title, comment, author, keywords, subject."""


def image_text(source: Path | bytes) -> Iterator[str]:
    """Comments, PNG text chunks (packed ones too), EXIF and XMP of an image. Raises what Pillow raises."""
    from PIL import ExifTags, Image

    with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
        with contextlib.suppress(OSError):  # a picture cut short still has what came before
            image.load()  # PNG text may stand behind the pixels
        yield from _strings(image.info)
        yield from _strings(getattr(image, "text", None))
        exif = image.getexif()
        for tags in (exif, *(exif.get_ifd(ifd) for ifd in ExifTags.IFD)):
            for tag, value in tags.items():
                if tag in _WINDOWS_NOTES and isinstance(value, bytes | tuple):
                    yield bytes(value).decode("utf-16-le", "replace")
                yield from _strings(value)


def media_text(source: Path | bytes) -> Iterator[str]:
    """Tags of container, streams and chapters, and text of subtitle streams. Raises what PyAV raises."""
    av = _av()
    with av.open(
        io.BytesIO(source) if isinstance(source, bytes) else str(source), metadata_errors="replace"
    ) as media:
        yield from _strings(media.metadata)
        for stream in media.streams:
            yield from _strings(stream.metadata)
        for chapter in media.chapters():
            yield from _strings(chapter.get("metadata"))
        subtitles = [stream for stream in media.streams if stream.type in ("subtitle", "data", "attachment")]
        if wanted := [stream for stream in subtitles if stream.type != "attachment"]:
            for _, packet in zip(range(MAX_PACKETS), media.demux(wanted), strict=False):
                yield bytes(packet).decode("utf-8", "replace")


def pdf_text(source: Path | bytes) -> tuple[list[str], list[tuple[str, bytes]]]:
    """Texts of pages, notes, form fields, metadata and packed streams; and the attached files (name, content).

    Raises what pypdfium2 raises, for an encrypted file above all.
    """
    import pypdfium2

    texts: list[str] = []
    attached: list[tuple[str, bytes]] = []
    document = pypdfium2.PdfDocument(source)
    try:
        texts.append("\n".join(str(value) for value in document.get_metadata_dict().values()))
        texts += [item.get_title() or "" for item in document.get_toc()]
        for number in range(min(len(document), MAX_PDF_PAGES)):
            page = document[number]
            texts.append(page.get_textpage().get_text_bounded())
            texts += _notes(page)
            page.close()
        for number in range(document.count_attachments()):
            attachment = document.get_attachment(number)
            attached.append((attachment.get_name(), bytes(attachment.get_data())))
    finally:
        document.close()
    content = source if isinstance(source, bytes) else source.read_bytes()
    texts += _packed_streams(content)
    return texts, attached


def _notes(page: Any) -> Iterator[str]:
    """Contents, subject and field value of every annotation on a page."""
    import pypdfium2.raw as pdfium

    for number in range(pdfium.FPDFPage_GetAnnotCount(page)):
        note = pdfium.FPDFPage_GetAnnot(page, number)
        for key in (b"Contents", b"Subj", b"T", b"TU", b"V", b"RC"):
            size = pdfium.FPDFAnnot_GetStringValue(note, key, None, 0)
            if size > 2:
                buffer = ctypes.create_string_buffer(size)
                pointer = ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR))
                pdfium.FPDFAnnot_GetStringValue(note, key, pointer, size)
                yield buffer.raw[: size - 2].decode("utf-16-le", "replace")
        pdfium.FPDFPage_CloseAnnot(note)


def _packed_streams(content: bytes) -> Iterator[str]:
    """Printable text of deflated streams: XMP, scripts, object streams; no page shows them."""
    from evaluator.text_decoding import as_text

    for match in _STREAM.finditer(content):
        try:
            unpacked = zlib.decompressobj().decompress(content[match.end() :], MAX_STREAM_BYTES)
        except zlib.error:
            continue
        if texts := as_text(unpacked):
            yield texts[0]


def _strings(value: object) -> Iterator[str]:
    """Every text in a value of nested mappings and sequences; bytes in the encodings that metadata uses."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.removeprefix(b"ASCII\0\0\0").removeprefix(b"UNICODE\0").decode("utf-8", "replace")
        if b"\0" in value:
            yield from (
                value[start:].decode(name, "replace") for start in (0, 8) for name in ("utf-16-le", "utf-16-be")
            )
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(key)
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise InfraError("PyAV (package `av`) is missing; install the project's requirements again") from error
    return av
