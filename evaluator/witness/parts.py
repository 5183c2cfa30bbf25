"""The small values that targets, actions and checks of a witness are made of."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*(?:\.(?:x|y|width|height))?)\}")
"""`${name}`, and `${name.width}` for a remembered box."""

_TERM = r"(?:\$\{[A-Za-z_][A-Za-z0-9_.]*\}|\d+(?:\.\d+)?)"
_AMOUNT = re.compile(rf"\s*-?{_TERM}(?:\s*[+-]\s*-?{_TERM})*\s*")


class Part(BaseModel):
    """Base of everything in a witness: unknown fields are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True)


def _is_pattern(value: str) -> str:
    try:
        re.compile(PLACEHOLDER.sub("x", value))
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return value


def _is_amount(value: float | str) -> float | str:
    if isinstance(value, str) and not _AMOUNT.fullmatch(value):
        raise ValueError(
            "must be a number, or numbers and ${names} joined by + or -, for example 3, "
            f'"${{before}}" or "${{before}} + 1"; got {value!r}'
        )
    return value


Text = Annotated[str, Field(max_length=2000)]
Words = Annotated[str, Field(min_length=1, max_length=2000)]
Pattern = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_is_pattern)]
"""A regular expression in Python's syntax, searched for anywhere in the text. A `${name}` in it stands for
its value taken literally."""
Amount = Annotated[float | str, AfterValidator(_is_amount)]
"""A number, or a sum such as `${before} + 1` of numbers and placeholders."""


def require_one_of(part: BaseModel, names: tuple[str, ...], *, at_most_one: bool = False) -> None:
    """Raise ValueError unless at least one of the fields `names` is given (exactly one with `at_most_one`)."""
    given = [name for name in names if getattr(part, name) is not None]
    if given and not (at_most_one and len(given) > 1):
        return
    said = "exactly one" if at_most_one else "at least one"
    raise ValueError(f"needs {said} of {', '.join(names)}; got {' and '.join(given) or 'none'}")


class NumberCheck(Part):
    """What a number must be. `equals` allows `tolerance` (default 0) either way."""

    equals: Amount | None = None
    at_least: Amount | None = None
    at_most: Amount | None = None
    tolerance: float = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        require_one_of(self, ("equals", "at_least", "at_most"))
        return self


class Point(Part):
    """A place inside an element as shares of its width and height: 0, 0 is top left, 1, 1 bottom right."""

    x: float = Field(ge=0, le=1)
    y: float = Field(ge=0, le=1)
