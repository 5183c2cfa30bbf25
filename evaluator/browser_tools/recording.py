"""Frames of a page that goes on: what Chromium drew, when, and how much of it changed.

`page.screencast` gives a frame whenever something was drawn, so a page at rest gives few. Frames are kept small
(each as it came, in JPEG) and a contact sheet shows those that differ.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from playwright.sync_api import ScreencastFrame

from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.compare import NOISE, encoded
from evaluator.browser_tools.results import FrameShot, Recorded
from evaluator.replay.stage import Stage

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_SECONDS = 8.0
MAX_FRAMES = 9
MAX_HELD = 240
"""Frames kept in memory at most, about 8 KB each; later ones are only counted."""
FRAME_PX = {"width": 960, "height": 960}
QUALITY = 60
_CELL_PX = 640
_COLUMNS = 3


class Filmed(NamedTuple):
    """What was seen, the kept frames (JPEG) and one picture with all of them."""

    seen: Recorded
    frames: list[bytes]
    sheet: bytes | None


@dataclass
class _Reel:
    began: float = field(default_factory=time.monotonic)
    frames: list[tuple[float, bytes]] = field(default_factory=list)
    count: int = 0

    def take(self, frame: ScreencastFrame) -> None:
        self.count += 1
        if len(self.frames) < MAX_HELD:
            self.frames.append((time.monotonic() - self.began, frame["data"]))


@tool_call(MAX_SECONDS + 30)
def record(stage: Stage, seconds: float, during: Callable[[], None] = lambda: None, most: int = MAX_FRAMES) -> Filmed:
    """Film the window for `seconds` (`MAX_SECONDS` at most) while `during` is done; keep `most` frames.

    The first and the last frame are kept, and between them those that differ most from the one before, in order.
    """
    page, reel = stage.page, _Reel()
    page.screencast.start(on_frame=reel.take, size=FRAME_PX, quality=QUALITY)  # type: ignore[arg-type]
    try:
        during()
        spent = time.monotonic() - reel.began
        page.wait_for_timeout(max(min(seconds, MAX_SECONDS) - spent, 0) * 1000)
    finally:
        if not (stage.visit.hung or stage.visit.crashed or page.is_closed()):
            page.screencast.stop()
    frames = reel.frames or [(0.0, page.screenshot(type="jpeg", quality=QUALITY, timeout=8_000))]
    changes = _changes([jpeg for _, jpeg in frames])
    kept = sorted(_chosen(changes, most))
    shots = [FrameShot(at_s=round(frames[n][0], 2), changed=changes[n]) for n in kept]
    moving = [at for (at, _), changed in zip(frames, changes, strict=True) if changed > 0]
    seen = Recorded(
        seconds=round(time.monotonic() - reel.began, 2),
        frames_seen=reel.count,
        kept=shots,
        moved=bool(moving),
        last_change_s=round(moving[-1], 2) if moving else None,
    )
    pictures = [frames[n][1] for n in kept]
    return Filmed(seen, pictures, _sheet(pictures, [shot.at_s for shot in shots]))


def _changes(frames: list[bytes]) -> list[float]:
    """Share of px in which each frame differs from the one before; looked at in a small size."""
    from PIL import ImageChops

    shares, before = [0.0], _small(frames[0])
    for jpeg in frames[1:]:
        now = _small(jpeg)
        ink = ImageChops.difference(before, now).histogram()
        shares.append(round(sum(ink[NOISE:]) / (now.width * now.height), 4))
        before = now
    return shares


def _small(jpeg: bytes) -> Image:
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as opened:
        opened.draft("L", (320, 320))
        return opened.convert("L").resize((320, 200))


def _chosen(changes: list[float], most: int) -> set[int]:
    last = len(changes) - 1
    ranked = sorted(range(1, last), key=lambda n: (-changes[n], n))
    return {0, last} | {n for n in ranked[: max(most - 2, 0)] if changes[n] > 0}


def _sheet(frames: list[bytes], times: list[float]) -> bytes:
    from PIL import Image, ImageDraw

    cells = []
    for jpeg in frames:
        with Image.open(io.BytesIO(jpeg)) as opened:
            cell = opened.convert("RGB")
            cell.thumbnail((_CELL_PX, _CELL_PX))
            cells.append(cell)
    width, height = max(c.width for c in cells), max(c.height for c in cells) + 16
    rows = -(-len(cells) // _COLUMNS)
    sheet = Image.new("RGB", (width * min(len(cells), _COLUMNS), height * rows), "#222")
    pen = ImageDraw.Draw(sheet)
    for number, (cell, at) in enumerate(zip(cells, times, strict=True)):
        x, y = number % _COLUMNS * width, number // _COLUMNS * height
        sheet.paste(cell, (x, y + 16))
        pen.text((x + 4, y + 2), f"{number + 1}: {at:.2f} s", fill="white")
    sheet.thumbnail((2_000, 2_000))
    return encoded(sheet)
