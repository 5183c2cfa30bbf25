"""Keeps everything of a visit: HAR, Playwright trace, and what the page held at the end."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Error as PlaywrightError

from bench.atomic import write_json
from evaluator.browser import AppPage, PageHung
from evaluator.browser_tools.media_states import media_states
from evaluator.browser_tools.snapshots import snapshot
from evaluator.evidence.har import cap_bodies
from evaluator.replay.stage import Stage

TRACE_S = 30.0
STATE_S = 10.0
_MEDIA_MS = 200


class VisitRecorder:
    """Everything of one visit, in `folder`: `har/visit.har` with small bodies beside it, `trace.zip`,
    `end.snapshot.txt`, `end.json`. What a lost page does not give any more is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._har = folder / "har" / "visit.har"

    def options(self) -> dict[str, Any]:
        self._har.parent.mkdir(parents=True, exist_ok=True)
        return {"record_har_path": self._har, "record_har_content": "attach"}

    def begin(self, visit: AppPage) -> None:
        visit.context.tracing.start(screenshots=True, snapshots=True)

    def end(self, visit: AppPage) -> None:
        if not (visit.hung or visit.crashed):
            with suppress(PlaywrightError, PageHung), visit.within(STATE_S):
                self._state(visit)
        if not (visit.hung or visit.crashed):
            with suppress(PlaywrightError, PageHung), visit.within(TRACE_S):
                visit.context.tracing.stop(path=self.folder / "trace.zip")

    def closed(self) -> None:
        if self._har.is_file():
            cap_bodies(self._har)

    def _state(self, visit: AppPage) -> None:
        stage = Stage(visit)
        told = {
            "url": visit.page.url,
            "console": list(visit.console),
            "refused_requests": list(visit.refused),
            "requests": [f"{one.method} {one.url}" for one in visit.requests],
            "dialogs": [f"{one.kind}: {one.message}" for one in visit.dialogs],
            "downloads": [one.suggested_filename for one in visit.downloads],
            "popups": list(visit.popups),
            "media": media_states(stage, _MEDIA_MS).model_dump(mode="json"),
        }
        write_json(self.folder / "end.json", told)
        text = snapshot(stage, budget=200_000).text
        (self.folder / "end.snapshot.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
