"""The tools the media modules share: speech, screen recordings, screenshots with a reviewer's marks."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FRAMES_PER_S = 10


@dataclass(frozen=True)
class Studio:
    """What one case's module works with. `browser` is a running Chromium (a playwright `Browser`)."""

    case: str
    project: Path
    sources: Path
    url: str
    browser: Any
    scratch: Path

    @property
    def annotations(self) -> Path:
        folder = self.project / "_annotations"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def attachments(self) -> Path:
        folder = self.project / "_attachments"
        folder.mkdir(exist_ok=True)
        return folder

    @contextmanager
    def page(self, width: int = 1280, height: int = 800) -> Iterator[Any]:
        """A fresh page of its own profile, closed afterwards."""
        context = self.browser.new_context(viewport={"width": width, "height": height})
        try:
            yield context.new_page()
        finally:
            context.close()

    def speak(self, text: Path, out: Path, voice: str = "en-gb", words_per_minute: int = 160) -> None:
        """Reads a text file aloud into `out` (mp3 or m4a by its suffix, mono, 32 kbit/s)."""
        wav = self.scratch / "speech.wav"
        run("espeak-ng", "-v", voice, "-s", str(words_per_minute), "-f", str(text), "-w", str(wav))
        run("ffmpeg", "-y", "-i", str(wav), "-ac", "1", "-ar", "22050", "-b:a", "32k",
            "-map_metadata", "-1", "-fflags", "+bitexact", str(out))

    def encode(self, frames: Path, out: Path) -> None:
        """Turns `frames/0001.png …` into an H.264 mp4 that every browser plays and can seek in."""
        run("ffmpeg", "-y", "-framerate", str(FRAMES_PER_S), "-i", str(frames / "%04d.png"),
            "-c:v", "libx264", "-preset", "slow", "-crf", "26", "-pix_fmt", "yuv420p", "-g", "20",
            "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-movflags", "+faststart",
            "-map_metadata", "-1", "-fflags", "+bitexact", str(out))

    def annotate(self, page: Any, marks: list[dict[str, Any]], out: Path) -> None:
        """Draws `marks` over the page in red pen and saves the screenshot (256 colours, to stay small).

        A mark is {"around": css, "pad": px, "pad_y": px} (a ring round the element), {"from": [x, y], "to": [x, y]}
        (an arrow), or {"note": text, "at": [x, y], "width": px}. Coordinates are viewport pixels.
        """
        page.evaluate(DRAW_MARKS, json.dumps(marks))
        raw = self.scratch / "annotated.png"
        page.screenshot(path=str(raw))
        self.shrink(raw, out)

    def shrink(self, raw: Path, out: Path) -> None:
        """Rewrites a PNG with a palette: a quarter of the size, the eye sees no difference."""
        run("ffmpeg", "-y", "-i", str(raw), "-vf",
            "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=dither=bayer:bayer_scale=4",
            "-frames:v", "1", "-update", "1", "-map_metadata", "-1", "-fflags", "+bitexact", str(out))


class Recording:
    """A screen recording of a page: every frame is a screenshot, time passes only when `hold` says so.

    Taking frames one by one instead of filming keeps the pace independent of the machine's speed. The
    cursor is drawn into the page, as a headless browser shows none.
    """

    def __init__(self, page: Any, frames: Path) -> None:
        self.page = page
        self.frames = frames
        self.taken = 0
        self.at = (640.0, 400.0)
        shutil.rmtree(frames, ignore_errors=True)
        frames.mkdir(parents=True)
        page.evaluate(DRAW_CURSOR)

    def frame(self) -> None:
        self.page.evaluate("([x, y]) => window.__cursor(x, y)", list(self.at))
        self.taken += 1
        self.page.screenshot(path=str(self.frames / f"{self.taken:04d}.png"))

    def hold(self, seconds: float) -> None:
        """Stands still; one screenshot, repeated."""
        self.frame()
        first = self.frames / f"{self.taken:04d}.png"
        for _ in range(max(0, round(seconds * FRAMES_PER_S) - 1)):
            self.taken += 1
            shutil.copyfile(first, self.frames / f"{self.taken:04d}.png")

    def glide(self, x: float, y: float, seconds: float) -> None:
        """Moves the real mouse (and the drawn cursor) to a point, easing in and out."""
        steps = max(2, round(seconds * FRAMES_PER_S))
        x0, y0 = self.at
        for step in range(1, steps + 1):
            t = step / steps
            eased = t * t * (3 - 2 * t)
            self.at = (x0 + (x - x0) * eased, y0 + (y - y0) * eased)
            self.page.mouse.move(*self.at)
            self.frame()

    def type(self, text: str) -> None:
        """Types two letters to a frame."""
        for index in range(0, len(text), 2):
            self.page.keyboard.type(text[index : index + 2])
            self.frame()


