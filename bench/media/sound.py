"""Sound: whether it decodes, how loud it is over time, and the WAV file a speech recogniser gets."""

from __future__ import annotations

import wave
from contextlib import ExitStack
from pathlib import Path

from bench.media.found import Found, clock
from bench.media.settings import Settings

RATE_HZ = 16_000
MAX_LINES = 60
SILENCE_DB = -90.0


def listen(path: Path, index: int, settings: Settings, found: Found, wav: Path | None) -> None:
    """Decode the sound once, second by second."""
    import av
    import numpy as np

    from bench.media.recording import decoded, decodes, opened

    errors: list[str] = []
    levels: list[float] = []
    waiting = np.zeros(0, dtype=np.int16)
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
    samples = 0
    with ExitStack() as stack:
        media = stack.enter_context(opened(path))
        sink = stack.enter_context(wave.open(str(wav), "wb")) if wav else None
        if sink:
            sink.setparams((1, 2, RATE_HZ, 0, "NONE", ""))
        for frame in decoded(media, media.streams[index], errors):
            for part in resampler.resample(frame):
                piece = part.to_ndarray().reshape(-1)
                samples += len(piece)
                if sink:
                    sink.writeframesraw(piece.tobytes())
                waiting = np.concatenate((waiting, piece))
                while len(waiting) >= RATE_HZ:
                    levels.append(_db(waiting[:RATE_HZ]))
                    waiting = waiting[RATE_HZ:]
            if samples > settings.audio_s * RATE_HZ:
                found.limit(f"sound: the first {clock(settings.audio_s)} only")
                break
    if len(waiting):
        levels.append(_db(waiting))
    found.facts["Sound decodes"] = decodes(round(samples / RATE_HZ), errors, "seconds")
    found.speech = samples > 0
    found.text("Loudness over time", timeline(levels))


def timeline(levels: list[float]) -> str:
    """At most 60 lines, each the mean level of its seconds in dB below full scale."""
    step = max(1, -(-len(levels) // MAX_LINES))
    lines = []
    for start in range(0, len(levels), step):
        some = levels[start : start + step]
        level = sum(some) / len(some)
        bar = "#" * max(0, round((level + 60) / 3))
        lines.append(f"{clock(start)} to {clock(start + len(some))}  {level:6.1f} dB  {bar}".rstrip())
    return "\n".join(lines)


def _db(samples: object) -> float:
    import numpy as np

    level = float(np.sqrt(np.mean(np.square(np.asarray(samples, dtype=np.float64))))) / 32768
    return SILENCE_DB if level <= 0 else max(SILENCE_DB, 20 * float(np.log10(level)))
