"""How alike two pictures are, as one number that a person can check: 1 the same, 0 nothing in common."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE_PX = 128
THUMB_PX = 64
_FLAT_SHARE = 0.05
"""Two plain pictures share nothing from this difference on (5 % of black to white)."""


def likeness(one: Image, other: Image) -> float:
    """1 - |difference| / (|what is drawn on one| + |what is drawn on the other|), each against its own mean colour.

    Both are brought to one size of at most 128 px a side first (the first one's shape), so that a scaled copy is
    alike. A plain picture and a drawing on the same ground share nothing, however small the drawing."""
    scale = SIDE_PX / max(one.size)
    size = (max(1, round(one.width * min(scale, 1))), max(1, round(one.height * min(scale, 1))))
    a, b = (np.asarray(picture.convert("RGB").resize(size), dtype=np.float64) for picture in (one, other))
    drawn = np.abs(a - np.median(a, axis=(0, 1))).sum() + np.abs(b - np.median(b, axis=(0, 1))).sum()
    difference = np.abs(a - b).sum()
    if not difference:
        return 1.0
    if drawn < a.size:  # both plain: less than one level of 256 each
        drawn = _FLAT_SHARE * 255 * a.size
    return float(max(0.0, 1 - difference / drawn))


def read_picture(content: bytes) -> Image:
    """A picture from a file's bytes, transparent parts on white. Raises ValueError with the reason."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as opened:
            flat = opened.convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"no picture that can be read: {error}") from None
    ground = Image.new("RGBA", flat.size, "white")
    ground.alpha_composite(flat)
    return ground.convert("RGB")


def thumbnail(content: bytes) -> str:
    """The picture as `WIDTHxHEIGHT:` and a PNG of at most 64 px a side in base64: small enough for a journal."""
    picture = read_picture(content)
    said = f"{picture.width}x{picture.height}:"
    picture.thumbnail((THUMB_PX, THUMB_PX))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return said + base64.b64encode(buffer.getvalue()).decode("ascii")


def thumbnails_alike(one: str, other: str) -> float:
    """Likeness of two thumbnails; 0 when the pictures they were made of have other sizes (2 px aside)."""
    sizes, pictures = [], []
    for text in (one, other):
        size, _, data = text.partition(":")
        sizes.append([int(side) for side in size.split("x")])
        pictures.append(read_picture(base64.b64decode(data)))
    if any(abs(a - b) > 2 for a, b in zip(*sizes, strict=True)):
        return 0.0
    return likeness(*pictures)
