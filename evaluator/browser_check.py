"""Whether the browser image can play and draw what tasks are made of: part of `cdb doctor`."""

from __future__ import annotations

import shutil
import tempfile
from importlib import resources
from pathlib import Path

from playwright.sync_api import Error as PlaywrightError

from bench.errors import CdbError
from evaluator.browser import AppPage, PageHung
from evaluator.playback import unplayable
from evaluator.serve import serve
from evaluator.serve_plan import learn_plan
from evaluator.sidecar import browser_for
from sandboxes.doctor import Check
from sandboxes.images import REMEDY

CODECS = {
    "H.264 and AAC": 'video/mp4; codecs="avc1.42E01E, mp4a.40.2"',
    "VP9 and Opus": 'video/webm; codecs="vp9, opus"',
    "MP3": "audio/mpeg",
    "AAC": 'audio/mp4; codecs="mp4a.40.2"',
    "Vorbis": 'audio/ogg; codecs="vorbis"',
    "WAV": "audio/wav",
    "FLAC": "audio/flac",
}
SAMPLES = ("sample.mp4", "sample.mp3", "sample.png")
GLYPHS = {"fonts-noto-cjk": "中文かな한글", "fonts-noto-color-emoji": "😀❤"}
"""Package → characters that only it draws here."""
_NO_GLYPH = "\ue123"
_DRAWN = """([text, none]) => {
  const ink = one => {
    const canvas = new OffscreenCanvas(64, 64), pen = canvas.getContext('2d');
    pen.font = '48px sans-serif';
    pen.fillText(one, 4, 52);
    return pen.getImageData(0, 0, 64, 64).data.join();
  };
  const box = ink(none), seen = [...text].map(ink);
  return seen.every(one => one !== box) && new Set(seen).size === seen.length;
}"""
_REBUILD = f"the image lacks something: remove it (`docker rmi`) and {REMEDY}"


def check_browser() -> Check:
    """Plays short clips and draws CJK and emoji in the real side-car, some three seconds. Never raises."""
    try:
        with tempfile.TemporaryDirectory(prefix="cdb-doctor-") as folder:
            app = Path(folder) / "app"
            app.mkdir()
            (app / "index.html").write_text("<!doctype html><title>doctor</title>", encoding="utf-8")
            for name in SAMPLES:
                with resources.as_file(resources.files("evaluator.replay") / "media" / name) as sample:
                    shutil.copyfile(sample, app / name)
            with (
                serve(learn_plan(app), app, run="doctor", case="browser") as served,
                browser_for(served, run="doctor", case="browser") as browser,
                browser.open() as visit,
                visit.within(60),
            ):
                visit.goto("/")
                return judged(lacking(visit), browser.facts.chromium, browser.facts.sandbox)
    except (CdbError, PageHung, PlaywrightError) as error:
        return Check("browser", ok=False, detail=str(error).splitlines()[0], remedy="see the message; " + REMEDY)


def lacking(visit: AppPage) -> list[str]:
    """What an open page cannot play or draw, each with what would mend it."""
    page = visit.page
    answers = page.evaluate(
        "kinds => kinds.map(kind => document.createElement('video').canPlayType(kind))", list(CODECS.values())
    )
    missing = [f"no codec for {name}" for name, said in zip(CODECS, answers, strict=True) if not said]
    missing += [f"{name} does not play: {why}" for name, why in unplayable(visit, SAMPLES).items()]
    for package, text in GLYPHS.items():
        if not page.evaluate(_DRAWN, [text, _NO_GLYPH]):
            missing.append(f"{text} is drawn as boxes: {package} is missing")
    return missing


def judged(missing: list[str], chromium: str, sandbox: bool) -> Check:
    """A finding of the doctor's."""
    detail = f"{chromium}, its own sandbox {'on' if sandbox else 'off'}"
    if missing:
        return Check("browser", ok=False, detail=f"{detail}; {'; '.join(missing)}", remedy=_REBUILD)
    return Check("browser", ok=True, detail=f"{detail}; plays {', '.join(CODECS)}; draws CJK and emoji")
