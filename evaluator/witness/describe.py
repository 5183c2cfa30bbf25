"""A step of a witness in one plain English sentence that a person could follow by hand."""

from __future__ import annotations

from evaluator.witness import actions as a
from evaluator.witness import checks as c
from evaluator.witness.actions import Action
from evaluator.witness.checks import Check
from evaluator.witness.parts import NumberCheck
from evaluator.witness.targets import Target

_RELATIONS = {
    "left_of": "is left of",
    "right_of": "is right of",
    "above": "is above",
    "below": "is below",
    "inside": "lies inside",
    "overlaps": "overlaps",
    "aligned_left": "has the same left edge as",
    "aligned_top": "has the same top edge as",
    "same_size": "has the same size as",
    "wider_than": "is wider than",
    "taller_than": "is taller than",
}
_STATES = {
    "visible": "is visible",
    "hidden": "is not visible",
    "enabled": "can be used",
    "disabled": "is disabled",
    "focused": "has the keyboard focus",
    "checked": "is checked",
    "unchecked": "is not checked",
    "in_viewport": "is on screen without scrolling",
}


def describe(step: Action | Check) -> str:
    """The step as a sentence without its full stop, for example: Click the button “Add”."""
    return describe_check(step) if isinstance(step, c.Polled) else describe_action(step)


def describe_target(target: Target) -> str:
    """The target as a noun phrase, for example: the 2nd button “Add” inside the element matching “.row”."""
    place = _place(target.nth)
    if target.role is not None:
        name = f" {_q(target.name)}" if target.name else ""
        name = f" whose name matches {_q(target.name_matches)}" if target.name_matches else name
        said = f"the {place}{target.role}{name}"
    elif target.label is not None:
        said = f"the {place}field {_q(target.label)}"
    elif target.text is not None:
        said = f"the {place}text {_q(target.text)}"
    elif target.placeholder is not None:
        said = f"the {place}field with placeholder {_q(target.placeholder)}"
    elif target.testid is not None:
        said = f"the {place}element with test id {_q(target.testid)}"
    else:
        said = f"the {place}element matching {_q(target.css)}"
    if target.has_text is not None:
        said += f" with the text {_q(target.has_text)}"
    return said + (f" inside {describe_target(target.within)}" if target.within else "")


def describe_action(step: Action) -> str:  # noqa: PLR0911, PLR0912 - one line for each word of the language
    """What to do, as an order."""
    match step:
        case a.Open():
            return f"Open {step.path}"
        case a.Click():
            verb = {"click": "Click", "dblclick": "Double-click", "right_click": "Right-click"}
            spot = f" at {step.at.x:.0%} of its width and {step.at.y:.0%} of its height" if step.at else ""
            return f"{verb.get(step.do, 'Point at')} {describe_target(step.target)}{spot}"
        case a.Fill():
            if not step.text:
                return f"Empty {describe_target(step.target)}"
            return f"Fill {describe_target(step.target)} with {_q(step.text)}"
        case a.Type():
            return f"Type {_q(step.text)}" + (f" into {describe_target(step.target)}" if step.target else "")
        case a.Press():
            return f"Press {step.key}" + (f" in {describe_target(step.target)}" if step.target else "")
        case a.Select():
            return f"Choose {_q(step.option)} in {describe_target(step.target)}"
        case a.SetChecked():
            return f"{'Check' if step.do == 'check' else 'Uncheck'} {describe_target(step.target)}"
        case a.Drag():
            return f"Drag {describe_target(step.target)} to {describe_target(step.to)}"
        case a.Upload():
            what = f"the file {_q(step.name)}" if step.name else f"a sample {step.media} file"
            return f"Give {what} to {describe_target(step.target)}"
        case a.Scroll():
            what = describe_target(step.target) if step.target else "the page"
            if step.to is None and step.by is None:
                return f"Scroll {what} into view"
            return f"Scroll {what} " + (f"to the {step.to}" if step.to else f"by {step.by} px")
        case a.SetViewport():
            return f"Make the window {step.width} × {step.height}"
        case a.Simple():
            words = {"reload": "Reload the page", "back": "Go back", "clear_storage": "Clear the stored data"}
            return words[step.do]
        case a.Wait():
            return f"Wait {step.ms} ms"
        case a.AnswerDialogs():
            how = "Accept" if step.accept else "Dismiss"
            return f"{how} dialogs from here on" + (f", answering {_q(step.text)}" if step.text else "")
        case a.Clock():
            return f"Let the clock run on by {_span(step.advance_ms)}"
        case a.Remember():
            what = f"attribute {step.attribute}" if step.attribute else step.what
            return f"Remember the {what} of {describe_target(step.target)} as “{step.as_}”"


