"""Citations in context: the quoted lines with those around them, from the sealed submission."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluator.records import Citation

AROUND = 4
MAX_BYTES = 2_000_000
MAX_LINE_CHARS = 300


@dataclass(frozen=True)
class Quoted:
    """A citation; `lines` are (number, text, is part of the quotation), empty with a `note` why."""

    place: str
    quote: str
    lines: list[tuple[int, str, bool]]
    note: str


class Sources:
    """Files of one submission, each read once."""

    def __init__(self, submission: Path | None) -> None:
        self._submission = submission
        self._lines: dict[str, list[str] | str] = {}

    def in_context(self, citation: Citation) -> Quoted:
        """`citation` with the lines around it; without them when the file is not at hand or has no such line."""
        place = citation.path if citation.line is None else f"{citation.path}:{citation.line}"
        if citation.path not in self._lines:
            self._lines[citation.path] = self._read(citation.path)
        lines = self._lines[citation.path]
        if isinstance(lines, str):
            return Quoted(place, citation.quote, [], lines)
        if citation.line is None or not 1 <= citation.line <= len(lines):
            return Quoted(place, citation.quote, [], "the line is not known")
        last = citation.line + citation.quote.strip("\n").count("\n")
        first, end = max(1, citation.line - AROUND), min(len(lines), last + AROUND)
        near = [(at, lines[at - 1][:MAX_LINE_CHARS], citation.line <= at <= last) for at in range(first, end + 1)]
        return Quoted(place, citation.quote, near, "")

    def _read(self, name: str) -> list[str] | str:
        if self._submission is None:
            return "the submission is not at hand"
        try:
            path = (self._submission / name).resolve()
            if not path.is_relative_to(self._submission.resolve()):
                return "it leads out of the submission"
            if path.stat().st_size > MAX_BYTES:
                return "the file is too long to show"
            return path.read_bytes().decode("utf-8", "replace").split("\n")
        except (OSError, ValueError):
            return "the file is not at hand"
