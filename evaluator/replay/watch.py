"""Polls a check until it holds or its deadline has passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from evaluator.replay import check_content, check_effects, check_looks, check_start
from evaluator.replay.act import act
from evaluator.replay.finding import Finding
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import Check
from evaluator.witness import checks as c

POLL_MS = 50
LATE_POLL_MS = 150
LATE_S = 0.5
"""What is not there after half a second mostly never comes: looking often is then dearer than seeing it late."""
MIN_LOOKS = 5
MOST_STRETCH = 3.0
"""A check is looked at five times at least, so that a machine under load is not taken for a wrong
application; but no longer than three times its deadline."""


def watch(stage: Stage, check: Check) -> Finding:
    """The first finding that holds, or the last one when the deadline (`within_ms`, scaled) has passed.

    An action inside the check (`after`, `during`) is done once, before the first look. Raises what `act`
    raises for it, and Playwright errors that mean the page is gone."""
    look = _look(stage, check)
    began, limit_s, looks = time.monotonic(), stage.check_s(check), 0
    while True:
        finding = _try(stage, look)
        looks += 1
        spent_s = time.monotonic() - began
        enough = MIN_LOOKS if spent_s < MOST_STRETCH * limit_s else 1
        if finding.holds or (spent_s >= limit_s and looks >= enough):
            return finding
        pause_ms = POLL_MS if spent_s < LATE_S else LATE_POLL_MS
        stage.page.wait_for_timeout(min(pause_ms, max((limit_s - spent_s) * 1000, 10)))


def _try(stage: Stage, look: Callable[[], Finding]) -> Finding:
    try:
        finding = look()
    except NotShown as why:
        finding = Finding(False, str(why))
    except PlaywrightTimeout:
        stage.page.evaluate("0")  # a page that is only slow answers; one that hangs is given up here
        finding = Finding(False, "an element that went away while it was looked at")
    except PlaywrightError as error:
        if stage.visit.hung or stage.visit.crashed or not stage.visit.context.pages:
            raise
        finding = Finding(False, f"the page changing ({error.message.splitlines()[0][:120]})")
    stage.visit.answered_at = time.monotonic()
    return finding


def _look(stage: Stage, check: Check) -> Callable[[], Finding]:  # noqa: PLR0911, PLR0912 - one line for each word
    """One look at the page for this check, with what must happen before it done."""
    match check:
        case c.TextCheck():
            return partial(check_content.text, stage, check)
        case c.ValueCheck():
            return partial(check_content.value, stage, check)
        case c.CountCheck():
            return partial(check_content.count, stage, check)
        case c.StateCheck():
            return partial(check_looks.state, stage, check)
        case c.UrlCheck():
            return partial(check_content.url, stage, check)
        case c.AttributeCheck():
            return partial(check_content.attribute, stage, check)
        case c.StyleCheck():
            return partial(check_looks.style, stage, check)
        case c.BoxCheck():
            return partial(check_looks.box, stage, check)
        case c.FitsWidthCheck():
            return partial(check_looks.fits_width, stage, check)
        case c.OrderCheck():
            return partial(check_content.order, stage, check)
        case c.EachCheck():
            return partial(check_content.each, stage, check)
        case c.StorageCheck():
            return partial(check_effects.storage, stage, check)
        case c.DownloadCheck():
            already = len(stage.visit.downloads) if check.after else 0
            if check.after is not None:
                act(stage, check.after)
            return partial(check_effects.download, stage, check, already)
        case c.ClipboardCheck():
            check_effects.empty_clipboard(stage)
            act(stage, check.after)
            return partial(check_effects.clipboard, stage, check)
        case c.DialogCheck():
            return partial(check_effects.dialog, stage, check)
        case c.ConsoleCheck():
            stage.visit.settle()
            return partial(check_effects.console_clean, stage)
        case c.MediaCheck():
            return partial(check_effects.media, stage, check)
        case c.CanvasChangedCheck():
            before = check_looks.picture(stage, check.target)
            if check.during is not None:
                act(stage, check.during)
            return partial(check_looks.canvas_changed, stage, check, before)
        case c.ImageCheck():
            return partial(check_looks.image, stage, check)
        case c.StartCheck():
            stage.visit.settle()
            return partial(check_start.against_start, stage, check)
        case c.ContrastCheck():
            return partial(check_looks.contrast, stage, check)
        case c.CompareCheck():
            return partial(check_content.compare, check)
        case c.RequestCheck():
            return partial(check_effects.request, stage, check)
