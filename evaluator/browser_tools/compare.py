"""Two pictures of the same size beside each other, and where they differ."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.results import Box, Compared, Region
from evaluator.browser_tools.shots import MAX_BYTES, MAX_SIDE_PX, QUALITIES, Picture, window
from evaluator.browser_tools.snapshots import snapshot
from evaluator.replay.stage import Stage

if TYPE_CHECKING:
    from PIL.Image import Image

CELL_PX = 32
"""Differences are gathered in cells of this size, and neighbouring cells in one region."""
NOISE = 24
"""By how much a px may differ (of 255) and still count as the same: JPEG and text smoothing."""
MAX_REGIONS = 12
MAX_LINES = 40
_GAP_PX = 12


class Pair(NamedTuple):
    """What differs, and one picture: the start on the left, the submission on the right."""

    seen: Compared
    jpeg: bytes


def compare(start: Stage, submission: Stage) -> Pair:
    """Both windows as they are now. Each look has a deadline of its own: PageHung is of the page that hung."""
    pictures = window(start), window(submission)
    trees = [tree.splitlines() for tree in (_tree(start), _tree(submission))]
    with_places = [[line.strip() for line in tree] for tree in trees]
    before, after = (set(lines) for lines in with_places)
    only_start = [line for line in with_places[0] if line not in after]
    only_submission = [line for line in with_places[1] if line not in before]
    share, regions = differences(*(picture.jpeg for picture in pictures))
    seen = Compared(
        share=share,
        regions=regions,
        start_size=_size(pictures[0]),
        submission_size=_size(pictures[1]),
        only_start=[line[:300] for line in only_start[:MAX_LINES]],
        only_submission=[line[:300] for line in only_submission[:MAX_LINES]],
    )
    return Pair(seen, beside(pictures[0].jpeg, pictures[1].jpeg))


@tool_call()
def _tree(stage: Stage) -> str:
    return snapshot(stage, boxes=False, frames=False, budget=200_000).text


def _size(picture: Picture) -> tuple[int, int]:
    return picture.shot.width, picture.shot.height


def differences(first: bytes, second: bytes) -> tuple[float, list[Region]]:
    """Share of px that differ, and the regions they lie in, the largest first. What only one picture has differs."""
    from PIL import Image, ImageChops

    with Image.open(io.BytesIO(first)) as one, Image.open(io.BytesIO(second)) as other:
        size = max(one.width, other.width), max(one.height, other.height)
        changed = ImageChops.difference(_on(one, size, "#000"), _on(other, size, "#fff"))
    bits = changed.convert("L").point([0] * NOISE + [255] * (256 - NOISE))
    share = sum(bits.histogram()[128:]) / (size[0] * size[1])
    return round(share, 4), _regions(bits)


def _on(picture: Image, size: tuple[int, int], ground: str) -> Image:
    from PIL import Image

    whole = Image.new("RGB", size, ground)
    whole.paste(picture.convert("RGB"))
    return whole


def _regions(bits: Image) -> list[Region]:
    """Rectangles around groups of neighbouring cells in which something differs."""
    wide, high = -(-bits.width // CELL_PX), -(-bits.height // CELL_PX)
    # A cell's mean is 0 only where nothing in it differs (BOX takes every px; one in 1,024 is a quarter of a step,
    # so a lone px is lost, which no user would see).
    means = bits.resize((wide, high), resample=4).tobytes()
    waiting = {n for n, mean in enumerate(means) if mean}
    regions = []
    while waiting:
        group, edge = set(), [waiting.pop()]
        while edge:
            cell = edge.pop()
            group.add(cell)
            x, y = cell % wide, cell // wide
            near = {(y + dy) * wide + x + dx for dy in (-1, 0, 1) for dx in (-1, 0, 1) if 0 <= x + dx < wide}
            found = near & waiting
            waiting -= found
            edge += found
        columns, rows = [cell % wide for cell in group], [cell // wide for cell in group]
        left, top = min(columns) * CELL_PX, min(rows) * CELL_PX
        box = Box(
            x=left,
            y=top,
            width=min((max(columns) + 1) * CELL_PX, bits.width) - left,
            height=min((max(rows) + 1) * CELL_PX, bits.height) - top,
        )
        ink = bits.crop((box.x, box.y, box.right, box.bottom)).histogram()
        regions.append(Region(box=box, share=round(sum(ink[128:]) / (box.width * box.height), 4)))
    regions.sort(key=lambda one: (-one.box.width * one.box.height, one.box.y, one.box.x))
    return regions[:MAX_REGIONS]


def beside(left: bytes, right: bytes) -> bytes:
    """Both pictures in one, within the limits of judges."""
    from PIL import Image

    with Image.open(io.BytesIO(left)) as one, Image.open(io.BytesIO(right)) as other:
        both = Image.new("RGB", (one.width + _GAP_PX + other.width, max(one.height, other.height)), "#888")
        both.paste(one.convert("RGB"), (0, 0))
        both.paste(other.convert("RGB"), (one.width + _GAP_PX, 0))
    both.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
    return encoded(both)


def encoded(picture: Image) -> bytes:
    """A JPEG of at most `MAX_BYTES`. Raises ValueError when it stays larger."""
    for quality in QUALITIES:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality)
        if buffer.tell() <= MAX_BYTES:
            return buffer.getvalue()
    raise ValueError(f"the picture stays over {MAX_BYTES} bytes")
