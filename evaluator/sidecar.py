"""A Chromium beside the application: its own container that shares nothing with it but the loopback.

In the container a Playwright server of exactly our client's version listens under a secret path behind a
unix socket in a folder that only this side-car sees; our playwright-python connects over it (`ws+unix:`,
which Playwright's web socket client takes as it is), so no port is opened and the whole Playwright API is
at hand. The application cannot reach the folder, the browser's processes or its memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright
from playwright.sync_api import Error as PlaywrightError
from pydantic import BaseModel, ConfigDict, Field

from bench.cache import cache_folder
from bench.errors import InfraError
from evaluator.browser import Answers, AppBrowser
from evaluator.replay.inside import teach
from evaluator.serve import ServedApp
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.sandbox import GIB, Limits, Mount, Sandbox, SandboxSpec
from sandboxes.socket_folder import socket_folder

BROWSER_LIMITS = Limits(memory_bytes=2 * GIB, pids=512)
"""Chromium dies below 128 processes or 320 MB; a page with media and a trace needs about 600 MB."""
SOCKETS = "/sockets"
LOG = "/tmp/browser.log"
START_S = 60.0
CONNECT_S = 20.0
POLL_S = 0.02
LOOK_S = 1.0
LOST_S = 15.0


class BrowserFacts(BaseModel):
    """What looked at the application, as it announced itself; part of an evaluation's settings."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    chromium: str
    playwright: str
    node: str
    sandbox: bool
    """Whether Chromium's own sandbox is on; off only where the engine does not allow it."""
    sandbox_off_because: str = Field(default="", alias="sandboxOffBecause")
    args: list[str] = Field(default_factory=list)


class SidecarBrowser(AppBrowser):
    """An `AppBrowser` that knows what it runs on."""

    def __init__(self, browser: Browser, base_url: str, facts: BrowserFacts, frozen: Answers | None = None) -> None:
        super().__init__(browser, base_url, frozen)
        self.facts = facts


@contextmanager
def playwright_driver() -> Iterator[Playwright]:
    """Playwright's own process (0.3 s to start), for any number of side-cars of the calling thread.

    Node keeps its compiled JavaScript in our cache folder, unless `$NODE_COMPILE_CACHE` names another.

    Raises InfraError when it does not start.
    """
    os.environ.setdefault("NODE_COMPILE_CACHE", str(cache_folder("node")))
    try:
        driver = sync_playwright().start()
    except (PlaywrightError, OSError) as error:
        raise InfraError(f"Playwright's driver did not start: {error}") from error
    try:
        teach(driver)
        yield driver
    finally:
        driver.stop()


@contextmanager
def browser_for(
    served: ServedApp,
    *,
    run: str,
    case: str,
    driver: Playwright | None = None,
    limits: Limits = BROWSER_LIMITS,
    frozen: Answers | None = None,
) -> Iterator[SidecarBrowser]:
    """A fresh browser in the application's network, its container removed afterwards.

    `frozen` answers what the application asks of other addresses. `driver` is the calling thread's from
    `playwright_driver`; without one it is started for this block.
    Raises InfraError when the browser does not start, cannot be connected to, or is lost within the block.
    """
    with contextlib.ExitStack() as held:
        used = driver or held.enter_context(playwright_driver())
        sockets = held.enter_context(socket_folder("web", writable=True))
        spec = SandboxSpec(
            role="browser",
            image=image_tag("browser"),
            run=run,
            case=case,
            limits=limits,
            mounts=[Mount(sockets, SOCKETS, read_only=False)],
            network_of=served.container_id,
        )
        browser: Browser | None = None
        try:
            with DockerSandbox(spec) as sandbox:
                sandbox.spawn(["node", "/opt/browser/serve_browser.js"], cwd="/", log=LOG)
                facts, path = _announced(sandbox, sockets)
                browser = _connect(used, sockets / "browser.sock", path)
                try:
                    yield SidecarBrowser(browser, served.url, facts, frozen)
                except PlaywrightError as error:
                    if not _lost(sandbox):
                        raise
                    raise InfraError(f"the browser was lost: {error.message.splitlines()[0]}") from error
        finally:
            if browser is not None:  # its container is gone by now, so that closing cannot wait for it
                with contextlib.suppress(PlaywrightError):
                    browser.close()


def _announced(sandbox: Sandbox, sockets: Path) -> tuple[BrowserFacts, str]:
    """Waits for the announcement: what runs, and the secret path of its server. Raises InfraError."""
    until = time.monotonic() + START_S
    look = time.monotonic() + LOOK_S
    told = sockets / "browser.json"
    while not told.exists():
        now = time.monotonic()
        if now > look:
            look = now + LOOK_S
            log = _log(sandbox)
            if "serve_browser:" in log or now > until:
                raise InfraError(f"the browser did not start ({START_S:.0f} s at most): {log[-1500:] or 'no output'}")
        time.sleep(POLL_S)
    facts = json.loads(told.read_bytes())
    return BrowserFacts.model_validate(facts), str(facts["wsPath"])


def _log(sandbox: Sandbox) -> str:
    try:
        return sandbox.read_file(LOG).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _lost(sandbox: Sandbox) -> bool:
    """Whether container or browser ended by themselves: the server ends when its Chromium does.

    The connection's own word comes too late: the error of a call may arrive before the news of the end.
    """
    try:
        return not sandbox.exec(["pgrep", "-f", "serve_browser.js"], deadline_s=LOST_S, cwd="/").ok
    except InfraError:
        return True


def _connect(driver: Playwright, socket: Path, path: str) -> Browser:
    try:
        return driver.chromium.connect(f"ws+unix://{socket}:{path}", timeout=CONNECT_S * 1000)
    except PlaywrightError as error:
        first = error.message.replace(path, "/…").splitlines()[0]
        raise InfraError(f"the browser cannot be connected to: {first}") from error
