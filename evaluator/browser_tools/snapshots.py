"""The accessibility tree with boxes, in parts that fit a budget, and the pages within the page."""

from __future__ import annotations

from playwright.sync_api import Error as PlaywrightError

from evaluator.browser import CALL_TIMEOUT_MS
from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.results import FrameSeen, SnapshotSeen
from evaluator.replay.stage import Stage
from evaluator.witness import Target

BUDGET = 8_000
FRAME_BUDGET = 3_000
MAX_FRAMES = 8


@tool_call()
def snapshot(
    stage: Stage,
    *,
    boxes: bool = True,
    within: Target | None = None,
    offset: int = 0,
    budget: int = BUDGET,
    frames: bool = True,
) -> SnapshotSeen:
    """The page's tree from character `offset` on, at most `budget` of it, cut between lines.

    `boxes` adds `[box=x,y,width,height]` to each element; `within` gives one element's part of the tree. Open shadow
    trees are part of it. With `frames` the pages within the page are read too. Raises NotShown, ValueError.
    """
    root = stage.present(within) if within is not None else stage.page.locator("body")
    text = root.aria_snapshot(boxes=boxes, timeout=CALL_TIMEOUT_MS)
    if offset > len(text):
        raise ValueError(f"the snapshot has {len(text)} characters; there is nothing at {offset}")
    part = text[offset : offset + budget]
    if offset + budget < len(text) and "\n" in part:
        part = part[: part.rindex("\n") + 1]
    end = offset + len(part)
    return SnapshotSeen(
        text=part,
        chars=len(text),
        next_offset=end if end < len(text) else None,
        frames=_frames(stage) if frames and within is None else [],
    )


def _frames(stage: Stage) -> list[FrameSeen]:
    page, seen = stage.page, []
    for number, frame in enumerate(page.frames[1 : 1 + MAX_FRAMES], 1):
        own = stage.visit.is_own(frame.url) or frame.url in ("", "about:blank", "about:srcdoc")
        text = ""
        if own:
            try:
                text = frame.locator("body").aria_snapshot(timeout=CALL_TIMEOUT_MS / 5)[:FRAME_BUDGET]
            except PlaywrightError as error:
                if stage.visit.hung or stage.visit.crashed:
                    raise
                text = f"(cannot be read: {error.message.splitlines()[0][:200]})"
        seen.append(FrameSeen(number=number, url=frame.url[:500], own=own, text=text))
    return seen
