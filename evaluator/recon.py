"""A first look at both applications without any model: pictures, accessibility snapshot, console.

Above the evidence level `minimal` also a closer one (`evaluator.first_look`): over time, states, flows,
accessibility, media, and what differs.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Error as PlaywrightError

from bench.atomic import write_json
from bench.errors import InfraError
from bench.strict_json import read_json
from evaluator.applications import Applications, NotServed
from evaluator.browser import DESKTOP, AppBrowser, AppPage, PageHung
from evaluator.evidence.levels import Depth, EvidenceLevel, depth_of
from evaluator.playback import unplayable
from evaluator.turns import Turn

PHONE = {"width": 390, "height": 844}
LOOK_S = 60.0
"""How long one look may take. A page that is silent for so long never comes to an end (two page loads at most)."""


@dataclass(frozen=True)
class Recon:
    """What was seen. `shots`: picture name (`start_desktop` …) → path below the results. `unplayable`: path of each
    attachment that this machine cannot play or show → why. `new_hosts`: hosts that the submission asked for in vain
    and the start application did not."""

    shots: dict[str, str]
    unplayable: dict[str, str]
    new_hosts: list[str]
    flows_lost: list[str] = field(default_factory=list)
    """Flows that work on the start application and no more on the submission, by name."""


def look(
    applications: Applications,
    results: Path,
    folder: Path,
    attachments: Sequence[str],
    level: EvidenceLevel = "minimal",
) -> Recon:
    """Look at start and submission; `attachments`: paths below the application.

    An application that cannot be opened is no error here: its picture is missing and the reason is in
    `APP.json`. What it means is decided criterion by criterion. Raises NotServed (`app_hang`) for a submission whose
    page never answers, twice, and InfraError for such a start application.
    """
    _remove_earlier(folder)
    if not applications.start_seen.look(folder):
        files, hung = _look(applications.start, "start", folder, attachments)
        if hung:
            raise InfraError(f"the start application's page does not answer: {hung}")
        applications.start_seen.keep_look(files)
    _, hung = _look(applications.submission, "submission", folder)
    if hung and _look(applications.submission, "submission", folder)[1]:
        if not applications.submission.answers():
            raise InfraError(f"{hung}, and neither does the browser")
        raise NotServed("app_hang", hung)
    names = [(app, size) for app in ("start", "submission") for size in ("desktop", "phone")]
    pictures = {f"{app}_{size}": folder / f"{app}-{size}.jpg" for app, size in names}
    shots = {name: str(path.relative_to(results)) for name, path in pictures.items() if path.is_file()}
    facts = {app: read_json(folder / f"{app}.json") for app in ("start", "submission")}
    depth = depth_of(level)
    lost = _closer(applications, results, folder, depth) if depth else []
    return Recon(shots, facts["start"]["unplayable"], _new_hosts(facts), lost)


def _remove_earlier(folder: Path) -> None:
    """Files of a look that was taken before. They may be links to blobs, so nothing is ever written into them."""
    for path in folder.glob("*"):
        if path.name.startswith(("start", "submission", "pair", "flows", "differences")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _closer(applications: Applications, results: Path, folder: Path, depth: Depth) -> list[str]:
    """The closer look at both; the names of the flows that are lost. What was seen on the start is shared."""
    from evaluator.first_look.close import look_close
    from evaluator.first_look.differences import differ
    from evaluator.first_look.facts import ClosePage, Flow
    from evaluator.first_look.flows import record_flows, replay_flows

    shared = f"look-{depth.level}"
    if not applications.start_seen.look(folder, shared):
        before = set(folder.rglob("*"))
        start = look_close(applications.start, "start", folder, depth)
        recorded = record_flows(applications.start, start.states, folder, results, depth.flows)
        write_json(folder / "start.facts.json", start.model_dump(mode="json"))
        write_json(folder / "flows.json", [flow.model_dump(mode="json") for flow in recorded])
        files = sorted(path for path in set(folder.rglob("*")) - before if path.is_file())
        applications.start_seen.keep_look(files, shared, folder)
    start = ClosePage.model_validate(read_json(folder / "start.facts.json"))
    flows = [Flow.model_validate(one) for one in read_json(folder / "flows.json")]
    submission = look_close(applications.submission, "submission", folder, depth)
    flows = replay_flows(applications.submission, flows, folder, results)
    write_json(folder / "submission.facts.json", submission.model_dump(mode="json"))
    write_json(folder / "flows.json", [flow.model_dump(mode="json") for flow in flows])
    found = differ(start, submission, flows, folder)
    write_json(folder / "differences.json", found.model_dump(mode="json"))
    return found.flows_lost


def _new_hosts(facts: dict[str, dict[str, Any]]) -> list[str]:
    asked = {app: {urlsplit(url).netloc for url in seen["refused_requests"]} for app, seen in facts.items()}
    return sorted(asked["submission"] - asked["start"])


def _look(
    browser: AppBrowser, app: str, folder: Path, attachments: Sequence[str] | None = None
) -> tuple[list[Path], str]:
    """One visit, at desktop and at phone size; the files written, and how the page hung where it did."""
    folder.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"console": [], "refused_requests": [], "error": ""}
    if attachments is not None:
        facts["unplayable"] = {}
    files, hung = [folder / f"{app}.json"], ""
    try:
        with Turn(), browser.open(viewport=DESKTOP) as visit, _told(visit, facts), visit.within(LOOK_S):
            visit.goto("/")
            if attachments is not None:
                facts["unplayable"] = unplayable(visit, attachments)
            for size, viewport in (("desktop", None), ("phone", PHONE)):
                if viewport:
                    visit.page.set_viewport_size(viewport)  # type: ignore[arg-type]
                    visit.settle()
                visit.screenshot(folder / f"{app}-{size}.jpg")
                files.append(folder / f"{app}-{size}.jpg")
                if reason := _write_snapshot(visit, folder / f"{app}-{size}.snapshot.txt"):
                    facts["error"] = reason
                else:
                    files.append(folder / f"{app}-{size}.snapshot.txt")
    except PageHung as error:
        facts["error"] = hung = str(error)
    except PlaywrightError as error:
        facts["error"] = error.message.splitlines()[0]
    write_json(files[0], facts)
    return files, hung


@contextmanager
def _told(visit: AppPage, facts: dict[str, Any]) -> Iterator[None]:
    """What the page said and asked for is kept, however the look at it ends."""
    try:
        yield
    finally:
        facts |= {"console": list(visit.console), "refused_requests": list(visit.refused)}


def _write_snapshot(visit: AppPage, path: Path) -> str:
    """Why there is none, "" when it is written: a page may be too large, or hold nothing that has a tree (frames)."""
    try:
        path.write_text(visit.snapshot(), encoding="utf-8", errors="backslashreplace")
    except PlaywrightError as error:
        if visit.hung or visit.crashed:
            raise
        return f"no accessibility snapshot: {error.message.splitlines()[0]}"
    return ""
