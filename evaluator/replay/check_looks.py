"""Checks of how things look: states, boxes, styles, contrast, pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import FloatRect, Locator

from evaluator.replay.finding import Finding, number_in, quoted
from evaluator.replay.inside import READ_MS, ask, only_seen
from evaluator.replay.likeness import likeness, read_picture
from evaluator.replay.readings import fold, number_fits, plain
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import Target
from evaluator.witness import checks as c
from evaluator.witness.parts import Region

if TYPE_CHECKING:
    from PIL.Image import Image


def state(stage: Stage, check: c.StateCheck) -> Finding:
    if check.expect == "hidden":
        return _hidden(stage, check.target)
    if check.expect == "visible":
        stage.shown(check.target)
        return Finding(True, "it")
    if check.expect == "focused":
        focused = stage.all(check.target).and_(stage.page.locator(":focus"))
        return Finding(focused.count() > 0, "it focused" if focused.count() else "the focus elsewhere")
    if check.expect == "in_viewport":
        return _in_viewport(stage, stage.shown(check.target))
    found = stage.present(check.target)
    if check.expect in ("enabled", "disabled"):
        enabled = found.is_enabled(timeout=READ_MS)
        return Finding(enabled == (check.expect == "enabled"), "it enabled" if enabled else "it disabled")
    checked = _is_checked(found)
    return Finding(checked == (check.expect == "checked"), "it checked" if checked else "it unchecked")


def _hidden(stage: Stage, target: Target) -> Finding:
    """No match can be seen."""
    seen = only_seen(stage.all(target, visible=True)).count()
    return Finding(not seen, "it" if seen else "nothing of it")


def _is_checked(found: Locator) -> bool:
    """The state of a checkbox, radio button or switch, or of a toggle button (aria-pressed)."""
    try:
        return found.is_checked(timeout=READ_MS)
    except PlaywrightError as error:
        if "Not a checkbox" not in error.message:
            raise
    pressed = found.get_attribute("aria-pressed", timeout=READ_MS)
    if pressed is None:
        raise NotShown("the element is nothing that can be checked")
    return pressed == "true"


def _in_viewport(stage: Stage, found: Locator) -> Finding:
    """At least half of the element, or of the window where the element is larger, is on screen."""
    box, size = _box(found), stage.page.viewport_size
    if size is None:
        raise NotShown("the window has no fixed size")
    wide = min(box["x"] + box["width"], size["width"]) - max(box["x"], 0)
    high = min(box["y"] + box["height"], size["height"]) - max(box["y"], 0)
    shown = max(wide, 0) * max(high, 0)
    whole = min(box["width"], size["width"]) * min(box["height"], size["height"])
    return Finding(shown >= whole / 2, f"{shown / whole:.0%} of it on screen")


def style(stage: Stage, check: c.StyleCheck) -> Finding:
    found = stage.present(check.target)
    seen, same, banned = ask(found, "styleBeside", check.property, check.pseudo, check.equals, check.not_equals)
    holds = (
        (check.equals is None or same or fold(seen).casefold() == fold(check.equals).casefold())
        and (check.not_equals is None or not (banned or fold(seen).casefold() == fold(check.not_equals).casefold()))
        and (check.contains is None or check.contains.casefold() in seen.casefold())
        and (check.number is None or number_in(seen, check.number))
    )
    return Finding(holds, quoted(seen))


def box(stage: Stage, check: c.BoxCheck) -> Finding:
    seen = _box(stage.shown(check.target))
    holds, said = True, _shape(seen)
    for side in ("width", "height", "x", "y"):
        wanted = getattr(check, side)
        if wanted is not None:
            holds = holds and number_fits(seen[side], wanted)
    if check.ratio is not None:
        holds = holds and number_fits(seen["width"] / seen["height"], check.ratio)
    if check.of is not None:
        other = _box(stage.shown(check.of))
        holds = holds and (check.relation is None or _related(seen, other, check.relation, check.tolerance_px))
        holds = holds and (check.gap is None or number_fits(_gap(seen, other), check.gap))
        said += f" and the other {_shape(other)}"
    return Finding(holds, said)


def _related(one: FloatRect, other: FloatRect, relation: str, near: float) -> bool:
    right, bottom = one["x"] + one["width"], one["y"] + one["height"]
    other_right, other_bottom = other["x"] + other["width"], other["y"] + other["height"]
    relations = {
        "left_of": right <= other["x"] + near,
        "right_of": one["x"] >= other_right - near,
        "above": bottom <= other["y"] + near,
        "below": one["y"] >= other_bottom - near,
        "inside": one["x"] >= other["x"] - near
        and one["y"] >= other["y"] - near
        and right <= other_right + near
        and bottom <= other_bottom + near,
        "overlaps": min(right, other_right) - max(one["x"], other["x"]) > near
        and min(bottom, other_bottom) - max(one["y"], other["y"]) > near,
        "aligned_left": abs(one["x"] - other["x"]) <= near,
        "aligned_right": abs(right - other_right) <= near,
        "aligned_top": abs(one["y"] - other["y"]) <= near,
        "aligned_bottom": abs(bottom - other_bottom) <= near,
        "centred_x": abs(one["x"] + right - other["x"] - other_right) <= 2 * near,
        "centred_y": abs(one["y"] + bottom - other["y"] - other_bottom) <= 2 * near,
        "same_size": abs(one["width"] - other["width"]) <= near and abs(one["height"] - other["height"]) <= near,
        "wider_than": one["width"] > other["width"] + near,
        "taller_than": one["height"] > other["height"] + near,
    }
    return relations[relation]


def _gap(one: FloatRect, other: FloatRect) -> float:
    """Free space between two boxes along the direction in which they lie apart; negative where they overlap."""
    across = max(other["x"] - one["x"] - one["width"], one["x"] - other["x"] - other["width"])
    down = max(other["y"] - one["y"] - one["height"], one["y"] - other["y"] - other["height"])
    return max(across, down)


def fits_width(stage: Stage, check: c.FitsWidthCheck) -> Finding:
    found = stage.page.locator(":root") if check.target is None else stage.shown(check.target)
    content, window = ask(found, "widths")
    return Finding(content <= window + 1, f"{content} px of content in {window} px")


def image(stage: Stage, check: c.ImageCheck) -> Finding:
    """The element's look beside a picture of the application or another element's look."""
    own = _part(picture(stage, check.target), check.region)
    if check.of is not None:
        other = read_picture(picture(stage, check.of))
    else:
        other = read_picture(_served(stage, check.reference or "/"))
    alike = likeness(own, other)
    holds = (check.at_least is None or alike >= check.at_least) and (check.at_most is None or alike <= check.at_most)
    return Finding(holds, f"a likeness of {alike:.2f}")


def _part(content: bytes, region: Region | None) -> Image:
    whole = read_picture(content)
    if region is None:
        return whole
    left, top = round(region.x * whole.width), round(region.y * whole.height)
    right, bottom = left + round(region.width * whole.width), top + round(region.height * whole.height)
    return whole.crop((left, top, max(right, left + 1), max(bottom, top + 1)))


def _served(stage: Stage, path: str) -> bytes:
    """A file of the application. Raises NotShown."""
    answer = stage.visit.context.request.get(stage.visit.base_url.rstrip("/") + path, timeout=READ_MS * 5)
    if not answer.ok:
        raise NotShown(f"no reference: the application answers {answer.status} for {path}")
    return answer.body()


def _box(found: Locator) -> FloatRect:
    seen = found.bounding_box(timeout=READ_MS)
    if seen is None:
        raise NotShown("the element is there but cannot be seen")
    return seen


def _shape(seen: FloatRect) -> str:
    at = f"{plain(round(seen['x'], 1))}, {plain(round(seen['y'], 1))}"
    return f"{plain(round(seen['width'], 1))} × {plain(round(seen['height'], 1))} px at {at}"


def contrast(stage: Stage, check: c.ContrastCheck) -> Finding:
    colours = ask(stage.shown(check.target), "colours")
    if colours is None:
        raise NotShown("a picture or gradient behind the text, for which no contrast can be computed")
    text, behind = colours
    ground = [255.0, 255.0, 255.0]
    for layer in reversed(behind):
        ground = _blend(layer, ground)
    ratio = _contrast(_blend(text, ground), ground)
    return Finding(ratio >= check.at_least - 0.005, f"{ratio:.2f}")


def _blend(top: list[float], under: list[float]) -> list[float]:
    """The colour seen when `top` (r, g, b in 0–255, alpha in 0–1) lies over the opaque `under`."""
    alpha = top[3]
    return [alpha * t + (1 - alpha) * u for t, u in zip(top[:3], under, strict=True)]


def _contrast(one: list[float], other: list[float]) -> float:
    """Contrast ratio of two opaque colours by WCAG 2.2's definition."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: list[float]) -> float:
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def picture(stage: Stage, target: Target) -> bytes:
    """The element's pixels as PNG."""
    return stage.shown(target).screenshot(timeout=READ_MS * 2)


def canvas_changed(stage: Stage, check: c.CanvasChangedCheck, before: bytes) -> Finding:
    changed = picture(stage, check.target) != before
    return Finding(changed, "another picture" if changed else "the same picture")
