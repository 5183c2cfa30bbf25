"""Pictures of the page: each distinct one embedded once, by content, within a size limit for the whole page."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BUDGET_BYTES = 10_500_000
"""Of picture files; base64 makes it 14 MB, and the page is to stay under 15 MB."""


@dataclass(frozen=True)
class Picture:
    """A picture as the page refers to it. Without `key` it is not embedded, and `note` says why."""

    key: str = ""
    width: int = 0
    height: int = 0
    note: str = ""
    left_out: bool = False
    """It exists; there was no room for it."""


class Shelf:
    """Embedded pictures by key. Whoever asks first gets room first, so ask in order of importance."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._room_bytes = budget_bytes
        self._by_path: dict[Path, Picture] = {}
        self._by_key: dict[str, Picture] = {}
        self._uris: dict[str, str] = {}
        self.left_out = 0
        """Pictures that exist and would have made the page too large."""

    def take(self, path: Path, shown_as: str) -> Picture:
        """The picture at `path`; `shown_as` names it in the note of one that is missing or left out."""
        if path not in self._by_path:
            self._by_path[path] = self._load(path, shown_as)
        return self._by_path[path]

    def take_inside(self, folder: Path, name: str) -> Picture:
        """The picture `name`, a path relative to `folder`; one that leads out of the folder is not shown."""
        try:
            path = (folder / name).resolve()
        except (OSError, ValueError):
            return Picture(note=f"Picture missing: {name} (not a usable path)")
        if not path.is_relative_to(folder.resolve()):
            return Picture(note=f"Not shown: {name} leads out of the results folder")
        return self.take(path, name)

    def uris(self) -> Iterable[tuple[str, str]]:
        """(key, data: URI) of every embedded picture, by key."""
        return sorted(self._uris.items())

    def _load(self, path: Path, shown_as: str) -> Picture:
        try:
            content = path.read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a usable path"
            return Picture(note=f"Picture missing: {shown_as} ({reason.lower()})")
        found = measure(content)
        if found is None:
            return Picture(note=f"Not shown: {shown_as} is no PNG, JPEG, GIF or WebP picture")
        key = hashlib.sha256(content).hexdigest()[:20]
        if key in self._by_key:
            return self._by_key[key]
        if len(content) > self._room_bytes:
            self.left_out += 1
            note = f"Left out to keep the page small: {shown_as} ({len(content) // 1024} KiB)"
            return Picture(note=note, left_out=True)
        self._room_bytes -= len(content)
        media, width, height = found
        self._uris[key] = f"data:{media};base64,{base64.b64encode(content).decode('ascii')}"
        self._by_key[key] = Picture(key, width, height)
        return self._by_key[key]


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
