"""Checks of what the application did: files, storage, sound, requests, and values of the past."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from evaluator.witness.actions import Action
from evaluator.witness.parts import Amount, NumberCheck, Part, Pattern, Polled, Text, Words
from evaluator.witness.targets import Target


class CsvContent(Part):
    """A table in a file: the first row names the columns; commas, semicolons or tabs between, RFC 4180."""

    ONE_OF: ClassVar = ("columns", "rows", "row_contains")
    columns: list[Words] | None = Field(default=None, min_length=1, max_length=50)
    """Must all be there, in this order; others may stand between."""
    rows: NumberCheck | None = None
    row_contains: list[Text] | None = Field(default=None, min_length=1, max_length=50)
    """One row has a cell with each of these, as a whole."""


class JsonContent(Part):
    """A value in a JSON file, found by `at`: names and positions joined by dots; without it the whole."""

    ONE_OF: ClassVar = ("at", "equals", "contains", "count")
    at: Words | None = None
    equals: Text | float | bool | None = None
    contains: Words | None = None
    count: NumberCheck | None = None


class StorageCheck(Polled):
    """An entry of localStorage or sessionStorage, or a cookie; with nothing more said it must be there."""

    expect: Literal["storage"]
    area: Literal["local", "session", "cookie"]
    key: Words
    contains: Words | None = None
    matches: Pattern | None = None
    absent: Literal[True] | None = None


class DownloadCheck(Polled):
    """A file the page gave to the user, after the action `after` or at any time before.

    `kind` is told by the file's first bytes, whatever its name says."""

    expect: Literal["download"]
    after: Action | None = None
    name_matches: Pattern | None = None
    bytes: NumberCheck | None = None
    kind: Literal["png", "jpeg", "gif", "webp", "svg", "pdf", "zip", "mp3", "mp4", "wav"] | None = None
    content_contains: Words | None = None
    content_matches: Pattern | None = None
    csv: CsvContent | None = None
    json_: JsonContent | None = Field(default=None, alias="json")


class ClipboardCheck(Polled):
    """What the page puts on the clipboard through the action `after`; the clipboard is emptied before it."""

    ONE_OF: ClassVar = ("equals", "contains", "matches")
    expect: Literal["clipboard"]
    after: Action
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None


class DialogCheck(Polled):
    """An alert, confirm or prompt was shown whose message contains this."""

    expect: Literal["dialog"]
    contains: Words


class ConsoleCheck(Polled):
    """No script error and no console error so far. Addresses we refused ourselves do not count."""

    expect: Literal["console_clean"]


class MediaCheck(Polled):
    """An audio or video element. Times in seconds, volume 0 to 1, rate 1 for normal speed.

    Without a target any one of the page, also one that is in no document (`new Audio()`). `captions`: a text track
    is shown."""

    ONE_OF: ClassVar = ("state", "time", "duration", "volume", "rate", "muted", "loop", "captions", "source_contains")
    expect: Literal["media"]
    target: Target | None = None
    state: Literal["playing", "paused", "ended", "has_frames", "has_audio"] | None = None
    time: NumberCheck | None = None
    duration: NumberCheck | None = None
    volume: NumberCheck | None = None
    rate: NumberCheck | None = None
    muted: bool | None = None
    loop: bool | None = None
    captions: bool | None = None
    source_contains: Words | None = None


class CompareCheck(Polled):
    """Two values, of which at least one is remembered or given as an input. `plus` is added to `left`.

    Either side may be arithmetic with spaces around its signs, `${qty} * 4.5 + 6.9`."""

    expect: Literal["compare"]
    left: str | float
    right: str | float
    plus: Amount | None = None
    relation: Literal["equals", "not_equals", "less", "greater", "contains", "starts_with"]
    tolerance: float = Field(default=0, ge=0)


class RequestCheck(Polled):
    """The page asked for an address (refused ones count too)."""

    expect: Literal["request"]
    url_contains: Words
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] | None = None
