"""A first look at both applications without any model: pictures, accessibility snapshot, console."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Error as PlaywrightError

from bench.atomic import write_json
from evaluator.browser import DESKTOP, PHONE, AppBrowser
from evaluator.criterion import Applications


def look(applications: Applications, results: Path, folder: Path) -> dict[str, str]:
    """Look at start and submission; gives picture names (`start_desktop` …) → path below `results`.

    An application that cannot be opened is no error here: its picture is missing and the reason is in
    `APP.json`. What it means is decided criterion by criterion.
    """
    shots: dict[str, str] = {}
    for name, browser in (("start", applications.start), ("submission", applications.submission)):
        facts: dict[str, object] = {}
        for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
            picture = folder / f"{name}-{size}.jpg"
            facts[size] = _look(browser, viewport, picture, folder / f"{name}-{size}.snapshot.txt")
            if picture.is_file():
                shots[f"{name}_{size}"] = str(picture.relative_to(results))
        write_json(folder / f"{name}.json", facts)
    return shots


def _look(browser: AppBrowser, viewport: tuple[int, int], picture: Path, snapshot: Path) -> dict[str, object]:
    picture.parent.mkdir(parents=True, exist_ok=True)
    try:
        with browser.open(viewport=viewport) as page:
            page.goto("/")
            page.screenshot(picture)
            snapshot.write_text(page.snapshot(), encoding="utf-8", errors="backslashreplace")
            return {"console": list(page.console), "refused_requests": list(page.refused), "error": ""}
    except PlaywrightError as error:
        return {"console": [], "refused_requests": [], "error": str(error).splitlines()[0]}
