"""Media of `podcast-player`: the episodes themselves, a sketch of the wanted player, marks on a screenshot."""

from __future__ import annotations

from pathlib import Path

from harness.sample.media.studio import Studio, run

# Episode → length in seconds, the chord it hums (Hz), how fast it swells (Hz).
EPISODES = {
    "pier": (80, (110.0, 164.8, 220.0), 0.12),
    "fog": (95, (87.3, 130.8, 174.6), 0.07),
    "ferry": (75, (98.0, 146.8, 246.9), 0.2),
    "dunes": (90, (123.5, 185.0, 246.9), 0.1),
}


def make(studio: Studio) -> None:
    for name, (seconds, chord, swell) in EPISODES.items():
        _hum(studio.project / "audio" / f"{name}.mp3", seconds, chord, swell)
    with studio.page(760, 860) as page:
        page.set_content((studio.sources / "sketch.html").read_text(encoding="utf-8"))
        raw = studio.scratch / "sketch.png"
        page.screenshot(path=str(raw))
        studio.shrink(raw, studio.attachments / "sketch.png")
    with studio.page() as page:
        page.goto(studio.url)
        page.get_by_role("button", name="Play", exact=True).wait_for()
        studio.annotate(
            page,
            [
                {"around": "#toggle", "pad": 9},
                {"note": "1  The two buttons go left and right of Play", "at": [500, 560], "width": 200},
                {"from": [704, 576], "to": [958, 512]},
                {"from": [734, 730], "to": [1000, 604]},
                {"note": "2  Speeds, moments and \"up next\" come below the volume, in the order of my sketch",
                 "at": [470, 672], "width": 260},
                {"note": "3  Moments belong to the episode that is in the player", "at": [480, 420], "width": 220},
                {"from": [704, 438], "to": [818, 366]},
            ],
            studio.annotations / "player.png",
        )


def _hum(out: Path, seconds: int, chord: tuple[float, ...], swell: float) -> None:
    """A soft chord that swells like waves, at 8 kbit/s: an episode must be long, not beautiful."""
    out.parent.mkdir(exist_ok=True)
    waves = "+".join(
        f"0.16*sin(2*PI*{pitch}*t)*(0.6+0.4*sin(2*PI*{swell * (index + 1):.3f}*t))"
        for index, pitch in enumerate(chord)
    )
    run("ffmpeg", "-y", "-f", "lavfi", "-i", f"aevalsrc={waves}:d={seconds}:s=16000", "-ac", "1", "-b:a", "8k",
        "-map_metadata", "-1", "-fflags", "+bitexact", str(out))
