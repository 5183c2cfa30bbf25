"""Start and submission as two pictures of the same place, which is what a blind pair is made of."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Error as PlaywrightError

from evaluator.browser import DESKTOP, AppBrowser, PageHung
from evaluator.judges.judge import Running
from evaluator.probes.facts import Ground
from evaluator.records import ProbeFacts
from evaluator.replay.likeness import likeness, read_picture
from evaluator.witness import Viewport

LIMIT_S = 45.0


class Pair(NamedTuple):
    """JPEGs of the whole page, at most 2,000 px a side."""

    start: Path
    submission: Path


class NoPicture(Exception):
    """An application could not be pictured; the message says which and why."""


def pair_pictures(running: Running, folder: Path, path: str = "/", viewport: Viewport = DESKTOP) -> Pair:
    """Picture both applications at `path` in the same window. Raises NoPicture."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"pair-{viewport.width}x{viewport.height}"
    pair = Pair(folder / f"{name}-start.jpg", folder / f"{name}-submission.jpg")
    for browser, file in ((running.start, pair.start), (running.submission, pair.submission)):
        _picture(browser, path, viewport, file)
    return pair


def _picture(browser: AppBrowser, path: str, viewport: Viewport, file: Path) -> None:
    try:
        with browser.open(viewport=viewport) as visit, visit.within(LIMIT_S):
            visit.goto(path)
            visit.screenshot(file, full_page=True)
    except (PlaywrightError, PageHung) as error:
        raise NoPicture(f"no picture for {file.stem}: {str(error).splitlines()[0]}") from error


def image_pair(ground: Ground, path: str = "/", viewport: Viewport = DESKTOP) -> ProbeFacts:
    """Both pictures and how alike they are. `against` when a user sees no difference at all."""
    try:
        pair = pair_pictures(ground.running, ground.folder, path, viewport)
    except NoPicture as why:
        return ProbeFacts(probe="image_pair", finding="unclear", facts=[str(why)], visits=2)
    alike = likeness(*(read_picture(one.read_bytes()) for one in pair))
    return ProbeFacts(
        probe="image_pair",
        finding="against" if alike >= 0.999 else "nothing",
        facts=[f"likeness of start and submission at {path}: {alike:.3f}"],
        pictures=[one.name for one in pair],
        visits=2,
    )
