"""What must be true in a witness: one model for each `expect`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluator.witness.actions import Action
from evaluator.witness.parts import Amount, NumberCheck, Part, Pattern, Text, Words, require_one_of
from evaluator.witness.targets import Target


class Polled(Part):
    """Every check is tried until it is true or `within_ms` has passed."""

    within_ms: int = Field(default=2000, ge=1, le=10_000)


class TextCheck(Polled):
    """The visible text of the target, white space folded, capitals as they are."""

    expect: Literal["text"]
    target: Target
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None
    not_contains: Words | None = None
    number: NumberCheck | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("equals", "contains", "matches", "not_contains", "number"))
        return self


class ValueCheck(Polled):
    """What a field holds; for a drop-down list its value or the chosen option's label."""

    expect: Literal["value"]
    target: Target
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None
    number: NumberCheck | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("equals", "contains", "matches", "number"))
        return self


class CountCheck(Polled):
    """How many visible elements match (all elements with `hidden_too`)."""

    expect: Literal["count"]
    target: Target
    equals: Amount | None = None
    at_least: Amount | None = None
    at_most: Amount | None = None
    hidden_too: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("equals", "at_least", "at_most"))
        return self


class StateCheck(Polled):
    """One state of one element. `hidden` also holds when there is no such element."""

    expect: Literal["visible", "hidden", "enabled", "disabled", "focused", "checked", "unchecked", "in_viewport"]
    target: Target


class UrlCheck(Polled):
    """The address from its path on (`/list?page=2#top`), without scheme and host."""

    expect: Literal["url"]
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("equals", "contains", "matches"))
        return self


class AttributeCheck(Polled):
    """An attribute of the target; with nothing more said it must be there."""

    expect: Literal["attribute"]
    target: Target
    attribute: Words
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None
    absent: Literal[True] | None = None


class StyleCheck(Polled):
    """A computed CSS property. Colours are compared as colours, however they are written."""

    expect: Literal["style"]
    target: Target
    property: str = Field(pattern=r"^-{0,2}[a-z][A-Za-z0-9-]*$")
    equals: Text | None = None
    contains: Words | None = None
    number: NumberCheck | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("equals", "contains", "number"))
        return self


class BoxCheck(Polled):
    """Where an element is and how large, by itself or beside another one (`relation` and `of`). In CSS px."""

    expect: Literal["box"]
    target: Target
    relation: (
        Literal[
            "left_of",
            "right_of",
            "above",
            "below",
            "inside",
            "overlaps",
            "aligned_left",
            "aligned_top",
            "same_size",
            "wider_than",
            "taller_than",
        ]
        | None
    ) = None
    of: Target | None = None
    tolerance_px: float = Field(default=2, ge=0, le=500)
    width: NumberCheck | None = None
    height: NumberCheck | None = None
    x: NumberCheck | None = None
    y: NumberCheck | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("relation", "width", "height", "x", "y"))
        if (self.relation is None) != (self.of is None):
            raise ValueError("relation and of go together")
        return self


class OrderCheck(Polled):
    """All visible matches (two or more) are sorted."""

    expect: Literal["order"]
    target: Target
    by: Literal["text", "number", "date"]
    direction: Literal["ascending", "descending"]


class EachCheck(Polled):
    """All visible matches, and there is at least one, are as said."""

    expect: Literal["each"]
    target: Target
    contains: Words | None = None
    matches: Pattern | None = None
    number: NumberCheck | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("contains", "matches", "number"))
        return self


class StorageCheck(Polled):
    """An entry of localStorage or sessionStorage; with nothing more said it must be there."""

    expect: Literal["storage"]
    area: Literal["local", "session"]
    key: Words
    contains: Words | None = None
    absent: Literal[True] | None = None


class DownloadCheck(Polled):
    """A file the page gave to the user, after the action `after` or at any time before."""

    expect: Literal["download"]
    after: Action | None = None
    name_matches: Pattern | None = None
    content_contains: Words | None = None
    content_matches: Pattern | None = None


class DialogCheck(Polled):
    """An alert, confirm or prompt was shown whose message contains this."""

    expect: Literal["dialog"]
    contains: Words


class ConsoleCheck(Polled):
    """No script error and no console error so far. Addresses we refused ourselves do not count."""

    expect: Literal["console_clean"]


class MediaCheck(Polled):
    """An audio or video element. Times in seconds, volume 0 to 1, rate 1 for normal speed."""

    expect: Literal["media"]
    target: Target
    state: Literal["playing", "paused", "ended", "has_frames", "has_audio"] | None = None
    time: NumberCheck | None = None
    duration: NumberCheck | None = None
    volume: NumberCheck | None = None
    rate: NumberCheck | None = None
    muted: bool | None = None
    source_contains: Words | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("state", "time", "duration", "volume", "rate", "muted", "source_contains"))
        return self


class CanvasChangedCheck(Polled):
    """The element's pixels change: through the action `during`, or by themselves while we watch."""

    expect: Literal["canvas_changed"]
    target: Target
    during: Action | None = None


class ContrastCheck(Polled):
    """Contrast of the target's text with what lies behind it, 1 to 21 (WCAG 2, relative luminance)."""

    expect: Literal["contrast"]
    target: Target
    at_least: float = Field(ge=1, le=21)


class CompareCheck(Polled):
    """Two values, of which at least one is remembered or given as an input. `plus` is added to `left`."""

    expect: Literal["compare"]
    left: str | float
    right: str | float
    plus: Amount | None = None
    relation: Literal["equals", "not_equals", "less", "greater"]
    tolerance: float = Field(default=0, ge=0)


class RequestCheck(Polled):
    """The page asked for an address (refused ones count too)."""

    expect: Literal["request"]
    url_contains: Words
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] | None = None


Check = Annotated[
    TextCheck
    | ValueCheck
    | CountCheck
    | StateCheck
    | UrlCheck
    | AttributeCheck
    | StyleCheck
    | BoxCheck
    | OrderCheck
    | EachCheck
    | StorageCheck
    | DownloadCheck
    | DialogCheck
    | ConsoleCheck
    | MediaCheck
    | CanvasChangedCheck
    | ContrastCheck
    | CompareCheck
    | RequestCheck,
    Field(discriminator="expect"),
]
