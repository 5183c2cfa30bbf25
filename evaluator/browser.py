"""One application in a real browser: fresh state for each use, no other address, nothing that can block us.

The synchronous Playwright API belongs to the thread that started it; an `AppBrowser` is made and used there.
It does not own the `Browser` it is given.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from greenlet import greenlet  # type: ignore[import-untyped]
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Download,
    Geolocation,
    Page,
    Request,
    Route,
    WebError,
    WebSocketRoute,
)
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from bench.errors import InfraError
from evaluator.witness import Viewport

DESKTOP = Viewport()
CALL_TIMEOUT_MS = 5_000
LOAD_TIMEOUT_MS = 15_000
MAX_LINES = 200
MAX_LINE_CHARS = 500
MAX_PICTURE_PX = 2_000
JPEG_QUALITY = 72
PERMISSIONS = ["camera", "clipboard-read", "clipboard-write", "geolocation", "microphone", "notifications"]
"""What a user would allow when asked. Headless Chromium has nobody to ask and refuses, the clipboard's writing too,
which a browser with a window allows without asking: a working copy button would look broken."""
PLACE: Geolocation = {"latitude": 51.4779, "longitude": -0.0015, "accuracy": 20}
"""Where the user is; camera and microphone are Chromium's fake devices."""
CUT_S = 10.0
CLIPBOARD_S = 1.0
_EMPTY_CLIPBOARD = "async () => { if (navigator.clipboard) await navigator.clipboard.writeText(''); }"
_SETTLE_MS = 50
_MAX_SETTLES = 12
Kept = TypeVar("Kept")
_HIDE_AUTOMATION = "Object.defineProperty(Navigator.prototype, 'webdriver', {get: () => false});"
_SIGNATURE = (
    "() => document.readyState + document.getElementsByTagName('*').length + ':' "
    "+ (document.body ? document.body.textContent.length : 0)"
)


class PageHung(Exception):
    """The page did not answer in time and was given up: its context is closed."""


@dataclass(frozen=True)
class ShownDialog:
    """An alert, confirm, prompt or beforeunload the application showed."""

    kind: str
    message: str


@dataclass(frozen=True)
class SeenRequest:
    """A request the application made, refused ones included."""

    method: str
    url: str


class Answers(Protocol):
    """Recorded answers to requests for other addresses (`evaluator.frozen_store`)."""

    def answer(self, route: Route, origin: str) -> bool:
        """Answer a request of a page of `origin`; False when nothing is recorded for it."""


