"""Whether this machine's browser can play and show a task's media: what it cannot is no fault of a submission."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from playwright.sync_api import Error as PlaywrightError

from evaluator.attachments import kind_of
from evaluator.browser import AppPage, PageHung

PROBE_S = 10.0
_PLAYS = """async ([url, kind, limit]) => {
  const element = document.createElement(kind);
  const late = new Promise((done) => {
    setTimeout(() => done(`nothing of it was ready within ${limit / 1000} s`), limit);
  });
  if (kind === 'img') {
    element.src = url;
    return Promise.race([element.decode().then(() => '', (error) => error.message), late]);
  }
  element.muted = true;
  element.preload = 'auto';
  const failed = new Promise((done) => {
    element.addEventListener('error', () => done(element.error.message || 'error'));
  });
  const plays = (async () => {
    const ready = new Promise((done) => element.addEventListener('loadeddata', done));
    element.src = url;
    await ready;
    if (kind === 'video' && element.videoWidth === 0) return 'it has no picture that can be decoded';
    const advances = new Promise((done) => {
      element.addEventListener('timeupdate', () => element.currentTime > 0 && done(''));
    });
    await element.play();
    return advances;
  })().catch((error) => error.message);
  const said = await Promise.race([plays, failed, late]);
  element.removeAttribute('src');
  element.load();
  return said;
}"""
_ELEMENTS = {"audio": "audio", "video": "video", "image": "img"}


def unplayable(visit: AppPage, attachments: Sequence[str]) -> dict[str, str]:
    """Path and reason of each audio, video and image attachment that an open page of the start application, which
    serves them, can neither play nor show. `attachments`: paths below the application."""
    found = {}
    for path in attachments:
        element = _ELEMENTS.get(kind_of(path))
        if element is None:
            continue
        url = visit.base_url.rstrip("/") + "/" + quote(path)
        try:
            with visit.within(PROBE_S + 5):
                reason = visit.page.evaluate(_PLAYS, [url, element, PROBE_S * 1000])
        except (PlaywrightError, PageHung) as error:
            reason = str(error).splitlines()[0]
        if reason:
            found[path] = str(reason)[:300]
    return found
