"""Reading elements in a world beside the page's own, so that a page which redefines its built-ins deceives nobody.

`Locator.evaluate` runs among the page's own built-ins: a submission may have replaced `getComputedStyle`, or what a
player says of itself. Playwright's own questions run in an isolated world, and so do selector engines of ours that
are registered as content scripts. Ours (`inside.js`) gives back either the element itself or its answer, as the text
of an element that is in no document.
"""

from __future__ import annotations

import base64
import json
from importlib import resources
from typing import Any

from playwright.sync_api import Locator, Playwright

_ENGINE = "cdb-inside"
READ_MS = 1_000
MEDIA = """e => {
  if (!(e instanceof HTMLMediaElement)) return null;
  const frames = e.videoWidth && e.getVideoPlaybackQuality ? e.getVideoPlaybackQuality().totalVideoFrames : 0;
  return {time: e.currentTime, duration: Number.isFinite(e.duration) ? e.duration : null, volume: e.volume,
    rate: e.playbackRate, muted: e.muted, paused: e.paused, ended: e.ended, ready: e.readyState,
    source: e.currentSrc || e.src, frames, wide: e.videoWidth || 0, audio: e.webkitAudioDecodedByteCount || 0,
    loop: e.loop, captions: [...e.textTracks].some(track => track.mode === 'showing'),
    error: e.error ? e.error.message || 'code ' + e.error.code : null};
}"""
"""The state of a player; also read of players that are in no document, which only the page's own world has."""


def teach(driver: Playwright) -> None:
    """Make the questions below known to every context that browsers of this driver open. Once for each driver."""
    script = resources.files("evaluator.replay").joinpath("inside.js").read_text(encoding="utf-8")
    driver.selectors.register(_ENGINE, script.replace("MEDIA", MEDIA, 1), content_script=True)


def ask(found: Locator, question: str, *given: object) -> Any:
    """The answer of one element to a question of `inside.js`, as JSON has it.

    Raises PlaywrightTimeout when there is no such element within a second."""
    return json.loads(_answer(found.first, question, given).text_content(timeout=READ_MS) or "null")


def _answer(found: Locator, question: str, given: tuple[object, ...]) -> Locator:
    asked = base64.b64encode(json.dumps([question, *given]).encode()).decode()
    return found.locator(f"{_ENGINE}={asked}")


def only_seen(found: Locator) -> Locator:
    """Those of the matches that a user could see, scrolling if need be: with a box larger than 1 px, not transparent
    or hidden by themselves or an ancestor, and not left of or above the page."""
    return found.locator(f"{_ENGINE}=seen")


def is_seen(found: Locator) -> bool:
    """Whether a user could see the one element that `found` stands for; False when it is gone."""
    return only_seen(found).count() > 0
