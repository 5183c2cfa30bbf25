"""What a digest may hold and what making it may take: part of its identity, with the versions of its readers."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from bench.errors import UsageError

VERSION = 1
"""Raised when the same file and settings give another digest."""
ASR_VARIABLE = "CDB_ASR"
_READERS = ("av", "pillow", "pypdfium2")


@dataclass(frozen=True)
class Settings:
    """`asr` is the command of a speech recogniser: `{wav}` in it, or its last argument, is a WAV file (16 kHz, mono),
    and it prints the transcript."""

    key_frames: int = 12
    frame_px: int = 1280
    page_images: int = 8
    picture_px: int = 1600
    text_chars: int = 200_000
    pdf_pages: int = 500
    max_image_pixels: int = 120_000_000
    max_frame_pixels: int = 40_000_000
    full_decode_pixels: int = 20_000_000_000
    """Pixels of a film that are decoded frame by frame (about five minutes of 1080p at 30 frames a second); of the
    rest only the frames its encoder made whole."""
    audio_s: int = 3 * 3600
    archive_member_bytes: int = 24 * 1024 * 1024
    archive_bytes: int = 96 * 1024 * 1024
    cpu_s: int = 300
    wall_s: int = 1800
    """Beyond it the machine is at fault, not the file."""
    memory_bytes: int = 3 * 1024**3
    asr: tuple[str, ...] = ()
    asr_s: int = 3600

    def describe(self) -> dict[str, Any]:
        """Everything that can change a digest."""
        told = {name: value for name, value in asdict(self).items() if name not in ("wall_s", "asr_s")}
        return {**told, "asr": list(self.asr), "readers": {name: version(name) for name in _READERS}}


def settings_of(environ: Mapping[str, str] = os.environ) -> Settings:
    """The usual limits, with the speech recogniser of CDB_ASR. Raises UsageError when that cannot be started."""
    said = environ.get(ASR_VARIABLE, "").strip()
    if not said:
        return Settings()
    try:
        command = tuple(shlex.split(said))
    except ValueError as error:
        raise UsageError(f"{ASR_VARIABLE} is no command line ({error}): {said}") from error
    if shutil.which(command[0], path=environ.get("PATH")) is None:
        raise UsageError(
            f"{ASR_VARIABLE} names {command[0]!r}, which is no program here; install it, or unset {ASR_VARIABLE}"
        )
    return Settings(asr=command)
