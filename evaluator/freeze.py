"""`cdb dataset freeze`: records what start applications load from elsewhere, once, into a store (`frozen_store`).

The application runs in its container and is looked at in the disposable browser container; neither has a network.
Every request for another address is answered from the store or noted and refused; between visits what was noted is
fetched by `sandboxes.open_fetch` and kept; then the application is visited again, until it asks for nothing new. So
what a recording has seen is what a judging will get.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Route

from bench.cache import cache_folder
from bench.errors import CdbError, InfraError, UsageError
from bench.pool import run_all, stopping_on_signals
from bench.task import Task, open_dataset
from evaluator.applications import start_build_folder
from evaluator.browser import DESKTOP, AppBrowser, AppPage, PageHung
from evaluator.build import build
from evaluator.external_addresses import addresses_in
from evaluator.frozen_recording import Recording
from evaluator.frozen_store import FrozenIndex, NotRecorded, read_index
from evaluator.serve import serve
from evaluator.serve_file import plan_of
from evaluator.sidecar import browser_for, playwright_driver
from evaluator.witness import Viewport
from sandboxes.docker_sandbox import kill_open_sandboxes
from sandboxes.mirror import Mirror
from sandboxes.open_fetch import OpenFetch

RUN = "freeze"
PHONE = Viewport(width=390, height=844)
MAX_ROUNDS = 10
MAX_PAGES = 8
MAX_SCROLLS = 40
LINGER_S = 3.0
VISIT_S = 120.0
LINKS = "() => [...document.querySelectorAll('a[href]')].map((link) => link.href)"
SCROLL = """() => {
    for (const node of document.querySelectorAll('*'))
        if (node.scrollHeight > node.clientHeight + 8 && node.clientHeight > 80) node.scrollBy(0, node.clientHeight);
    window.scrollBy(0, window.innerHeight);
    return window.scrollY + window.innerHeight < document.documentElement.scrollHeight - 2;
}"""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class FreezeSummary:
    """What the store holds after a call. `failed`: could not be fetched just now; the same command tries again."""

    store: Path
    digest: str
    entries: int
    bytes: int
    refused: list[NotRecorded]
    failed: list[NotRecorded]
    trouble: dict[str, str]
    """Task → why its start application could not be looked at."""

    @property
    def complete(self) -> bool:
        return not self.failed and not self.trouble

    def as_json(self) -> dict[str, Any]:
        return {
            "store": str(self.store),
            "digest": self.digest,
            "entries": self.entries,
            "bytes": self.bytes,
            "refused": [one.model_dump(mode="json") for one in self.refused],
            "failed": [one.model_dump(mode="json") for one in self.failed],
            "trouble": self.trouble,
        }

    def lines(self) -> list[str]:
        found = [f"{case}: {reason}" for case, reason in self.trouble.items()]
        found += [f"{one.kind}: {one.url}: {one.reason}" for one in (*self.failed, *self.refused)]
        total = f"{self.entries} resources ({self.bytes / 1e6:.1f} MB) in {self.store}, {self.digest}"
        return [*found, total]


def freeze(
    root: Path,
    store: Path,
    *,
    only: tuple[str, ...] = (),
    concurrency: int = 2,
    fetch: OpenFetch | None = None,
    progress: Progress = lambda _line: None,
) -> FreezeSummary:
    """Record what the start applications below an extracted root load from elsewhere.

    A task that was recorded whole is not recorded again while its application is the same. Raises UsageError for a
    wrong folder or a store that another process writes, Interrupted after a signal.
    """
    dataset = open_dataset(root, only)
    fetch = fetch or OpenFetch()
    store.mkdir(parents=True, exist_ok=True)
    with _only_writer(store), Mirror() as mirror, stopping_on_signals(kill_open_sandboxes) as stop:
        recording = Recording(store, read_index(store) or FrozenIndex(schema="cdb.frozen/1"), fetch)
        waiting = [task for task in dataset.tasks if recording.index.done.get(task.case_id) != task.start_digest]
        trouble: dict[str, str] = {}
        for case, reason in run_all(_job(recording, mirror), waiting, concurrency=concurrency, stop=stop):
            if stop.is_set():
                continue
            if reason:
                trouble[case] = reason
            recording.write()
            progress(f"{case}: {reason or recording.told(case)}")
    return _summary(recording, trouble)


def _summary(recording: Recording, trouble: dict[str, str]) -> FreezeSummary:
    recording.write()
    index = recording.index
    sizes = {entry.sha256: entry.bytes for entry in index.entries}
    return FreezeSummary(
        store=recording.folder,
        digest=index.digest,
        entries=len(index.entries),
        bytes=sum(sizes.values()),
        refused=[one for one in index.not_recorded if one.kind == "refused"],
        failed=[one for one in index.not_recorded if one.kind == "failed"],
        trouble=trouble,
    )


def _job(recording: Recording, mirror: Mirror) -> Callable[[Task], tuple[str, str]]:
    def job(task: Task) -> tuple[str, str]:
        try:
            _record_case(task, recording, mirror)
        except CdbError as error:
            return task.case_id, str(error).splitlines()[0]
        except PlaywrightError as error:
            return task.case_id, f"the browser: {error.message.splitlines()[0]}"
        except Exception as error:  # noqa: BLE001  (the case's outermost edge: told, and the case is not done)
            return task.case_id, f"{type(error).__name__}: {error}"
        return task.case_id, ""

    return job


def _record_case(task: Task, recording: Recording, mirror: Mirror) -> None:
    plan = plan_of(task.project)
    out = start_build_folder(cache_folder("builds"), task.start_digest)
    logs = out.parent / f"{out.name}.logs"
    built = build(plan, task.project, out, run=RUN, case=task.case_id, mirror=mirror, logs=logs)
    if built.outcome != "ok":
        raise InfraError(f"its start application does not build: {built.reason}")
    with (
        playwright_driver() as driver,
        serve(built.plan, built.served, run=RUN, case=task.case_id) as app,
        browser_for(app, driver=driver, run=RUN, case=task.case_id) as browser,
    ):
        record(browser, task.case_id, recording, [address.url for address in addresses_in(task.project)])
    recording.finish(task.case_id, task.start_digest)


def record(browser: AppBrowser, case: str, recording: Recording, named: list[str]) -> None:
    """Visit until the application asks for nothing new. `named`: addresses that its source names.

    Raises InfraError when the application does not open.
    """
    with browser.open() as visit:
        parts = urlsplit(browser.base_url)
        agent = {
            "user-agent": str(visit.page.evaluate("() => navigator.userAgent")),
            "accept-language": "en-US",
            "origin": f"{parts.scheme}://{parts.netloc}",  # some servers allow other origins only when told of one
        }
    recording.fetch_all(case, dict.fromkeys(named, agent))
    for _ in range(MAX_ROUNDS):
        noted = _Noted(recording)
        browser.frozen = noted
        for viewport in (DESKTOP, PHONE):
            with browser.open(viewport=viewport) as visit:
                try:
                    with visit.within(VISIT_S):
                        _look_everywhere(visit)
                except PageHung:
                    continue  # what it asked for until then counts
                except PlaywrightError as error:
                    raise InfraError(f"its start application does not open: {error.message}") from error
        if not recording.fetch_all(case, {url: agent | headers for url, headers in noted.wanted.items()}):
            return


def _look_everywhere(visit: AppPage) -> None:
    """The first page and those it links to: scrolled to the end, and watched for what comes late."""
    visit.goto("/")
    _linger(visit, LINGER_S)
    _scroll(visit)
    links = [urldefrag(link).url for link in visit.page.evaluate(LINKS)]
    for link in [url for url in dict.fromkeys(links) if visit.is_own(url)][:MAX_PAGES]:
        try:
            visit.page.goto(link, wait_until="domcontentloaded")
            visit.loaded()
            _scroll(visit)
        except PlaywrightError:
            if visit.hung or visit.crashed:
                raise  # a single link may lead to a download, or nowhere


def _scroll(visit: AppPage) -> None:
    for _ in range(MAX_SCROLLS):
        more = visit.page.evaluate(SCROLL)
        visit.page.wait_for_timeout(80)
        if not more:
            break
    _linger(visit, 0.5)


def _linger(visit: AppPage, quiet_s: float) -> None:
    """Wait until nothing was asked for during `quiet_s`; at most four times as long."""
    until = time.monotonic() + 4 * quiet_s
    seen, since = len(visit.requests), time.monotonic()
    while time.monotonic() < until and time.monotonic() - since < quiet_s:
        visit.page.wait_for_timeout(100)
        if len(visit.requests) != seen:
            seen, since = len(visit.requests), time.monotonic()


@dataclass
class _Noted:
    """Answers a page from the recording, and notes the GETs that it cannot answer, with their headers."""

    recording: Recording
    wanted: dict[str, dict[str, str]] = field(default_factory=dict)

    def answer(self, route: Route, origin: str) -> bool:
        request = route.request
        if self.recording.answer(route, origin):
            return True
        if request.method == "GET" and request.url.startswith(("http://", "https://")):
            self.wanted.setdefault(request.url, dict(request.headers))
        return False


@contextmanager
def _only_writer(store: Path) -> Iterator[None]:
    with (store / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process is recording into {store}; wait for it, or choose another") from error
        yield
