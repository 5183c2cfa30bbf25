"""Pictures as models take them: no side over 2,000 px and no more than 3.5 MB, so that no request is refused for one.

Limits of today's providers, smallest first: 2,000 px a side where a request holds more than 20 pictures, 8,000 px
otherwise; 5 MB as base64.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path

MAX_SIDE_PX = 2_000
MAX_BYTES = 3_500_000
MAX_SOURCE_BYTES = 60_000_000
QUALITIES = (85, 60, 35)


class PictureError(Exception):
    """A file cannot be shown as a picture; the message says why."""


def fit(path: Path) -> bytes:
    """The picture in `path` as a JPEG within the limits, transparent parts on white. Raises PictureError."""
    from PIL import Image, ImageOps

    if path.stat().st_size > MAX_SOURCE_BYTES:
        raise PictureError(f"{path.name} has more than {MAX_SOURCE_BYTES} bytes")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as opened:
                picture = ImageOps.exif_transpose(opened)
                picture.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
                flat = picture.convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise PictureError(f"{path.name} cannot be shown: {error}") from error
    ground = Image.new("RGBA", flat.size, "white")
    ground.alpha_composite(flat)
    for quality in QUALITIES:
        buffer = io.BytesIO()
        ground.convert("RGB").save(buffer, "JPEG", quality=quality)
        if buffer.tell() <= MAX_BYTES:
            return buffer.getvalue()
    raise PictureError(f"{path.name} stays over {MAX_BYTES} bytes")
