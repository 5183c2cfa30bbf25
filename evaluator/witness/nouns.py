"""Targets, texts and numbers of a witness in words."""

from __future__ import annotations

from typing import Protocol

from evaluator.witness.targets import Target


def describe_target(target: Target) -> str:
    """The target as a noun phrase, for example: the 2nd button “Add” inside the element matching “.row”."""
    place = _place(target.nth)
    if target.role is not None:
        name = f" {quoted(target.name)}" if target.name else ""
        name = f" whose name matches {quoted(target.name_matches)}" if target.name_matches else name
        said = f"the {place}{target.role}{name}"
    elif target.label is not None:
        said = f"the {place}field {quoted(target.label)}"
    elif target.text is not None:
        said = f"the {place}text {quoted(target.text)}"
    elif target.placeholder is not None:
        said = f"the {place}field with placeholder {quoted(target.placeholder)}"
    elif target.testid is not None:
        said = f"the {place}element with test id {quoted(target.testid)}"
    else:
        said = f"the {place}element matching {quoted(target.css)}"
    if target.has_text is not None:
        said += f" with the text {quoted(target.has_text)}"
    if target.frame is not None:
        said += f" in the frame matching {quoted(target.frame)}"
    return said + (f" inside {describe_target(target.within)}" if target.within else "")


def quoted(value: object) -> str:
    """A string in quotation marks, shortened; a number as it is."""
    if isinstance(value, int | float):
        return shown_amount(value)
    text = str(value)
    return f"“{text if len(text) <= 120 else text[:119] + '…'}”"


def shown_amount(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.15g}"


def _place(nth: int | None) -> str:
    if nth is None:
        return ""
    if nth < 0:
        return "last " if nth == -1 else f"{_ordinal(-nth)} last "
    return f"{_ordinal(nth + 1)} "


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


class Reads(Protocol):
    """A step that reads something of an element."""

    @property
    def what(self) -> str: ...

    @property
    def attribute(self) -> str | None: ...

    @property
    def property(self) -> str | None: ...


def what_is_read(step: Reads) -> str:
    """What a step reads of an element, for example: attribute href."""
    return {"attribute": f"attribute {step.attribute}", "style": f"style {step.property}"}.get(step.what, step.what)
