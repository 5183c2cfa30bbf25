"""Changing one member of a JSON document while every other byte stays as it came.

A request must reach the provider as the agent wrote it. Parsing and writing it anew would change numbers,
escapes and key order, so edits are made on the text, at spans that the parser reports.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
MOST_PARTS = 2_000_000
"""Commas and brackets in a document, those in its texts counted in: a million tokens of text have fewer, and a bomb
(`[[],[],…`) would take thirty times its size in memory."""
MOST_MEMBERS = 1000
"""Of one object or array that is taken apart here (the document itself, its tools)."""


class NotEditable(ValueError):
    """The text is no JSON object, or one whose meaning depends on who reads it (a key that stands twice)."""


class Span(NamedTuple):
    """One member of an object (or element of an array, with an empty key): where it lies and what it is."""

    key: str
    start: int
    """Where the key begins (for an element: the value)."""
    value_start: int
    end: int
    value: Any


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise NotEditable(f"not JSON: {error}") from error


def spans(text: str, at: int = 0) -> tuple[list[Span], int]:
    """The members of the object, or the elements of the array, that begins at `at`; and where it ends."""
    at = _skip(text, at)
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        raise NotEditable("not a JSON object or array")
    closing = "}" if opening == "{" else "]"
    found: list[Span] = []
    at = _skip(text, at + 1)
    if text[at : at + 1] == closing:
        return found, at + 1
    while True:
        start, key = at, ""
        if opening == "{":
            if text[at : at + 1] != '"':
                raise NotEditable(f"not JSON: a key is missing at character {at}")
            key, at = _value(text, at)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise NotEditable(f"not JSON: a colon is missing at character {at}")
            at = _skip(text, at + 1)
        value, end = _value(text, at)
        found.append(Span(key, start, at, end, value))
        if len(found) > MOST_MEMBERS:
            raise NotEditable(f"more than {MOST_MEMBERS} members or elements")
        at = _skip(text, end)
        mark = text[at : at + 1]
        if mark == closing:
            return found, at + 1
        if mark != ",":
            raise NotEditable(f"not JSON: a comma is missing at character {at}")
        at = _skip(text, at + 1)


def joined(text: str, kept: list[Span], brackets: str) -> str:
    """An object (`{}`) or array (`[]`) of just these members, each byte for byte."""
    return brackets[0] + ",".join(text[span.start : span.end] for span in kept) + brackets[1]


class Document:
    """One JSON object with its top-level members; `bytes()` is the original until something was changed."""

    def __init__(self, raw: bytes) -> None:
        """Raises NotEditable: not UTF-8, not one JSON object, or a top-level key that stands twice."""
        self._raw = raw
        if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MOST_PARTS:
            raise NotEditable(f"more than {MOST_PARTS} parts")
        try:
            self.text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise NotEditable(f"not UTF-8: {error}") from error
        self._members, end = spans(self.text)
        if not self.text[_skip(self.text, 0) :].startswith("{"):
            raise NotEditable("not a JSON object")
        if _skip(self.text, end) != len(self.text):
            raise NotEditable("something follows the JSON object")
        self.members = {span.key: span for span in self._members}
        if len(self.members) != len(self._members):
            raise NotEditable("a key stands twice in the JSON object")
        self._new: dict[str, str | None] = {}

    def get(self, key: str) -> Any:
        """The value as it came, or None."""
        span = self.members.get(key)
        return span.value if span else None

    def drop(self, key: str) -> None:
        self._new[key] = None

    def put(self, key: str, value: str) -> None:
        """Give `key` another value, written as JSON already; at the end where it is new."""
        self._new[key] = value

    def bytes(self) -> bytes:
        if not self._new:
            return self._raw
        pieces = []
        for span in self._members:
            if span.key not in self._new:
                pieces.append(self.text[span.start : span.end])
            elif (value := self._new[span.key]) is not None:
                pieces.append(self.text[span.start : span.value_start] + value)
        pieces += [
            f"{json.dumps(key)}:{value}"
            for key, value in self._new.items()
            if value is not None and key not in self.members
        ]
        return ("{" + ",".join(pieces) + "}").encode("utf-8")