def describe_check(step: Check) -> str:  # noqa: PLR0911, PLR0912 - one line for each word of the language
    """What must be true, as a statement."""
    match step:
        case c.TextCheck():
            return f"See that the text of {describe_target(step.target)} {_says(step)}"
        case c.ValueCheck():
            return f"See that {describe_target(step.target)} holds a value that {_says(step)}"
        case c.CountCheck():
            shown = "matches" if step.hidden_too else "visible matches"
            return f"See that the number of {shown} for {describe_target(step.target)} {_says(step)}"
        case c.StateCheck():
            return f"See that {describe_target(step.target)} {_STATES[step.expect]}"
        case c.UrlCheck():
            return f"See that the address {_says(step)}"
        case c.AttributeCheck():
            what = "is absent" if step.absent else _says(step) or "is there"
            return f"See that the attribute {step.attribute} of {describe_target(step.target)} {what}"
        case c.StyleCheck():
            return f"See that the style {step.property} of {describe_target(step.target)} {_says(step)}"
        case c.BoxCheck():
            return f"See that {describe_target(step.target)} {_box(step)}"
        case c.OrderCheck():
            return f"See that all of {describe_target(step.target)} are in {step.direction} order by {step.by}"
        case c.EachCheck():
            return f"See that each of {describe_target(step.target)} {_says(step)}"
        case c.StorageCheck():
            what = "is absent" if step.absent else _says(step) or "is there"
            return f"See that {step.area} storage entry {_q(step.key)} {what}"
        case c.DownloadCheck():
            first = f"{describe_action(step.after)} and see" if step.after else "See"
            return f"{first} that a file is downloaded{_file(step)}"
        case c.DialogCheck():
            return f"See that a dialog said {_q(step.contains)}"
        case c.ConsoleCheck():
            return "See that the console shows no error"
        case c.MediaCheck():
            return f"See that {describe_target(step.target)} {_media(step)}"
        case c.CanvasChangedCheck():
            first = f"{describe_action(step.during)} and see" if step.during else "See"
            return f"{first} that the picture of {describe_target(step.target)} changes"
        case c.ContrastCheck():
            return f"See that the contrast of {describe_target(step.target)} is at least {step.at_least:g}"
        case c.CompareCheck():
            left = f"{_q(step.left)}" + (f" plus {step.plus}" if step.plus is not None else "")
            relation = {"equals": "equals", "not_equals": "differs from", "less": "is less than"}
            near = f" (within {step.tolerance:g})" if step.tolerance else ""
            return f"See that {left} {relation.get(step.relation, 'is greater than')} {_q(step.right)}{near}"
        case c.RequestCheck():
            return f"See that the page made a {step.method or ''} request to {_q(step.url_contains)}".replace(
                "  ", " "
            )


def _says(step: object) -> str:
    """The text and number conditions of a check, joined by and."""
    words = {
        "equals": "is",
        "at_least": "is at least",
        "at_most": "is at most",
        "contains": "contains",
        "matches": "matches",
        "not_contains": "does not contain",
    }
    said = [
        f"{verb} {_q(value)}" for field, verb in words.items() if (value := getattr(step, field, None)) is not None
    ]
    number = getattr(step, "number", None)
    return " and ".join(said + ([f"has a number that {_number(number)}"] if number else []))


def _number(check: NumberCheck) -> str:
    said = []
    if check.equals is not None:
        near = f" (within {check.tolerance:g})" if check.tolerance else ""
        said.append(f"is {_amount(check.equals)}{near}")
    if check.at_least is not None:
        said.append(f"is at least {_amount(check.at_least)}")
    if check.at_most is not None:
        said.append(f"is at most {_amount(check.at_most)}")
    return " and ".join(said)


def _box(step: c.BoxCheck) -> str:
    said = []
    if step.relation and step.of:
        said.append(f"{_RELATIONS[step.relation]} {describe_target(step.of)}")
    for side in ("width", "height", "x", "y"):
        if (number := getattr(step, side)) is not None:
            said.append(f"has a {side} that {_number(number)}")
    return " and ".join(said)


def _media(step: c.MediaCheck) -> str:
    states = {
        "playing": "is playing",
        "paused": "is paused",
        "ended": "has ended",
        "has_frames": "shows pictures",
        "has_audio": "has sound",
    }
    said = [states[step.state]] if step.state else []
    for name in ("time", "duration", "volume", "rate"):
        if (number := getattr(step, name)) is not None:
            said.append(f"has a {name} that {_number(number)}")
    if step.muted is not None:
        said.append("is muted" if step.muted else "is not muted")
    if step.source_contains:
        said.append(f"plays a source that contains {_q(step.source_contains)}")
    return " and ".join(said)


def _file(step: c.DownloadCheck) -> str:
    said = [
        f" whose {what} {verb} {_q(value)}"
        for what, verb, value in (
            ("name", "matches", step.name_matches),
            ("content", "contains", step.content_contains),
            ("content", "matches", step.content_matches),
        )
        if value is not None
    ]
    return " and".join(said)


def _q(value: object) -> str:
    """A string in quotation marks, shortened; a number as it is."""
    if isinstance(value, int | float):
        return _amount(value)
    text = str(value)
    return f"“{text if len(text) <= 120 else text[:119] + '…'}”"


def _amount(value: float | str) -> str:
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


def _span(ms: int) -> str:
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000)):
        if ms >= size and ms % size == 0:
            return f"{ms // size} {unit}"
    return f"{ms} ms"
