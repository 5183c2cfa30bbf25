"""An agent's patch as the page shows it: files, hunks, numbered lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

MAX_LINES = 4000
MAX_FILE_LINES = 800
MAX_LINE_CHARS = 400

Kind = Literal["add", "del", "same", "hunk", "note"]
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True)
class Line:
    """`old` and `new` are line numbers, None where the line is not on that side."""

    kind: Kind
    old: int | None
    new: int | None
    text: str


@dataclass
class FilePatch:
    """One file of a patch: what happened to it, how many lines came and went, and its lines up to the limits."""

    name: str
    status: str = "changed"
    added: int = 0
    removed: int = 0
    lines: list[Line] = field(default_factory=list)
    not_shown: int = 0


def read_patch(text: str) -> list[FilePatch]:
    """The files of a git patch, in its order. What is no patch gives none; nothing in it need be well formed."""
    files: list[FilePatch] = []
    shown, old, new, in_hunk = 0, 0, 0, False
    for raw in text.split("\n"):
        if raw.startswith("diff --git "):
            files.append(FilePatch(_name(raw)))
            in_hunk = False
            continue
        if not files:
            continue
        here = files[-1]
        hunk = _HUNK.match(raw)
        if hunk:
            old, new, in_hunk = int(hunk[1]), int(hunk[2]), True
            line = Line("hunk", None, None, raw)
        elif not in_hunk:
            _header(here, raw)
            continue
        elif raw.startswith("+"):
            line, new = Line("add", None, new, raw[1:]), new + 1
            here.added += 1
        elif raw.startswith("-"):
            line, old = Line("del", old, None, raw[1:]), old + 1
            here.removed += 1
        elif raw.startswith(" "):
            line, old, new = Line("same", old, new, raw[1:]), old + 1, new + 1
        elif raw.startswith("\\"):
            line = Line("note", None, None, raw[2:])
        else:
            continue
        if shown >= MAX_LINES or len(here.lines) >= MAX_FILE_LINES:
            here.not_shown += 1
            continue
        here.lines.append(_cut(line))
        shown += 1
    return files


def _name(line: str) -> str:
    """The path after the change; `diff --git a/X b/X` names it twice, so half of the rest is the name."""
    rest = line.removeprefix("diff --git ")
    half = (len(rest) - 1) // 2
    if rest[:half].removeprefix("a/") == rest[half + 1 :].removeprefix("b/"):
        return rest[half + 1 :].removeprefix("b/")
    return rest.rpartition(" b/")[2] or rest


def _header(file: FilePatch, line: str) -> None:
    for start, status in (
        ("new file", "added"), ("deleted file", "removed"), ("rename from", "renamed"),
        ("Binary files", "binary"), ("GIT binary patch", "binary"),
    ):  # fmt: skip
        if line.startswith(start):
            file.status = status


def _cut(line: Line) -> Line:
    if len(line.text) <= MAX_LINE_CHARS:
        return line
    more = len(line.text) - MAX_LINE_CHARS
    return Line(line.kind, line.old, line.new, f"{line.text[:MAX_LINE_CHARS]} … ({more} more characters)")
