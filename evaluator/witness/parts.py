"""The small values that targets, actions and checks of a witness are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from evaluator.witness.sums import value_of

PLACEHOLDER = re.compile(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*(?:\.(?:x|y|width|height))?)(?:\|(upper|lower|trim|length|reverse))?\}"
)
"""`${name}`, `${name.width}` for a remembered box, and `${name|upper}` for what is made of a value."""

MADE: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "trim": str.strip,
    "length": lambda value: str(len(value)),
    "reverse": lambda value: value[::-1],
}
"""What `${name|word}` makes of a value, so that an output can be told from the input it belongs to."""


class Part(BaseModel):
    """Base of everything in a witness: unknown fields are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)
    ONE_OF: ClassVar[tuple[str, ...]] = ()
    """Fields of which at least one must be given; none for a part that says something by itself."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.ONE_OF:
            require_one_of(self, self.ONE_OF)
        return self


def _is_pattern(value: str) -> str:
    try:
        re.compile(PLACEHOLDER.sub("x", value))
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return value


def _is_amount(value: float | str) -> float | str:
    if not isinstance(value, str):
        return value
    try:
        value_of(PLACEHOLDER.sub("(1)", value))
    except ValueError as error:
        if "division" not in str(error):  # with other values there may be something to divide by
            raise ValueError(
                "must be a number, or numbers and ${names} joined by + - * / and parentheses, for example 3, "
                f'"${{before}}" or "${{before}} + 1"; got {value!r}'
            ) from None
    return value


Text = Annotated[str, Field(max_length=2000)]
Words = Annotated[str, Field(min_length=1, max_length=2000)]
Pattern = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_is_pattern)]
"""A regular expression in Python's syntax, searched for anywhere in the text. A `${name}` in it stands for
its value taken literally."""
Property = Annotated[str, Field(pattern=r"^-{0,2}[a-z][A-Za-z0-9-]*$")]
"""A CSS property as getComputedStyle names it, for example `background-color`; or a variable, `--accent`."""
Amount = Annotated[float | str, AfterValidator(_is_amount)]
"""A number, or arithmetic such as `${before} + 1` or `${qty} * 4.5 + 6.9` on numbers and placeholders."""


def require_one_of(part: BaseModel, names: tuple[str, ...], *, at_most_one: bool = False) -> None:
    """Raise ValueError unless at least one of the fields `names` is given (exactly one with `at_most_one`)."""
    given = [name for name in names if getattr(part, name) is not None]
    if given and not (at_most_one and len(given) > 1):
        return
    said = "exactly one" if at_most_one else "at least one"
    raise ValueError(f"needs {said} of {', '.join(names)}; got {' and '.join(given) or 'none'}")


def require_what(what: str | None, *, attribute: str | None, style: str | None) -> None:
    """Raise ValueError unless `attribute` and `property` are named where they are read, and only there."""
    if (what == "attribute") != (attribute is not None):
        raise ValueError('attribute goes with "what": "attribute", and only with it')
    if (what == "style") != (style is not None):
        raise ValueError('property goes with "what": "style", and only with it')


class NumberCheck(Part):
    """What a number must be. `equals` allows `tolerance` (default 0) either way."""

    ONE_OF: ClassVar = ("equals", "at_least", "at_most")
    equals: Amount | None = None
    at_least: Amount | None = None
    at_most: Amount | None = None
    tolerance: float = Field(default=0, ge=0)


class Point(Part):
    """A place inside an element as shares of its width and height: 0, 0 is top left, 1, 1 bottom right."""

    x: float = Field(ge=0, le=1)
    y: float = Field(ge=0, le=1)


class Region(Part):
    """A part of an element as shares of its width and height; the whole element where nothing is said."""

    x: float = Field(default=0, ge=0, lt=1)
    y: float = Field(default=0, ge=0, lt=1)
    width: float = Field(default=1, gt=0, le=1)
    height: float = Field(default=1, gt=0, le=1)

    @model_validator(mode="after")
    def _lies_inside(self) -> Self:
        if self.x + self.width > 1.0001 or self.y + self.height > 1.0001:
            raise ValueError("reaches beyond the element: x + width and y + height may be 1 at most")
        return self


class Polled(Part):
    """Every check is tried until it is true or `within_ms` has passed."""

    within_ms: int = Field(default=2000, ge=1, le=10_000)
