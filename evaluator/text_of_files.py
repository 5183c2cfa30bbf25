"""All text that can be got out of a file without running or hearing it: what a leak check looks through.

Looks into text in any usual encoding, escapes, base64 and hex blocks, archives and office documents, PDF text,
notes and attached files, metadata of images, tags and subtitles of audio and video, and printable runs of any other
file. Not read: pixels, speech, and what is encrypted or packed in a way no reader is here for; that is said.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evaluator.text_decoding import as_text, encoded_blocks, printable_runs
from evaluator.text_of_media import image_text, media_text, pdf_text

MIB = 1024 * 1024
MAX_WHOLE_BYTES = 64 * MIB
"""A larger file is not held as a whole: its printable runs are read in pieces, and what it is by its signature."""
MAX_UNPACKED_BYTES = 512 * MIB
"""What all archives and blocks inside one file may come to."""
MAX_MEMBERS = 20_000
MAX_DEPTH = 4
PIECE_BYTES = 8 * MIB
OVERLAP_BYTES = 4096
UNREADABLE = {b"7z\xbc\xaf\x27\x1c": "a 7z archive", b"Rar!\x1a\x07": "a RAR archive", b"(\xb5/\xfd": "zstd data"}
_AUDIO = ".mp3 .wav .ogg .oga .opus .m4a .aac .flac .weba .wma .aif .aiff"
_VIDEO = ".mp4 .m4v .mov .webm .mkv .avi .3gp .mpg .mpeg .wmv"
MEDIA_SUFFIXES = frozenset(f"{_AUDIO} {_VIDEO}".split(" "))
_IMAGE = re.compile(
    rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP|II\*\0|MM\0\*|BM....\0\0\0\0|....ftyp(?:avif|heic|mif1)", re.DOTALL
)
_MEDIA = re.compile(
    rb"ID3|\xff[\xf1\xf9\xfb\xf3\xf2]|OggS|fLaC|\x1aE\xdf\xa3|....ftyp|RIFF....(?:WAVE|AVI )", re.DOTALL
)


class Piece(NamedTuple):
    """A text and where in the file it was: `text`, `pdf`, `base64`, `image metadata`, `zip member a/b.txt` …"""

    where: str
    text: str


class Unread(NamedTuple):
    """A part that could not be looked into, and why."""

    where: str
    reason: str


Found = Piece | Unread
Source = Path | bytes


@dataclass
class _Budget:
    """What is left of the caps for one file; unpacking stops when it is used up."""

    bytes_left: int = field(default_factory=lambda: MAX_UNPACKED_BYTES)
    members_left: int = MAX_MEMBERS
    said: set[str] = field(default_factory=set)

    def take(self, size: int) -> bool:
        self.bytes_left -= size
        self.members_left -= 1
        return self.bytes_left >= 0 and self.members_left >= 0

    def once(self, where: str, reason: str) -> Iterator[Unread]:
        if reason not in self.said:
            self.said.add(reason)
            yield Unread(where, reason)


def texts_of(path: Path) -> Iterator[Found]:
    """Every text in the file at `path`, and what could not be read. Faulty content is never an exception."""
    size = path.stat().st_size
    budget = _Budget()
    if size <= MAX_WHOLE_BYTES:
        yield from _content(path.read_bytes(), "", path.suffix, 0, budget)
        return
    with path.open("rb") as stream:
        head = stream.read(PIECE_BYTES)
    yield from _by_signature(path, head, "", path.suffix, 0, budget)
    with path.open("rb") as stream:
        before = b""
        while piece := stream.read(PIECE_BYTES):
            text = as_text(before + piece)
            if text is None:
                yield from (Piece("bytes", run) for run in printable_runs(before + piece))
            else:
                yield from _text(text, "text", 0, budget)
            before = piece[-OVERLAP_BYTES:]


def _content(content: bytes, where: str, suffix: str, depth: int, budget: _Budget) -> Iterator[Found]:
    if not content:
        return
    texts = as_text(content)
    head = content[:PIECE_BYTES]
    if texts is None or b"%PDF-" in head[:1024] or head[257:262] == b"ustar":
        yield from _by_signature(content, head, where, suffix, depth, budget)
    if texts is None:
        yield from (Piece(_at(where, "bytes"), run) for run in printable_runs(content))
    else:
        yield from _text(texts, _at(where, "text"), depth, budget)


def _text(texts: list[str], where: str, depth: int, budget: _Budget) -> Iterator[Found]:
    for text in texts:
        yield Piece(where, text)
    if depth >= MAX_DEPTH:
        return
    for kind, block in encoded_blocks(texts[0]):
        if budget.take(len(block)):
            yield from _content(block, _at(where.removesuffix("text"), kind), "", depth + 1, budget)
        else:
            yield from budget.once(where, "more encoded blocks than are looked through")


def _by_signature(
    source: Source, head: bytes, where: str, suffix: str, depth: int, budget: _Budget
) -> Iterator[Found]:
    """What only a reader of the format finds; nothing for a format without one."""
    for signature, what in UNREADABLE.items():
        if head.startswith(signature):
            yield Unread(where or "file", f"it is {what}, which nothing here unpacks")
            return
    if head.startswith(b"PK\x03\x04"):
        yield from _guarded(_zip(source, where, depth, budget), where, "zip")
    elif head[257:262] == b"ustar":
        yield from _guarded(_tar(source, where, depth, budget), where, "tar")
    elif head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")) or _is_zlib(head):
        yield from _guarded(_packed(source, head, where, depth, budget), where, "packed data")
    elif b"%PDF-" in head[:1024]:
        yield from _guarded(_pdf(source, where, depth, budget), where, "PDF")
    elif _IMAGE.match(head):
        yield from _guarded((Piece(_at(where, "image metadata"), t) for t in image_text(source)), where, "image")
    elif _MEDIA.match(head) or suffix.lower() in MEDIA_SUFFIXES:
        yield from _guarded((Piece(_at(where, "media tags"), t) for t in media_text(source)), where, "media")


def _guarded(found: Iterator[Found], where: str, kind: str) -> Iterator[Found]:
    """A file may be damaged in any way its reader can fail: then the rest of it is unread, and said to be."""
    try:
        yield from found
    except Exception as error:  # noqa: BLE001  (readers of foreign formats; recorded as unread, never dropped)
        first = (str(error) or type(error).__name__).splitlines()[0][:200]
        yield Unread(where or "file", f"as {kind} it cannot be read whole: {first}")


def _zip(source: Source, where: str, depth: int, budget: _Budget) -> Iterator[Found]:
    if depth >= MAX_DEPTH:
        yield from budget.once(where, f"archives are looked into {MAX_DEPTH} deep")
        return
    with zipfile.ZipFile(_opened(source)) as archive:
        yield Piece(_at(where, "zip comment"), archive.comment.decode("utf-8", "replace"))
        for member in archive.infolist():
            inner = _at(where, f"member {member.filename}")
            yield Piece(_at(where, "member name"), f"{member.filename} {member.comment.decode('utf-8', 'replace')}")
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                yield Unread(inner, "it is encrypted")
            elif not budget.take(member.file_size):
                yield from budget.once(where, "more unpacked data than is looked through")
            else:
                with archive.open(member) as stream:
                    content = stream.read(member.file_size + 1)
                yield from _content(content, inner, Path(member.filename).suffix, depth + 1, budget)


def _tar(source: Source, where: str, depth: int, budget: _Budget) -> Iterator[Found]:
    if depth >= MAX_DEPTH:
        yield from budget.once(where, f"archives are looked into {MAX_DEPTH} deep")
        return
    with tarfile.open(fileobj=_opened(source), mode="r|") as archive:
        for member in archive:
            names = [member.name, member.linkname, *member.pax_headers.values()]
            yield Piece(_at(where, "member name"), "\n".join(names))
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is None:
                continue
            if not budget.take(member.size):
                yield from budget.once(where, "more unpacked data than is looked through")
                return
            inner = _at(where, f"member {member.name}")
            yield from _content(stream.read(), inner, Path(member.name).suffix, depth + 1, budget)


def _packed(source: Source, head: bytes, where: str, depth: int, budget: _Budget) -> Iterator[Found]:
    if depth >= MAX_DEPTH:
        yield from budget.once(where, f"archives are looked into {MAX_DEPTH} deep")
        return
    cap = min(budget.bytes_left, MAX_WHOLE_BYTES)
    if head.startswith(b"BZh"):
        content = bz2.BZ2Decompressor().decompress(_read(source), cap)
    elif head.startswith(b"\xfd7z"):
        content = lzma.LZMADecompressor().decompress(_read(source), cap)
    else:
        content = zlib.decompressobj(wbits=47).decompress(_read(source), cap)  # 47: gzip or zlib, by its header
    if not budget.take(len(content)) or len(content) == cap:
        yield from budget.once(where, "more unpacked data than is looked through")
    yield from _content(content, _at(where, "unpacked"), "", depth + 1, budget)


def _pdf(source: Source, where: str, depth: int, budget: _Budget) -> Iterator[Found]:
    texts, attached = pdf_text(source)
    for text in texts:
        yield Piece(_at(where, "pdf"), text)
    for name, content in attached:
        yield Piece(_at(where, "member name"), name)
        if depth < MAX_DEPTH and budget.take(len(content)):
            yield from _content(content, _at(where, f"member {name}"), Path(name).suffix, depth + 1, budget)
        else:
            yield from budget.once(where, "more unpacked data than is looked through")


def _is_zlib(head: bytes) -> bool:
    """A zlib header: deflate with a 32 KiB window and a checksum that is right."""
    return (
        len(head) > 6
        and head[0] == 0x78
        and int.from_bytes(head[:2], "big") % 31 == 0
        and head[1] in (1, 94, 156, 218)
    )


def _opened(source: Source) -> io.BufferedReader | io.BytesIO:
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _read(source: Source) -> bytes:
    """Packed data, as far as it is looked through."""
    with _opened(source) as stream:
        return stream.read(MAX_UNPACKED_BYTES)


def _at(where: str, inner: str) -> str:
    return f"{where}, {inner}".strip(", ")
