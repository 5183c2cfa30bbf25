"""A digest as people and agents read it (`digest.md`) and as programs do (`digest.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.media.found import Found
from bench.media.settings import VERSION, Settings
from bench.tree import file_sha256, printable

SCHEMA = "cdb.digest/1"
_CALLED = {
    "audio": "Audio", "video": "Video", "image": "Image", "pdf": "PDF", "office": "Office document", "text": "Text",
    "other": "Of no known kind",
}  # fmt: skip
TEXT, SUMMARY = "digest.md", "digest.json"


def write_digest(folder: Path, source: dict[str, Any], settings: Settings, found: Found, transcript: str) -> None:
    """Write both files beside the pictures. `source`: name, sha256, bytes. The same input gives the same bytes."""
    text = "\n".join(_lines(source, found, transcript)) + "\n"
    (folder / TEXT).write_bytes(text.encode("utf-8", "backslashreplace"))
    files = [
        {"path": path.name, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in sorted(folder.iterdir())
    ]
    summary = {
        "schema": SCHEMA,
        "version": VERSION,
        "source": source,
        "kind": found.kind,
        "settings": settings.describe(),
        "facts": found.facts,
        "pictures": [picture.model_dump() for picture in found.pictures],
        "transcript": bool(settings.asr and found.speech),
        "unread": found.unread,
        "limits": found.limits,
        "files": files,
    }
    (folder / SUMMARY).write_text(json.dumps(summary, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _lines(source: dict[str, Any], found: Found, transcript: str) -> list[str]:
    lines = [
        f"# What is in {printable(source['name'])}",
        "",
        f"Made from the attachment by a program, without a model. {_CALLED[found.kind]}, "
        f"{source['bytes']} bytes, sha256 {source['sha256']}.",
        "",
        *(f"- {key}: {value}" for key, value in found.facts.items()),
    ]
    for title, said in (("Could not be read", found.unread), ("Left out for its length or size", found.limits)):
        if said:
            lines += ["", f"## {title}", "", *(f"- {line}" for line in said)]
    if found.kind in ("audio", "video"):
        lines += ["", "## Transcript", "", transcript]
    if found.pictures:
        lines += ["", "## Pictures, in this folder", ""]
        lines += [f"- `{picture.file}`: {picture.caption}" for picture in found.pictures]
    for section in found.sections:
        lines += ["", f"## {section.title}", "", section.text.rstrip()]
    return lines
