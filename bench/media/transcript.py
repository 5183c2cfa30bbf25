"""What a configured speech recogniser hears. A recogniser that fails is the machine's trouble, never the file's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.errors import InfraError
from bench.media.settings import ASR_VARIABLE, Settings

PLACE = "{wav}"
WAV = "sound.wav"
NONE = "No transcript: no speech recogniser is configured."
SILENT = "No transcript: there is no sound that can be decoded."
HEARD_NOTHING = "The speech recogniser heard nothing."


def transcribe(wav: Path, settings: Settings, name: str) -> str:
    """Standard output of the recogniser, for the WAV file of attachment `name`. Raises InfraError."""
    command = [part.replace(PLACE, str(wav)) for part in settings.asr]
    if not any(PLACE in part for part in settings.asr):
        command.append(str(wav))
    try:
        ended = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=settings.asr_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"{name}: the speech recogniser of {ASR_VARIABLE} did not end well: {error}") from error
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace").strip()[-400:]
        raise InfraError(
            f"{name}: the speech recogniser of {ASR_VARIABLE} ended with {ended.returncode}: {said}; try it by hand, "
            f"or unset {ASR_VARIABLE}"
        )
    return ended.stdout.decode("utf-8", "replace").strip()[: settings.text_chars]
