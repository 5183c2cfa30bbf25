"""The site's media: each distinct picture, recording or document once, by content, pictures with a small copy."""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass
from pathlib import Path

from evaluator.report.put import Site

THUMB_PX = 400
"""Longest width of a small copy; shown at up to 200 CSS pixels, so sharp on dense screens too."""
SMALL_BYTES = 12_000
"""A picture under this is its own small copy."""
MAX_PIXELS = 60_000_000
"""A larger picture gets no small copy: decoding it would cost more memory than a report may."""
MAX_FILE_BYTES = 64 * 1024 * 1024
INERT = frozenset(
    (
        *(".mp3", ".m4a", ".aac", ".wav", ".ogg", ".oga", ".opus", ".flac", ".mp4", ".m4v", ".webm", ".mov"),
        *(".pdf", ".docx", ".xlsx", ".pptx", ".doc", ".xls", ".ppt", ".odt", ".ods", ".odp", ".zip", ".txt"),
    )
)
"""Endings that no browser opens as a page or a script. HTML and SVG are copied as `.txt`."""
TEXTUAL = frozenset(
    (
        *(".md", ".csv", ".tsv", ".json", ".log", ".patch", ".html", ".htm", ".svg", ".xml", ".css", ".js", ".ts"),
        *(".tsx", ".jsx", ".yaml", ".yml"),
    )
)


@dataclass(frozen=True)
class Picture:
    """A picture as pages refer to it, `src` and `thumb` below the site's folder. Without `src` `note` says why."""

    src: str = ""
    thumb: str = ""
    width: int = 0
    height: int = 0
    note: str = ""


@dataclass(frozen=True)
class Kept:
    """Another file that pages link to; without `src`, `note` says why it is not there."""

    src: str = ""
    name: str = ""
    bytes: int = 0
    note: str = ""


class Shelf:
    """Puts media into a site. A file is read again only when its size or time has changed, for `cdb view`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._pictures: dict[tuple[str, int, int], Picture] = {}
        self._kept: dict[tuple[str, int, int], Kept] = {}

    def take(self, path: Path, shown_as: str) -> Picture:
        """The picture at `path`; `shown_as` names it in the note of one that cannot be shown."""
        try:
            stamp = _stamp(path)
            if stamp not in self._pictures:
                self._pictures[stamp] = self._load(path.read_bytes(), shown_as)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a usable path"
            return Picture(note=f"Picture missing: {shown_as} ({reason.lower()})")
        found = self._pictures[stamp]
        self._site.keep(found.src, found.thumb)
        return found

    def take_inside(self, folder: Path, name: str) -> Picture:
        """The picture `name`, a path relative to `folder`; one that leads out of the folder is not shown."""
        try:
            path = (folder / name).resolve()
            inside = path.is_relative_to(folder.resolve())
        except (OSError, ValueError):
            return Picture(note=f"Picture missing: {name} (not a usable path)")
        return self.take(path, name) if inside else Picture(note=f"Not shown: {name} leads out of its folder")

    def keep(self, path: Path, shown_as: str) -> Kept:
        """A recording, document, archive or text, to be played or downloaded. It gets an ending that never runs."""
        suffix = path.suffix.lower()
        ending = suffix if suffix in INERT else ".txt" if suffix in TEXTUAL else ""
        if not ending:
            return Kept(
                name=shown_as, note=f"Not copied: files ending in {suffix or 'nothing'} may not be safe to open"
            )
        try:
            stamp = _stamp(path)
            if stamp not in self._kept:
                if stamp[1] > MAX_FILE_BYTES:
                    note = f"Not copied, to keep the report small: {stamp[1] // 1024 // 1024} MiB"
                    return Kept(name=shown_as, bytes=stamp[1], note=note)
                content = path.read_bytes()
                src = f"media/{_key(content)}{ending}"
                self._site.put(src, content)
                self._kept[stamp] = Kept(src, shown_as, len(content))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a usable path"
            return Kept(name=shown_as, note=f"Missing: {reason.lower()}")
        found = self._kept[stamp]
        self._site.keep(found.src)
        return found

    def _load(self, content: bytes, shown_as: str) -> Picture:
        found = measure(content)
        if found is None:
            return Picture(note=f"Not shown: {shown_as} is no PNG, JPEG, GIF or WebP picture")
        media, width, height = found
        key = _key(content)
        src = f"media/{key}.{media.removeprefix('image/').replace('jpeg', 'jpg')}"
        self._site.put(src, content)
        thumb = self._thumb(key, content, width, height)
        return Picture(src, thumb or src, width, height)

    def _thumb(self, key: str, content: bytes, width: int, height: int) -> str:
        """The small copy's place; empty where the picture is small itself, or cannot be decoded."""
        if (width <= THUMB_PX and len(content) <= 4 * SMALL_BYTES) or len(content) <= SMALL_BYTES:
            return ""
        name = f"thumbs/{key}.jpg"
        if self._site.has(name):
            self._site.keep(name)
            return name
        small = thumbnail(content, width, height)
        if small is None:
            return ""
        self._site.put(name, small)
        return name


def thumbnail(content: bytes, width: int, height: int) -> bytes | None:
    """A JPEG at most THUMB_PX wide and twice that high (cut at the bottom); None where it cannot be decoded."""
    from PIL import Image

    if width * height > MAX_PIXELS:
        return None
    try:
        with Image.open(io.BytesIO(content)) as opened:
            opened.draft("RGB", (THUMB_PX, max(1, THUMB_PX * height // width)))
            tall = opened.height > 2 * opened.width
            image = opened.crop((0, 0, opened.width, 2 * opened.width)) if tall else opened.copy()
            flat = image.convert("RGBA") if image.mode in ("P", "LA", "RGBA", "PA") else image.convert("RGB")
            if flat.mode == "RGBA":
                white = Image.new("RGBA", flat.size, "white")
                flat = Image.alpha_composite(white, flat).convert("RGB")
            flat.thumbnail((THUMB_PX, 2 * THUMB_PX))
            stream = io.BytesIO()
            flat.save(stream, "JPEG", quality=78)
            return stream.getvalue()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def measure(content: bytes) -> tuple[str, int, int] | None:
    """(media type, width, height in pixels) read from a picture's own header; None for anything else."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            return "image/png", *struct.unpack(">II", content[16:24])
        if content.startswith((b"GIF87a", b"GIF89a")):
            return "image/gif", *struct.unpack("<HH", content[6:10])
        if content.startswith(b"\xff\xd8\xff"):
            return "image/jpeg", *_jpeg_size(content)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return "image/webp", *_webp_size(content)
    except (struct.error, ValueError):
        return None
    return None


def _stamp(path: Path) -> tuple[str, int, int]:
    told = path.stat()
    return str(path), told.st_size, told.st_mtime_ns


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]


def _jpeg_size(content: bytes) -> tuple[int, int]:
    """Walk the segments to the frame header (SOF0–SOF15 but DHT, JPG, DAC), which holds height then width."""
    at = 2
    while True:
        marker, kind, length = struct.unpack(">BBH", content[at : at + 4])
        if marker != 0xFF:
            raise ValueError("not at a JPEG segment")
        if kind == 0xFF:
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        else:
            at += 2 + length


def _webp_size(content: bytes) -> tuple[int, int]:
    form = content[12:16]
    if form == b"VP8X":
        return (
            1 + int.from_bytes(content[24:27], "little"),
            1 + int.from_bytes(content[27:30], "little"),
        )
    if form == b"VP8L":
        bits = int.from_bytes(content[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", content[26:30])
    return width & 0x3FFF, height & 0x3FFF
