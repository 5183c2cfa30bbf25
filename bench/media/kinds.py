"""What a file is read as: by its signature, then by its name, then by whether it is text."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath

from bench.media.found import Kind

_SUFFIXES: dict[Kind, str] = {
    "audio": "aac aif aiff amr au caf flac m4a m4b mp2 mp3 oga ogg opus wav weba wma",
    "video": "3gp avi flv m4v mkv mov mp4 mpeg mpg mts ogv webm wmv",
    "image": "apng avif bmp gif heic heif ico jfif jpeg jpg png psd tif tiff webp",
    "pdf": "pdf",
    "office": "docx docm dotx xlsx xlsm pptx pptm ppsx odt ods odp",
    "text": "css csv html js json md srt svg ts tsv txt vtt xml yaml yml",
}
_KINDS: dict[str, Kind] = {f".{suffix}": kind for kind, names in _SUFFIXES.items() for suffix in names.split()}
_OFFICE_MEMBERS = ("word/document.xml", "xl/workbook.xml", "ppt/presentation.xml", "content.xml")
_SIGNS: tuple[tuple[int, bytes, Kind], ...] = (
    (0, b"\x89PNG", "image"), (0, b"\xff\xd8\xff", "image"), (0, b"GIF8", "image"), (8, b"WEBP", "image"),
    (8, b"WAVE", "audio"), (0, b"ID3", "audio"), (0, b"fLaC", "audio"), (0, b"OggS", "audio"),
    (4, b"ftyp", "video"), (0, b"\x1aE\xdf\xa3", "video"), (8, b"AVI ", "video"),
)  # fmt: skip
_SAMPLE_BYTES = 64 * 1024


def kind_of(path: Path, name: str) -> Kind:
    """Whatever a file is called, a PDF is read as a PDF; where a signature says little, the name decides."""
    with path.open("rb") as stream:
        head = stream.read(_SAMPLE_BYTES)
    if b"%PDF-" in head[:1024]:
        return "pdf"
    named = _KINDS.get(PurePosixPath(name).suffix.lower())
    if head.startswith(b"PK\x03\x04") and named not in ("audio", "video", "image"):
        return "office" if named == "office" or _holds_office(path) else "other"
    if named:
        return named
    for offset, sign, kind in _SIGNS:
        if head[offset : offset + len(sign)] == sign:
            return kind
    return "text" if head and _is_text(head) else "other"


def _holds_office(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name in _OFFICE_MEMBERS for name in archive.namelist()[:5000])
    except (zipfile.BadZipFile, OSError, ValueError):
        return False


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return head.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        head[:-4].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 8
    return True
