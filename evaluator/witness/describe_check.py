"""A check of a witness as a statement."""

from __future__ import annotations

from evaluator.witness import checks as c
from evaluator.witness.checks import Check
from evaluator.witness.describe_action import describe_action
from evaluator.witness.nouns import describe_target, quoted, shown_amount, what_is_read
from evaluator.witness.parts import NumberCheck

_RELATIONS = {
    "left_of": "is left of",
    "right_of": "is right of",
    "above": "is above",
    "below": "is below",
    "inside": "lies inside",
    "overlaps": "overlaps",
    "aligned_left": "has the same left edge as",
    "aligned_right": "has the same right edge as",
    "aligned_top": "has the same top edge as",
    "aligned_bottom": "has the same bottom edge as",
    "centred_x": "has its middle above or below that of",
    "centred_y": "has its middle beside that of",
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
            drawn = f" ({step.pseudo})" if step.pseudo else ""
            return f"See that the style {step.property} of {describe_target(step.target)}{drawn} {_says(step)}"
        case c.BoxCheck():
            return f"See that {describe_target(step.target)} {_box(step)}"
        case c.FitsWidthCheck():
            what = describe_target(step.target) if step.target else "the page"
            return f"See that {what} needs no scrolling sideways"
        case c.OrderCheck():
            return f"See that all of {describe_target(step.target)} are in {step.direction} order by {step.by}"
        case c.EachCheck():
            what = "" if step.what == "text" else f"the {what_is_read(step)} of "
            alike = ["is the same"] * bool(step.same) + ["is different from the others"] * bool(step.distinct)
            return (
                f"See that {what}each of {describe_target(step.target)} {' and '.join([_says(step), *alike]).strip()}"
            )
        case c.StorageCheck():
            what = "is absent" if step.absent else _says(step) or "is there"
            where = "the cookie" if step.area == "cookie" else f"{step.area} storage entry"
            return f"See that {where} {quoted(step.key)} {what}"
        case c.DownloadCheck():
            first = f"{describe_action(step.after)} and see" if step.after else "See"
            return f"{first} that a file is downloaded{_file(step)}"
        case c.ClipboardCheck():
            return f"{describe_action(step.after)} and see that what is on the clipboard {_says(step)}"
        case c.DialogCheck():
            return f"See that a dialog said {quoted(step.contains)}"
        case c.ConsoleCheck():
            return "See that the console shows no error"
        case c.MediaCheck():
            return f"See that {describe_target(step.target) if step.target else 'a sound or film'} {_media(step)}"
        case c.CanvasChangedCheck():
            first = f"{describe_action(step.during)} and see" if step.during else "See"
            return f"{first} that the picture of {describe_target(step.target)} changes"
        case c.ImageCheck():
            return _image(step)
        case c.StartCheck():
            how = "differs from" if step.expect == "changed" else "is the same as"
            what = f"{what_is_read(step)} of {describe_target(step.target)}"
            return f"See that the {what} {how} that of the start application"
        case c.ContrastCheck():
            return f"See that the contrast of {describe_target(step.target)} is at least {step.at_least:g}"
        case c.CompareCheck():
            left = f"{quoted(step.left)}" + (f" plus {step.plus}" if step.plus is not None else "")
            near = f" (within {step.tolerance:g})" if step.tolerance else ""
            return f"See that {left} {_COMPARED[step.relation]} {quoted(step.right)}{near}"
        case c.RequestCheck():
            return f"See that the page made a {step.method or ''} request to {quoted(step.url_contains)}".replace(
                "  ", " "
            )


_COMPARED = {
    "equals": "equals",
    "not_equals": "differs from",
    "less": "is less than",
    "greater": "is greater than",
    "contains": "contains",
    "starts_with": "starts with",
}


def _image(step: c.ImageCheck) -> str:
    part = ""
    if step.region:
        r = step.region
        part = f" (from {r.x:.0%}, {r.y:.0%} on, {r.width:.0%} wide and {r.height:.0%} high)"
    other = describe_target(step.of) if step.of else f"the picture {quoted(step.reference)}"
    bounds = [] if step.at_least is None else [f"at least {step.at_least:g}"]
    bounds += [] if step.at_most is None else [f"at most {step.at_most:g}"]
    return f"See that {describe_target(step.target)}{part} is like {other}: {' and '.join(bounds)}"


def _says(step: object) -> str:
    """The text and number conditions of a check, joined by and."""
    words = {
        "equals": "is",
        "not_equals": "is not",
        "at_least": "is at least",
        "at_most": "is at most",
        "contains": "contains",
        "matches": "matches",
        "not_contains": "does not contain",
    }
    said = [
        f"{verb} {quoted(value)}"
        for field, verb in words.items()
        if (value := getattr(step, field, None)) is not None
    ]
    number = getattr(step, "number", None)
    return " and ".join(said + ([f"has a number that {_number(number)}"] if number else []))


def _number(check: NumberCheck) -> str:
    said = []
    if check.equals is not None:
        near = f" (within {check.tolerance:g})" if check.tolerance else ""
        said.append(f"is {shown_amount(check.equals)}{near}")
    if check.at_least is not None:
        said.append(f"is at least {shown_amount(check.at_least)}")
    if check.at_most is not None:
        said.append(f"is at most {shown_amount(check.at_most)}")
    return " and ".join(said)


def _box(step: c.BoxCheck) -> str:
    said = []
    if step.relation and step.of:
        said.append(f"{_RELATIONS[step.relation]} {describe_target(step.of)}")
    for side in ("width", "height", "x", "y", "ratio"):
        if (number := getattr(step, side)) is not None:
            said.append(f"has a {side} that {_number(number)}")
    if step.gap and step.of:
        said.append(f"has a gap to {describe_target(step.of)} that {_number(step.gap)}")
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
    if step.loop is not None:
        said.append("plays again and again" if step.loop else "plays once")
    if step.captions is not None:
        said.append("shows captions" if step.captions else "shows no captions")
    if step.source_contains:
        said.append(f"plays a source that contains {quoted(step.source_contains)}")
    return " and ".join(said)


def _file(step: c.DownloadCheck) -> str:
    said = [
        f" whose {what} {verb} {quoted(value)}"
        for what, verb, value in (
            ("name", "matches", step.name_matches),
            ("content", "contains", step.content_contains),
            ("content", "matches", step.content_matches),
        )
        if value is not None
    ]
    if step.bytes:
        said.append(f" whose size in bytes {_number(step.bytes)}")
    if step.kind:
        said.append(f" that is a {step.kind} file")
    if step.csv:
        said.append(f" with a table {_table(step.csv)}")
    if step.json_:
        at = f" at {step.json_.at}" if step.json_.at else ""
        count = f"has a number of entries that {_number(step.json_.count)}" if step.json_.count else ""
        words = " and ".join(one for one in (_says(step.json_), count) if one)
        said.append(f" whose JSON{at} {words or 'is there'}")
    return " and".join(said)


def _table(wanted: c.CsvContent) -> str:
    said = [f"with the columns {', '.join(wanted.columns)}"] if wanted.columns else []
    if wanted.rows:
        said.append(f"with a number of rows that {_number(wanted.rows)}")
    if wanted.row_contains:
        said.append(f"with a row of {', '.join(wanted.row_contains)}")
    return " and ".join(said)
