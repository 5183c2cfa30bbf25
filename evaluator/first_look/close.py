"""One application looked at closely: everything a judge may ask about its opening page, gathered once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Error as PlaywrightError

from bench.atomic import write_bytes
from evaluator.browser import AppBrowser, AppPage, PageHung
from evaluator.browser_tools import effects, shots
from evaluator.browser_tools.compare import differences
from evaluator.browser_tools.effects import NetworkLog
from evaluator.browser_tools.media_states import media_states
from evaluator.browser_tools.recording import record
from evaluator.browser_tools.snapshots import snapshot
from evaluator.evidence.levels import Depth
from evaluator.evidence.recorder import VisitRecorder
from evaluator.first_look.accessibility import accessibility
from evaluator.first_look.facts import ClosePage, Moment
from evaluator.first_look.outside import outside, watch_outside
from evaluator.first_look.states import explore
from evaluator.replay.stage import Stage

MOMENTS_S = (0.0, 1.0, 3.0)
CLOSE_S = 120.0
SNAPSHOT_CHARS = 200_000


@dataclass
class _Close:
    """One closer look on its way. Files go to `folder` and begin with the application's name."""

    app: Literal["start", "submission"]
    folder: Path
    depth: Depth
    page: ClosePage

    def keep(self, name: str, content: bytes) -> str:
        write_bytes(self.folder / f"{self.app}-{name}", content)
        return f"{self.app}-{name}"


def look_close(browser: AppBrowser, app: Literal["start", "submission"], folder: Path, depth: Depth) -> ClosePage:
    """The facts of one application. A page that breaks, hangs or refuses one of the looks is a fact as well."""
    look = _Close(app, folder, depth, ClosePage(app=app, level=depth.level))
    browser.recorder = VisitRecorder(folder / f"{app}-visit") if depth.records_visits else None
    try:
        with browser.open() as visit, visit.within(CLOSE_S):
            log = NetworkLog().follow(visit)
            watch_outside(visit)
            visit.goto("/")
            _all_looks(look, Stage(visit))
            _take_over(look.page, visit, log)
    except (PageHung, PlaywrightError) as error:
        look.page.error = str(error).splitlines()[0][:300]
    finally:
        browser.recorder = None
    if not look.page.error:
        try:
            look.page.states, look.page.states_cut = explore(browser, most=depth.controls, limit_s=depth.explore_s)
        except (PageHung, PlaywrightError) as error:
            look.page.error = str(error).splitlines()[0][:300]
    return look.page


def _all_looks(look: _Close, stage: Stage) -> None:
    """Each look by itself: what one of them cannot have is noted, and the others go on."""
    page = look.page
    looks: list[Callable[[], None]] = [
        lambda: _moments(look, stage),
        lambda: _pictures(look, stage),
        lambda: _tree(look, stage),
        lambda: setattr(page, "media", media_states(stage)),
        lambda: setattr(page, "storage", effects.storage(stage)),
        lambda: setattr(page, "accessibility", accessibility(stage)),
        lambda: setattr(page, "outside", outside(stage)),
    ]
    if look.depth.films_s:
        looks.append(lambda: _film(look, stage))
    for one in looks:
        try:
            one()
        except (PlaywrightError, ValueError) as error:
            if stage.visit.hung or stage.visit.crashed or not stage.visit.context.pages:
                raise
            page.console.append(f"harness: {str(error).splitlines()[0][:300]}")


def _moments(look: _Close, stage: Stage) -> None:
    at, before = 0.0, b""
    for moment in MOMENTS_S:
        stage.page.wait_for_timeout((moment - at) * 1000)
        at, jpeg = moment, shots.window(stage).jpeg
        name = look.keep(f"at-{moment:.0f}s.jpg", jpeg)
        changed = differences(before, jpeg)[0] if before else 0.0
        look.page.moments.append(Moment(at_s=moment, picture=name, changed=changed))
        before = jpeg


def _pictures(look: _Close, stage: Stage) -> None:
    size = shots.page_size(stage)
    look.page.title, look.page.page_px = stage.page.title()[:200], (size.width, size.height)
    look.page.whole = look.keep("whole.jpg", shots.whole(stage))
    tiles = shots.tiles(stage, look.depth.tiles)
    look.page.tiles = [look.keep(f"tile-{n:02d}.jpg", tile.jpeg) for n, tile in enumerate(tiles, 1)]


def _tree(look: _Close, stage: Stage) -> None:
    seen = snapshot(stage, budget=SNAPSHOT_CHARS)
    frames = "".join(f"\nframe {f.number} {f.url}\n{f.text}\n" for f in seen.frames)
    look.keep("boxes.snapshot.txt", (seen.text + frames).encode("utf-8", "backslashreplace"))


def _film(look: _Close, stage: Stage) -> None:
    filmed = record(stage, look.depth.films_s)
    names = [f"frame-{n:02d}-{shot.at_s:.2f}s.jpg" for n, shot in enumerate(filmed.seen.kept, 1)]
    look.page.frames = [look.keep(name, jpeg) for name, jpeg in zip(names, filmed.frames, strict=True)]


def _take_over(page: ClosePage, visit: AppPage, log: NetworkLog) -> None:
    page.network, page.refused = log.entries, list(visit.refused)
    page.console = [*visit.console, *page.console]
    page.dialogs = [f"{dialog.kind}: {dialog.message}" for dialog in visit.dialogs]
    page.popups = list(visit.popups)
