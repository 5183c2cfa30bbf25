"""Checks against the start application: what is seen at the same step there, and whether it is the same here."""

from __future__ import annotations

import json

from evaluator.replay.check_content import field_values, visible_text
from evaluator.replay.check_looks import picture
from evaluator.replay.finding import Finding, quoted
from evaluator.replay.inside import READ_MS, ask
from evaluator.replay.likeness import thumbnail, thumbnails_alike
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import checks as c

NOT_THERE = "(not there)"
"""Reading of an element that the start application does not show."""
BOX_PX = 2.0
PICTURE_SHARE = 0.02


def against_start(stage: Stage, check: c.StartCheck) -> Finding:
    """On the start itself everything is as it was. The reading is kept under the step's number."""
    here = str(stage.step)
    if stage.on_start:
        stage.readings[here] = _on_start(stage, check)
        return Finding(check.expect == "unchanged" and stage.readings[here] != NOT_THERE, _told(stage.readings[here]))
    stage.readings[here] = now = _read(stage, check)
    then = stage.reference.get(here)
    if then is None:
        raise NotShown("nothing to compare with: the start application did not come to this step")
    same = _same(then, now, check)
    return Finding(same == (check.expect == "unchanged"), f"{_told(now)} where the start has {_told(then)}")


def _on_start(stage: Stage, check: c.StartCheck) -> str:
    try:
        return _read(stage, check)
    except NotShown:
        return NOT_THERE


def _read(stage: Stage, check: c.StartCheck) -> str:  # noqa: PLR0911 - one line for each word
    """What is compared, as text. Raises NotShown."""
    if check.what == "count":
        return str(stage.all(check.target, visible=True).count())
    found = stage.shown(check.target)
    match check.what:
        case "text":
            return visible_text(found)
        case "value":
            return field_values(found)[0]
        case "attribute":
            value = found.get_attribute(check.attribute or "", timeout=READ_MS)
            if value is None:
                raise NotShown(f"the element has no attribute {check.attribute}")
            return value
        case "style":
            return str(ask(found, "style", check.property))
        case "box":
            box = found.bounding_box(timeout=READ_MS)
            if box is None:
                raise NotShown("the element is there but cannot be seen")
            return json.dumps(
                [round(box["x"], 1), round(box["y"], 1), round(box["width"], 1), round(box["height"], 1)]
            )
        case _:
            return thumbnail(picture(stage, check.target))


def _same(then: str, now: str, check: c.StartCheck) -> bool:
    if then == NOT_THERE:
        return False
    if check.what == "box":
        near = BOX_PX if check.tolerance is None else check.tolerance
        return all(abs(a - b) <= near for a, b in zip(json.loads(then), json.loads(now), strict=True))
    if check.what == "picture":
        most = PICTURE_SHARE if check.tolerance is None else check.tolerance
        return thumbnails_alike(then, now) >= 1 - most
    return then == now


def _told(reading: str) -> str:
    size, colon, data = reading.partition(":")
    if colon and data.startswith("iVBOR"):  # a PNG in base64
        return f"a picture of {size} px"
    return quoted(reading)
