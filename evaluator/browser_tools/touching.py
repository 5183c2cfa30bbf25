"""Fingers on a touch screen: taps and swipes, as events that Chromium itself makes."""

from __future__ import annotations

from typing import Literal

from evaluator.browser_tools.call import tool_call
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import Target

SWIPE_STEPS = 10
_AWAY = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


@tool_call()
def tap(stage: Stage, target: Target) -> None:
    """Tap an element. The visit must have been opened for a touch screen. Raises ValueError, NotShown."""
    _require_touch(stage)
    stage.one(target).tap(timeout=stage.action_ms)


@tool_call()
def swipe(stage: Stage, target: Target, to: Literal["left", "right", "up", "down"], by: int) -> None:
    """A finger goes down in the element's middle, moves `by` px and is lifted. Raises ValueError, NotShown."""
    _require_touch(stage)
    found = stage.shown(target)
    found.scroll_into_view_if_needed(timeout=stage.action_ms)
    box = found.bounding_box(timeout=stage.action_ms)
    if box is None:
        raise NotShown("the element is there but cannot be seen")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    away_x, away_y = _AWAY[to]
    session = stage.visit.context.new_cdp_session(stage.page)
    try:
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for step in range(1, SWIPE_STEPS + 1):
            at = {"x": x + away_x * by * step / SWIPE_STEPS, "y": y + away_y * by * step / SWIPE_STEPS}
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [at]})
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    finally:
        session.detach()


def _require_touch(stage: Stage) -> None:
    if not stage.page.evaluate("() => navigator.maxTouchPoints > 0"):
        raise ValueError("this page was opened without a touch screen; open it again with touch")
