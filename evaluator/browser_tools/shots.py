"""Pictures of a page within every judge's limits: the window, a stretch of the page, an element, a region.

No side is over `MAX_SIDE_PX` and no picture over `MAX_BYTES`: 2,000 px a side is what providers take where a request
holds many pictures, 5 MB in base64 the most for one.
"""

from __future__ import annotations

import io
from typing import NamedTuple

from playwright.sync_api import FloatRect

from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.results import Box, Shot
from evaluator.replay.stage import Stage
from evaluator.witness import Target

MAX_SIDE_PX = 2_000
MAX_BYTES = 3_500_000
TILE_PX = 1_500
MAX_PAGE_PX = (3_000, 16_000)
"""Chromium draws no taller picture whole; what lies beyond is seen by stretches."""
QUALITIES = (72, 45, 20)
SHOT_MS = 8_000
_ROOM_PX = 8
"""Around an element, so that its border and focus ring are seen."""
_PAGE = """() => [Math.max(document.documentElement.scrollWidth, innerWidth),
  Math.max(document.documentElement.scrollHeight, innerHeight), scrollX, scrollY, innerWidth, innerHeight]"""


class Picture(NamedTuple):
    """A JPEG and what it shows."""

    jpeg: bytes
    shot: Shot


class PageSize(NamedTuple):
    """In px: the whole page, where its window stands, and the window's size."""

    width: int
    height: int
    scroll_x: int
    scroll_y: int
    window_width: int
    window_height: int


@tool_call()
def page_size(stage: Stage) -> PageSize:
    return PageSize(*(int(side) for side in stage.page.evaluate(_PAGE)))


@tool_call()
def window(stage: Stage) -> Picture:
    """What a user sees now."""
    size = page_size(stage)
    return _taken(stage, "window", Box(x=0, y=0, width=size.window_width, height=size.window_height), size)


@tool_call()
def stretch(stage: Stage, from_y: int) -> Picture:
    """`TILE_PX` of the whole page from `from_y` on. Raises ValueError below the page's end."""
    size = page_size(stage)
    if from_y >= size.height:
        raise ValueError(f"the page is {size.height} px high; there is nothing at {from_y}")
    box = Box(x=0, y=from_y, width=min(size.width, MAX_SIDE_PX), height=min(TILE_PX, size.height - from_y))
    return _taken(stage, "page", box, size)


@tool_call()
def element(stage: Stage, target: Target) -> Picture:
    """One element with a little of what surrounds it, scrolled to if need be. Raises NotShown."""
    found = stage.shown(target)
    found.scroll_into_view_if_needed(timeout=stage.action_ms)
    seen = found.evaluate("e => { const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }")
    size = page_size(stage)
    x, y, width, height = (float(side) for side in seen)
    left, top = x + size.scroll_x - _ROOM_PX, y + size.scroll_y - _ROOM_PX
    box = Box(x=round(left), y=round(top), width=round(width) + 2 * _ROOM_PX, height=round(height) + 2 * _ROOM_PX)
    return _taken(stage, "element", _on_page(box, size), size)


@tool_call()
def region(stage: Stage, box: Box) -> Picture:
    """A rectangle of the whole page, in px from its top left corner. Raises ValueError where it holds nothing."""
    size = page_size(stage)
    return _taken(stage, "region", _on_page(box, size), size)


@tool_call(60.0)
def tiles(stage: Stage, most: int = 12) -> list[Picture]:
    """The whole page in stretches from the top, at most `most`."""
    height = page_size(stage).height
    return [stretch(stage, top) for top in range(0, min(height, most * TILE_PX), TILE_PX)]


@tool_call(30.0)
def whole(stage: Stage) -> bytes:
    """The whole page in one JPEG, up to `MAX_PAGE_PX` high: for people, not within a judge's limits."""
    size = page_size(stage)
    width, height = min(size.width, MAX_PAGE_PX[0]), min(size.height, MAX_PAGE_PX[1])
    clip: FloatRect = {"x": 0, "y": 0, "width": width, "height": height}
    return stage.page.screenshot(type="jpeg", quality=80, full_page=True, clip=clip, timeout=3 * SHOT_MS)


def _on_page(box: Box, size: PageSize) -> Box:
    """The part of `box` that lies on the page and fits a picture."""
    x, y = max(box.x, 0), max(box.y, 0)
    right, bottom = min(box.right, size.width), min(box.bottom, size.height)
    if right <= x or bottom <= y:
        raise ValueError(f"the page is {size.width}x{size.height} px; there is nothing of it in {box}")
    return Box(x=x, y=y, width=min(right - x, MAX_SIDE_PX), height=min(bottom - y, MAX_SIDE_PX))


def _taken(stage: Stage, part: str, box: Box, size: PageSize) -> Picture:
    whole_page = part != "window"
    clip: FloatRect = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
    clip["width"], clip["height"] = min(clip["width"], MAX_SIDE_PX), min(clip["height"], MAX_SIDE_PX)
    for quality in QUALITIES:
        jpeg = stage.page.screenshot(
            type="jpeg", quality=quality, clip=clip, full_page=whole_page, timeout=SHOT_MS, caret="initial"
        )
        if len(jpeg) <= MAX_BYTES:
            width, height = jpeg_size(jpeg)
            shot = Shot.model_validate(
                {"part": part, "box": box, "page_height": size.height, "width": width, "height": height}
            )
            return Picture(jpeg, shot)
    raise ValueError(f"the picture stays over {MAX_BYTES} bytes; take a smaller part")


def jpeg_size(jpeg: bytes) -> tuple[int, int]:
    """Width and height, from the header alone."""
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as image:
        return image.size
