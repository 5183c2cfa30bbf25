"""What one look at the page found."""

from __future__ import annotations

from typing import NamedTuple

from evaluator.replay.readings import amount, first_number, fold, number_fits
from evaluator.witness.parts import NumberCheck

_MAX_SHOWN_CHARS = 160


class Finding(NamedTuple):
    """Whether the check holds now, and what was seen, as the end of a sentence that starts with "saw"."""

    holds: bool
    seen: str


def quoted(text: str) -> str:
    """The text in quotation marks, shortened."""
    return f"“{text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 1] + '…'}”"


def number_in(text: str, check: NumberCheck) -> bool:
    """Whether the first number in `text` is as asked; false when there is none."""
    number = first_number(text)
    return number is not None and number_fits(number, check)


def count_fits(count: int, equals: float | str | None, least: float | str | None, most: float | str | None) -> bool:
    return (
        (equals is None or count == amount(equals))
        and (least is None or count >= amount(least))
        and (most is None or count <= amount(most))
    )


def same_text(seen: str, wanted: str) -> bool:
    return fold(seen) == fold(wanted)


def has_text(seen: str, wanted: str) -> bool:
    return fold(wanted) in fold(seen)
