"""Checks of what the page shows: texts, states, places, looks."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from evaluator.witness.actions import Action, PagePath
from evaluator.witness.parts import (
    Amount,
    NumberCheck,
    Pattern,
    Polled,
    Property,
    Region,
    Text,
    Words,
    require_one_of,
    require_what,
)
from evaluator.witness.targets import Target


class TextCheck(Polled):
    """The visible text of the target, white space folded, capitals as they are."""

    ONE_OF: ClassVar = ("equals", "contains", "matches", "not_contains", "number")
    expect: Literal["text"]
    target: Target
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None
    not_contains: Words | None = None
    number: NumberCheck | None = None


class ValueCheck(Polled):
    """What a field holds; for a drop-down list its value or the chosen option's label."""

    ONE_OF: ClassVar = ("equals", "contains", "matches", "number")
    expect: Literal["value"]
    target: Target
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None
    number: NumberCheck | None = None


class CountCheck(Polled):
    """How many visible elements match (all elements with `hidden_too`)."""

    ONE_OF: ClassVar = ("equals", "at_least", "at_most")
    expect: Literal["count"]
    target: Target
    equals: Amount | None = None
    at_least: Amount | None = None
    at_most: Amount | None = None
    hidden_too: bool = False


class StateCheck(Polled):
    """One state of one element. `hidden` also holds when there is no such element."""

    expect: Literal["visible", "hidden", "enabled", "disabled", "focused", "checked", "unchecked", "in_viewport"]
    target: Target


class UrlCheck(Polled):
    """The address from its path on (`/list?page=2#top`), without scheme and host."""

    ONE_OF: ClassVar = ("equals", "contains", "matches")
    expect: Literal["url"]
    equals: Text | None = None
    contains: Words | None = None
    matches: Pattern | None = None


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
    """A computed CSS property, of the element or of what is drawn before, after or in it (`pseudo`).

    Colours are compared as colours, however they are written."""

    ONE_OF: ClassVar = ("equals", "not_equals", "contains", "number")
    expect: Literal["style"]
    target: Target
    property: Property
    pseudo: Literal["before", "after", "placeholder", "marker"] | None = None
    equals: Text | None = None
    not_equals: Text | None = None
    contains: Words | None = None
    number: NumberCheck | None = None


class BoxCheck(Polled):
    """Where an element is and how large, by itself or beside another one (`relation`, `gap` and `of`). In CSS px.

    `ratio` is width divided by height; `gap` the free space between the two, negative where they overlap."""

    ONE_OF: ClassVar = ("relation", "width", "height", "x", "y", "ratio", "gap")
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
            "aligned_right",
            "aligned_top",
            "aligned_bottom",
            "centred_x",
            "centred_y",
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
    ratio: NumberCheck | None = None
    gap: NumberCheck | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.relation is None and self.gap is None) != (self.of is None):
            raise ValueError("relation and of go together, and gap and of")
        return self


class FitsWidthCheck(Polled):
    """Nothing has to be scrolled sideways: the page, or the target's own content, is no wider than its window."""

    expect: Literal["fits_width"]
    target: Target | None = None


class OrderCheck(Polled):
    """All visible matches (two or more) are sorted."""

    expect: Literal["order"]
    target: Target
    by: Literal["text", "number", "date", "duration"]
    direction: Literal["ascending", "descending"]


class EachCheck(Polled):
    """All visible matches, and there is at least one, are as said.

    What is looked at is the text, or `what`. `same`: all alike; `distinct`: no two alike."""

    ONE_OF: ClassVar = ("equals", "contains", "not_contains", "matches", "number", "same", "distinct")
    expect: Literal["each"]
    target: Target
    what: Literal["text", "attribute", "style", "width", "height", "x", "y"] = "text"
    attribute: Words | None = None
    property: Property | None = None
    equals: Text | None = None
    contains: Words | None = None
    not_contains: Words | None = None
    matches: Pattern | None = None
    number: NumberCheck | None = None
    same: Literal[True] | None = None
    distinct: Literal[True] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        require_what(self.what, attribute=self.attribute, style=self.property)
        return self


class CanvasChangedCheck(Polled):
    """The element's pixels change: through the action `during`, or by themselves while we watch."""

    expect: Literal["canvas_changed"]
    target: Target
    during: Action | None = None


class ImageCheck(Polled):
    """How much the element, or a `region` of it, looks like a reference: 1 is the same picture, 0 nothing alike.

    The reference is a picture the application serves (an attachment, for example), or another element `of`."""

    expect: Literal["image"]
    target: Target
    region: Region | None = None
    reference: PagePath | None = None
    of: Target | None = None
    at_least: float | None = Field(default=None, ge=0, le=1)
    at_most: float | None = Field(default=None, ge=0, le=1)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        require_one_of(self, ("reference", "of"), at_most_one=True)
        require_one_of(self, ("at_least", "at_most"))
        return self


class StartCheck(Polled):
    """What is seen here differs from what the start application shows at the same step, or is the same as there.

    A box may differ by 2 px and a picture by little, or by `tolerance` (px, share of the picture)."""

    expect: Literal["changed", "unchanged"]
    target: Target
    what: Literal["text", "value", "count", "attribute", "style", "box", "picture"]
    attribute: Words | None = None
    property: Property | None = None
    tolerance: float | None = Field(default=None, ge=0, le=500)

    @model_validator(mode="after")
    def _names_what_it_reads(self) -> Self:
        require_what(self.what, attribute=self.attribute, style=self.property)
        if self.tolerance is not None and self.what not in ("box", "picture"):
            raise ValueError('tolerance goes with "what": "box" or "picture"')
        return self


class ContrastCheck(Polled):
    """Contrast of the target's text with what lies behind it, 1 to 21 (WCAG 2, relative luminance)."""

    expect: Literal["contrast"]
    target: Target
    at_least: float = Field(ge=1, le=21)
