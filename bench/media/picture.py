"""Pictures: the copy that fits, what its metadata says, and how any picture of a digest is written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from bench.media.found import Found, Picture, one_line
from bench.media.settings import Settings

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PNG_BYTES = 1024 * 1024
MAX_METADATA_CHARS = 4000
_JPEG_QUALITY = 85
_ORIENTATION = 0x0112
_AS_IT_IS = {"PNG": "picture.png", "JPEG": "picture.jpg"}
"""A small picture every agent can take is kept byte for byte."""
_EXIF = (
    "ImageDescription", "Make", "Model", "Software", "DateTime", "Artist", "Copyright", "XPTitle", "XPComment",
)  # fmt: skip


def fitted(image: Image, longest_px: int) -> Image:
    """The picture, made smaller where a side is longer than `longest_px`; never larger."""
    from PIL import Image as pillow

    scale = longest_px / max(image.size)
    if scale >= 1:
        return image
    wanted = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(wanted, pillow.Resampling.LANCZOS, reducing_gap=2.0)


def jpeg(image: Image) -> bytes:
    """As JPEG, what is transparent on white."""
    stream = io.BytesIO()
    _opaque(image).save(stream, "JPEG", quality=_JPEG_QUALITY)
    return stream.getvalue()


def read_image(path: Path, settings: Settings, folder: Path, found: Found) -> None:
    """Facts, metadata text and a copy of at most `picture_px`, turned as its EXIF says."""
    from PIL import Image as pillow
    from PIL import ImageFile, ImageOps

    pillow.MAX_IMAGE_PIXELS = None  # our own limit below says what it refuses
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    with pillow.open(path) as image:
        width, height = image.size
        found.facts["Format"] = str(image.format)
        found.facts["Size"] = f"{width} × {height} pixels"
        if (frames := getattr(image, "n_frames", 1)) > 1:
            found.facts["Pictures in it"] = f"{frames}; the first is shown"
        if width * height > settings.max_image_pixels:
            found.limit(f"pixels: {width} × {height} is more than {settings.max_image_pixels}; there is no copy")
            return
        lossless = image.format in ("PNG", "GIF", "BMP")
        whole = _load(image, settings, found)
        with found.part("metadata"):
            found.text("Metadata", _metadata(image))
        turned = image.getexif().get(_ORIENTATION, 1) != 1
        upright = ImageOps.exif_transpose(image)
        if turned:
            found.facts["Turned"] = "as its EXIF orientation says"
        copy = fitted(_plain(upright), settings.picture_px)
        suits = path.stat().st_size <= MAX_PNG_BYTES and frames == 1 and max(width, height) <= settings.picture_px
        if whole and suits and not turned and image.format in _AS_IT_IS:
            _save(copy, _AS_IT_IS[image.format], path.read_bytes(), folder, found)
        else:
            _save(copy, *_written(copy, lossless), folder, found)


def _load(image: Image, settings: Settings, found: Found) -> bool:
    """Decode the pixels, as many as are there; whether that was all."""
    from PIL import ImageFile

    image.draft("RGB", (settings.picture_px, settings.picture_px))
    try:
        image.load()
    except OSError as error:
        found.unread.append(f"the end of the picture: {found.said(error)}")
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        image.load()
        return False
    return True


def _written(image: Image, lossless: bool) -> tuple[str, bytes]:
    """Name and bytes of the copy: what was lossless stays so unless it grows large."""
    if lossless:
        stream = io.BytesIO()
        image.save(stream, "PNG")
        if stream.tell() <= MAX_PNG_BYTES:
            return "picture.png", stream.getvalue()
    return "picture.jpg", jpeg(image)


def _save(image: Image, name: str, content: bytes, folder: Path, found: Found) -> None:
    (folder / name).write_bytes(content)
    found.pictures.append(Picture(file=name, caption=f"the picture, {image.width} × {image.height}"))


def _plain(image: Image) -> Image:
    """In a mode that can be made smaller and written."""
    if image.mode in ("RGB", "RGBA", "L"):
        return image
    transparent = image.mode in ("LA", "PA") or "transparency" in image.info
    return image.convert("RGBA" if transparent else "RGB")


def _opaque(image: Image) -> Image:
    from PIL import Image as pillow

    if image.mode != "RGBA":
        return image if image.mode in ("RGB", "L") else image.convert("RGB")
    white = pillow.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _metadata(image: Image) -> str:
    from PIL import ExifTags

    lines = [f"{key}: {one_line(value, 1000)}" for key, value in sorted(image.info.items()) if isinstance(value, str)]
    tags = {ExifTags.TAGS.get(tag, str(tag)): value for tag, value in image.getexif().items()}
    for name in _EXIF:
        if value := tags.get(name):
            text = value.decode("utf-16-le", "replace") if isinstance(value, bytes) else str(value)
            lines.append(f"{name}: {one_line(text.strip(chr(0)), 1000)}")
    return "\n".join(lines)[:MAX_METADATA_CHARS]