@dataclass
class AppPage:
    """One visit to the application. Lists only grow; the bounded ones keep the first `MAX_LINES`."""

    context: BrowserContext
    base_url: str
    frozen: Answers | None = None
    """What answers requests for other addresses; those it has nothing for are refused."""
    console: list[str] = field(default_factory=list)
    """Console lines (`error: …`, `log: …`) and uncaught errors (`pageerror: …`) in order."""
    faults: list[str] = field(default_factory=list)
    """The console errors and uncaught errors that are the application's own doing."""
    refused: list[str] = field(default_factory=list)
    """Addresses outside the application that were asked for and refused, each once."""
    dialogs: list[ShownDialog] = field(default_factory=list)
    downloads: list[Download] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    popups: list[str] = field(default_factory=list)
    """First known address of each further page the application opened."""
    accept_dialogs: bool = True
    dialog_text: str | None = None
    crashed: bool = False
    hung: bool = False
    answered_at: float = field(default_factory=time.monotonic)
    """When the page last gave a sign of life, on the monotonic clock; whoever waits for it keeps this up."""

    @property
    def page(self) -> Page:
        """The page a user would now look at: the newest open one that is the application's own.

        Raises PlaywrightError when the application closed them all."""
        pages = [page for page in self.context.pages if not page.is_closed()]
        for page in reversed(pages):
            if self.is_own(page.url) or page.url in ("", "about:blank"):
                return page
        if not pages:
            raise PlaywrightError("every page was closed")
        return pages[0]

    def is_own(self, url: str) -> bool:
        """True for the application's own origin and for what has no origin elsewhere (data:, blob:)."""
        if url.startswith(("data:", "blob:")):
            return True
        return _origin(url) == _origin(self.base_url)

    def goto(self, path: str) -> int | None:
        """Open a path of the application; returns the HTTP status (None for a move within the page).

        Raises PlaywrightError when nothing answers and PlaywrightTimeout when no document comes."""
        page = self.page
        url = self.base_url.rstrip("/") + path
        answer = page.goto(url, wait_until="domcontentloaded", timeout=LOAD_TIMEOUT_MS)
        self.loaded()
        return answer.status if answer else None

    def loaded(self) -> None:
        """Wait for the load event, but not for one that a single dead picture holds up; then settle."""
        with suppress(PlaywrightTimeout):
            self.page.wait_for_load_state("load", timeout=LOAD_TIMEOUT_MS / 3)
        self.settle()

    def settle(self) -> None:
        """Wait until the document's size stayed the same for 50 ms, at most 600 ms. Never for the network:
        applications that poll would never be done."""
        before = None
        for _ in range(_MAX_SETTLES):
            try:
                now = self.page.evaluate(_SIGNATURE)
            except PlaywrightTimeout:
                raise
            except PlaywrightError:
                if self.crashed or self.hung:
                    raise
                now = None  # navigating just now
            if now is not None and now == before:
                return
            before = now
            self.page.wait_for_timeout(_SETTLE_MS)

    def screenshot(self, path: Path, *, full_page: bool = False) -> None:
        """Write a JPEG of the viewport, or of the whole page; no side is longer than 2,000 px."""
        page = self.page
        size = page.viewport_size or {"width": DESKTOP.width, "height": DESKTOP.height}
        width, height = size["width"], size["height"]
        if full_page:
            height = max(height, page.evaluate("() => Math.ceil(document.documentElement.scrollHeight)"))
        page.screenshot(
            path=path,
            type="jpeg",
            quality=JPEG_QUALITY,
            full_page=full_page,
            timeout=CALL_TIMEOUT_MS,
            clip={"x": 0, "y": 0, "width": min(width, MAX_PICTURE_PX), "height": min(height, MAX_PICTURE_PX)},
        )

    def snapshot(self) -> str:
        """The page's accessibility tree as indented text."""
        return self.page.locator("body").aria_snapshot(timeout=CALL_TIMEOUT_MS)

    def download_bytes(self, download: Download, *, max_bytes: int = 5_000_000) -> bytes:
        """The first `max_bytes` of a downloaded file."""
        with tempfile.TemporaryDirectory(prefix="cdb-download-") as folder:
            path = Path(folder) / "file"
            download.save_as(path)
            with path.open("rb") as file:
                return file.read(max_bytes)

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Give the page up when what is inside takes longer than `limit_s`: raises PageHung.

        Needed because a page in an endless loop answers no `evaluate`, and that call has no timeout of its
        own. The timer runs on Playwright's event loop, which is running whenever we wait for Playwright;
        closing the context makes the pending call fail at once."""
        timer = asyncio.get_running_loop().call_later(max(limit_s, 0.001), self._in_greenlet(self._give_up))
        try:
            yield
        except PlaywrightError as error:
            if self.hung:
                raise PageHung(f"the page did not answer within {limit_s:.0f} s") from error
            raise
        finally:
            timer.cancel()

    @staticmethod
    def _in_greenlet(work: Callable[[], None]) -> Callable[[], None]:
        """Playwright's synchronous calls must not be made on the event loop's own greenlet."""
        return lambda: greenlet(work).switch()

    def _give_up(self) -> None:
        """Close the context; where that gets no answer either, the browser itself hangs: cut its connection, which
        fails whatever waits for it."""
        self.hung = True
        cut = asyncio.get_running_loop().call_later(CUT_S, self._in_greenlet(self._cut))
        self.close()
        cut.cancel()

    def _cut(self) -> None:
        if (browser := self.context.browser) is not None:
            with suppress(PlaywrightError):
                browser.close()

    def leave(self) -> None:
        """The end of a visit. The clipboard is the only thing that contexts of one browser share: it is emptied."""
        if not (self.hung or self.crashed):
            with suppress(PlaywrightError, PageHung), self.within(CLIPBOARD_S):
                self.page.evaluate(_EMPTY_CLIPBOARD)
        self.close()

    def close(self) -> None:
        with suppress(PlaywrightError):  # the browser is gone, and with it the context
            self.context.close()

    def watch(self) -> None:
        """Start listening and refusing. Called once, before the first page opens."""
        own = re.escape(_origin(self.base_url))
        elsewhere = re.compile(rf"^(?!{own}(?:[/?#]|$))(?!data:|blob:|about:)")
        self.context.route(elsewhere, self._refuse)
        own_socket = re.escape(_origin(self.base_url).replace("http", "ws", 1))
        self.context.route_web_socket(re.compile(rf"^(?!{own_socket}(?:[/?#]|$))"), self._refuse_socket)
        self.context.on("console", self._on_console)
        self.context.on("weberror", self._on_error)
        self.context.on("dialog", self._on_dialog)
        self.context.on("request", self._on_request)
        self.context.on("page", self._on_page)

    def _refuse(self, route: Route) -> None:
        if self.frozen and self.frozen.answer(route, _origin(self.base_url)):
            return
        self._note_refused(route.request.url)
        with suppress(PlaywrightError):  # the page went away first
            route.abort("blockedbyclient")

    def _refuse_socket(self, socket: WebSocketRoute) -> None:
        self._note_refused(socket.url)
        socket.close(code=1008, reason="outside the application")

    def _note_refused(self, url: str) -> None:
        url = url[:MAX_LINE_CHARS]
        if url not in self.refused:
            _keep(self.refused, url)

    def _on_console(self, message: ConsoleMessage) -> None:
        line = f"{message.type}: {message.text}"
        _keep(self.console, line)
        source = message.location.get("url", "")
        # Code that a bundler names otherwise (webpack-internal:), or with no address at all, is the application's.
        foreign = source.startswith(("http:", "https:")) and bool(_origin(source)) and not self.is_own(source)
        if message.type == "error" and not foreign and not source.endswith("/favicon.ico"):
            _keep(self.faults, line)

    def _on_error(self, error: WebError) -> None:
        line = f"pageerror: {error.error.message}"
        _keep(self.console, line)
        _keep(self.faults, line)

    def _on_dialog(self, dialog: Dialog) -> None:
        _keep_one(self.dialogs, ShownDialog(dialog.type, dialog.message[:MAX_LINE_CHARS]))
        try:
            if not self.accept_dialogs and dialog.type != "beforeunload":
                dialog.dismiss()
            elif dialog.type == "prompt" and self.dialog_text is not None:
                dialog.accept(self.dialog_text)
            else:
                dialog.accept(dialog.default_value or None)
        except PlaywrightError:
            pass  # the page closed under its dialog

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            _keep_one(self.requests, SeenRequest(request.method, request.url[:2_000]), 2_000)

    def _on_page(self, page: Page) -> None:
        page.set_default_timeout(CALL_TIMEOUT_MS)
        page.set_default_navigation_timeout(LOAD_TIMEOUT_MS)
        page.on("crash", self._on_crash)
        page.on("download", self._on_download)
        if len(self.context.pages) > 1:
            _keep(self.popups, page.url)

    def _on_crash(self, _page: Page) -> None:
        """Close what is left, so that a call that waits for the dead page fails at once."""
        self.crashed = True
        self.close()

    def _on_download(self, download: Download) -> None:
        _keep_one(self.downloads, download, 50)


class Recorder(Protocol):
    """Keeps more of each visit than what its `AppPage` holds (`evaluator.evidence.recorder`)."""

    def options(self) -> dict[str, Any]:
        """Further options for the visit's context."""

    def begin(self, visit: AppPage) -> None:
        """The context is there, its first page is not."""

    def end(self, visit: AppPage) -> None:
        """The visit is over; its pages are still open, unless they were given up."""

    def closed(self) -> None:
        """The context is closed: what is written with it lies on disk."""


