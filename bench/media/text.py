"""Text files: decoded, in full up to the cap."""

from __future__ import annotations

from pathlib import Path

from bench.media.found import Found
from bench.media.settings import Settings

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_WIDEST_BYTES = 4


def read_text(path: Path, settings: Settings, found: Found) -> None:
    with path.open("rb") as stream:
        content = stream.read(settings.text_chars * _WIDEST_BYTES + 1)
    mark, encoding = next(((m, e) for m, e in _MARKS if content.startswith(m)), (b"", "utf-8"))
    text = content[len(mark) :].decode(encoding, "replace")
    if text.count("\ufffd") > len(text) / 20:
        encoding, text = "windows-1252", content.decode("cp1252", "replace")
    elif "\ufffd" in text:
        found.unread.append(f"some characters: they are no {encoding}")
    found.facts["Encoding"] = encoding
    if len(text) > settings.text_chars or path.stat().st_size > len(content):
        found.limit(f"text: the first {settings.text_chars} characters")
    found.text("Text", text[: settings.text_chars].replace("\r\n", "\n"))
