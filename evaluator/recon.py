"""A first look at both applications without any model: pictures, accessibility snapshot, console."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Error as PlaywrightError

from bench.atomic import write_json
from evaluator.applications import Applications
from evaluator.browser import DESKTOP, AppBrowser

PHONE = {"width": 390, "height": 844}


def look(applications: Applications, results: Path, folder: Path) -> dict[str, str]:
    """Look at start and submission; gives picture names (`start_desktop` …) → path below `results`.

    An application that cannot be opened is no error here: its picture is missing and the reason is in
    `APP.json`. What it means is decided criterion by criterion.
    """
    if not applications.start_seen.look(folder):
        applications.start_seen.keep_look(_look(applications.start, "start", folder))
    _look(applications.submission, "submission", folder)
    names = [(app, size) for app in ("start", "submission") for size in ("desktop", "phone")]
    pictures = {f"{app}_{size}": folder / f"{app}-{size}.jpg" for app, size in names}
    return {name: str(path.relative_to(results)) for name, path in pictures.items() if path.is_file()}


def new_hosts(folder: Path) -> list[str]:
    """Hosts that the submission asked for in vain and the start application did not, by the looks in `folder`."""
    asked = {}
    for app in ("start", "submission"):
        path = folder / f"{app}.json"
        urls = json.loads(path.read_text(encoding="utf-8"))["refused_requests"] if path.is_file() else []
        asked[app] = {urlsplit(url).netloc for url in urls}
    return sorted(asked["submission"] - asked["start"])


def _look(browser: AppBrowser, app: str, folder: Path) -> list[Path]:
    """One visit, at desktop and at phone size; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"console": [], "refused_requests": [], "error": ""}
    files = [folder / f"{app}.json"]
    try:
        with browser.open(viewport=DESKTOP) as visit:
            visit.goto("/")
            for size, viewport in (("desktop", None), ("phone", PHONE)):
                if viewport:
                    visit.page.set_viewport_size(viewport)  # type: ignore[arg-type]
                    visit.settle()
                snapshot = folder / f"{app}-{size}.snapshot.txt"
                snapshot.write_text(visit.snapshot(), encoding="utf-8", errors="backslashreplace")
                visit.screenshot(folder / f"{app}-{size}.jpg")
                files += [snapshot, folder / f"{app}-{size}.jpg"]
            facts |= {"console": list(visit.console), "refused_requests": list(visit.refused)}
    except PlaywrightError as error:
        facts["error"] = error.message.splitlines()[0]
    write_json(files[0], facts)
    return files