class AppBrowser:
    """The application at `base_url` (with its port, and a sub-path if it has one), seen through `browser`.

    `frozen` answers what the application asks of other addresses."""

    def __init__(self, browser: Browser, base_url: str, frozen: Answers | None = None) -> None:
        self.browser = browser
        self.base_url = base_url
        self.frozen = frozen
        self.recorder: Recorder | None = None

    @contextmanager
    def open(
        self,
        *,
        viewport: Viewport = DESKTOP,
        masked: bool = False,
        fake_clock: bool = False,
        clock_at: datetime | None = None,
        touch: bool = False,
    ) -> Iterator[AppPage]:
        """A fresh visit, with no storage, cookies, cache or service worker of any earlier one.

        `masked` hides from the page that it is automated.
        `fake_clock` makes the page's clock one that can be advanced (it runs by itself too), from `clock_at` on.
        `touch`: a device with a touch screen, for which taps are.
        Raises InfraError when the browser makes no context."""
        recorder = self.recorder
        try:
            context = self.browser.new_context(
                viewport={"width": viewport.width, "height": viewport.height},
                locale="en-US",
                timezone_id="UTC",
                device_scale_factor=1,
                accept_downloads=True,
                service_workers="block",
                user_agent=self._plain_user_agent() if masked else None,
                permissions=PERMISSIONS,
                geolocation=PLACE,
                has_touch=touch,
                **(recorder.options() if recorder else {}),
            )
        except PlaywrightError as error:
            raise InfraError(f"the browser opens no page any more: {error.message}") from error
        visit = AppPage(context, self.base_url, self.frozen)
        try:
            try:
                visit.watch()
                if masked:
                    context.add_init_script(_HIDE_AUTOMATION)
                if fake_clock or clock_at:
                    context.clock.install(time=clock_at)
                if recorder:
                    recorder.begin(visit)
                context.new_page()
            except PlaywrightError as error:
                raise InfraError(f"the browser opens no page any more: {error.message}") from error
            try:
                yield visit
            finally:
                if recorder:
                    recorder.end(visit)
        finally:
            visit.leave()
            if recorder:
                recorder.closed()

    def answers(self, *, limit_s: float = 10) -> bool:
        """Whether the browser itself still works: tells a hung application from a hung machine."""
        try:
            with self.open() as visit, visit.within(limit_s):
                return bool(visit.page.evaluate("1 + 1") == 2)
        except (PlaywrightError, PageHung, InfraError):
            return False

    def _plain_user_agent(self) -> str:
        """What the same Chromium with a window would send."""
        major = self.browser.version.split(".")[0]
        system = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
        return f"{system} Chrome/{major}.0.0.0 Safari/537.36"


def _origin(url: str) -> str:
    """Scheme, host and port as a browser writes them (its scheme's own port is left out); "" for no address."""
    try:
        parts = urlsplit(url)
    except ValueError:  # what a page names as its source can be anything
        return ""
    standard = {"http": ":80", "https": ":443"}.get(parts.scheme, ":")
    return f"{parts.scheme}://{parts.netloc.removesuffix(standard)}"


def _keep(lines: list[str], line: str) -> None:
    _keep_one(lines, line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + "…")


def _keep_one(kept: list[Kept], one: Kept, most: int = MAX_LINES) -> None:
    if len(kept) < most:
        kept.append(one)
