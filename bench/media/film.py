"""Key frames of a film: first, last, and where the picture changes most, spread over its length."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench.media.found import Found, Picture, clock
from bench.media.picture import fitted, jpeg
from bench.media.settings import Settings

LOOK_EVERY_S = 0.5
CHANGED = 0.4
"""Mean difference of red, green and blue (0 to 255) over a 64 × 36 copy: a line of text, or a small dialog."""
KEPT = 48
"""Candidates held at once, as JPEG."""
_SMALL = (64, 36)
_SHEET_COLUMNS, _SHEET_PX, _LABEL_PX = 4, 320, 18


class Shot(NamedTuple):
    """A frame as JPEG. `score`: how much changed before it."""

    time_s: float
    score: float
    content: bytes


@dataclass
class _Candidates:
    """The frames that changed most so far; memory stays flat however long the film is."""

    kept: list[Shot] = field(default_factory=list)

    def wants(self, score: float) -> bool:
        return score > CHANGED and (len(self.kept) < KEPT or score > min(shot.score for shot in self.kept))

    def add(self, shot: Shot) -> None:
        self.kept.append(shot)
        if len(self.kept) > KEPT:
            self.kept.remove(min(self.kept, key=lambda one: (one.score, -one.time_s)))


def watch(path: Path, index: int, settings: Settings, folder: Path, found: Found) -> None:
    """Facts, key frames with their times, and a sheet with all of them."""
    from bench.media.recording import decodes, opened

    errors: list[str] = []
    with opened(path) as media:
        stream = media.streams[index]
        pixels = stream.codec_context.width * stream.codec_context.height
        if pixels > settings.max_frame_pixels:
            found.limit(f"frame size: {pixels} pixels is more than {settings.max_frame_pixels}; no frame is shown")
            return
        stream.codec_context.thread_count = 1  # the same frames from a damaged file every time
        frames, shots = _look(media, stream, settings, errors, found)
    found.facts["Video decodes"] = decodes(frames, errors)
    chosen = choose(shots, settings.key_frames)
    for number, shot in enumerate(chosen, 1):
        name = f"frame-{number:02}.jpg"
        (folder / name).write_bytes(shot.content)
        found.pictures.append(Picture(file=name, caption=f"at {clock(shot.time_s)}"))
    if len(chosen) > 1:
        (folder / "frames.jpg").write_bytes(_sheet(chosen))
        found.pictures.insert(0, Picture(file="frames.jpg", caption="all key frames on one sheet, with their times"))


def choose(shots: list[Shot], count: int) -> list[Shot]:
    """First and last of `shots` (in time order), then those that changed most and are not too near to another."""
    if len(shots) <= 2:
        return shots[:count]
    chosen = [shots[0], shots[-1]]
    gap = max(LOOK_EVERY_S, (shots[-1].time_s - shots[0].time_s) / (3 * count))
    for shot in sorted(shots[1:-1], key=lambda one: (-one.score, one.time_s)):
        if len(chosen) >= count:
            break
        if all(abs(shot.time_s - other.time_s) >= gap for other in chosen):
            chosen.append(shot)
    return sorted(chosen, key=lambda one: one.time_s)


def _look(media: Any, stream: Any, settings: Settings, errors: list[str], found: Found) -> tuple[int, list[Shot]]:
    """Number of frames decoded, and first, last and changed frames in time order."""
    import numpy as np

    from bench.media.recording import decoded

    first: Shot | None = None
    last: Any = None
    before: Any = None
    candidates = _Candidates()
    count, looked_s, last_s, seen_pixels = 0, 0.0, 0.0, 0
    for frame in decoded(media, stream, errors):
        if frame.width * frame.height > settings.max_frame_pixels:
            errors.append(f"a frame of {frame.width} × {frame.height} pixels")
            break
        count, last = count + 1, frame
        last_s = frame.time if frame.time is not None else last_s + 0.04
        seen_pixels += frame.width * frame.height
        if seen_pixels > settings.full_decode_pixels and stream.codec_context.skip_frame != "NONKEY":
            stream.codec_context.skip_frame = "NONKEY"
            found.limit(f"length: whole frames only after {clock(last_s)}")
        if first is not None and last_s - looked_s < LOOK_EVERY_S:
            continue
        looked_s = last_s
        now = frame.reformat(*_SMALL, format="rgb24").to_ndarray().astype(np.int16)
        score = 0.0 if before is None else float(np.abs(now - before).mean())
        before = now
        if first is None:
            first = Shot(last_s, 0.0, _jpeg(frame, settings))
        elif candidates.wants(score):
            candidates.add(Shot(last_s, score, _jpeg(frame, settings)))
    shots = sorted([*([first] if first else []), *candidates.kept], key=lambda one: one.time_s)
    if first and shots[-1].time_s < last_s:
        shots.append(Shot(last_s, 0.0, _jpeg(last, settings)))
    return count, shots


def _jpeg(frame: Any, settings: Settings) -> bytes:
    image = frame.to_image()
    if turned := getattr(frame, "rotation", 0):
        image = image.rotate(turned, expand=True)
    return jpeg(fitted(image, settings.frame_px))


def _sheet(shots: list[Shot]) -> bytes:
    import io

    from PIL import Image, ImageDraw

    small = [fitted(Image.open(io.BytesIO(shot.content)), _SHEET_PX) for shot in shots]
    height = max(image.height for image in small) + _LABEL_PX
    rows = -(-len(small) // _SHEET_COLUMNS)
    sheet = Image.new("RGB", (_SHEET_PX * min(len(small), _SHEET_COLUMNS), height * rows), "white")
    pen = ImageDraw.Draw(sheet)
    for number, (shot, image) in enumerate(zip(shots, small, strict=True)):
        x, y = number % _SHEET_COLUMNS * _SHEET_PX, number // _SHEET_COLUMNS * height
        pen.text((x + 4, y + 2), f"{number + 1}: {clock(shot.time_s)}", fill="black")
        sheet.paste(image, (x, y + _LABEL_PX))
    return jpeg(sheet)