def run(*argv: str) -> None:
    """Runs a tool quietly; its output is shown when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")


DRAW_CURSOR = """() => {
  const cursor = document.createElement('div');
  cursor.style.cssText = 'position:fixed;left:0;top:0;z-index:99999;pointer-events:none';
  cursor.innerHTML = `<svg width="26" height="30" viewBox="0 0 26 30"><path d="M3 2v21l5.6-5 3.6 8.4 4-1.7
    -3.6-8.2h7.6z" fill="#111" stroke="#fff" stroke-width="2" stroke-linejoin="round"/></svg>`;
  document.documentElement.append(cursor);
  window.__cursor = (x, y) => { cursor.style.transform = `translate(${x}px, ${y}px)`; };
}"""

DRAW_MARKS = """(json) => {
  const marks = JSON.parse(json), ns = 'http://www.w3.org/2000/svg', ink = '#e11d2e';
  const svg = document.createElementNS(ns, 'svg');
  svg.setAttribute('style', 'position:fixed;inset:0;width:100vw;height:100vh;z-index:99998;pointer-events:none');
  const stroke = (d) => {
    const path = document.createElementNS(ns, 'path');
    path.setAttribute('d', d);
    path.setAttribute('style', `fill:none;stroke:${ink};stroke-width:3.5;stroke-linecap:round;stroke-linejoin:round`);
    svg.append(path);
  };
  document.documentElement.append(svg);
  for (const mark of marks) {
    if (mark.around) {
      // A ring drawn a little past its own start, as a hand does.
      const box = document.querySelector(mark.around).getBoundingClientRect(), pad = mark.pad ?? 10;
      const cx = box.x + box.width / 2, cy = box.y + box.height / 2;
      const rx = box.width / 2 + pad, ry = box.height / 2 + (mark.pad_y ?? pad);
      let d = '';
      for (let i = 0; i <= 68; i += 1) {
        const a = -2.2 + (i / 60) * Math.PI * 2, wobble = 1 + 0.02 * Math.sin(i * 0.9) + i * 0.0006;
        // A squared-off ellipse hugs wide elements better than a true one.
        const c = Math.sign(Math.cos(a)) * Math.abs(Math.cos(a)) ** 0.55;
        const s = Math.sign(Math.sin(a)) * Math.abs(Math.sin(a)) ** 0.55;
        d += `${i ? 'L' : 'M'}${cx + rx * c * wobble} ${cy + ry * s * wobble}`;
      }
      stroke(d);
    } else if (mark.from) {
      const [x0, y0] = mark.from, [x1, y1] = mark.to;
      const mx = (x0 + x1) / 2 + (y1 - y0) * 0.12, my = (y0 + y1) / 2 - (x1 - x0) * 0.12;
      stroke(`M${x0} ${y0}Q${mx} ${my} ${x1} ${y1}`);
      const a = Math.atan2(y1 - my, x1 - mx);
      for (const turn of [2.6, -2.6]) {
        stroke(`M${x1} ${y1}L${x1 + 15 * Math.cos(a + turn)} ${y1 + 15 * Math.sin(a + turn)}`);
      }
    } else {
      const note = document.createElement('div');
      note.textContent = mark.note;
      note.style.cssText = `position:fixed;left:${mark.at[0]}px;top:${mark.at[1]}px;width:${mark.width ?? 220}px;
        z-index:99999;padding:8px 11px;border-radius:6px;background:#fff7c2;border:1.5px solid ${ink};color:#a30f1d;
        font:600 14px/1.35 'DejaVu Sans',sans-serif;box-shadow:0 3px 10px rgba(0,0,0,.18);white-space:pre-line;
        transform:rotate(${mark.tilt ?? -0.6}deg)`;
      document.documentElement.append(note);
    }
  }
}"""
