"""What an application did besides showing a page: requests, storage, downloads, further pages, the clipboard."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Download, Request, Response
from playwright.sync_api import Error as PlaywrightError

from evaluator.browser import MAX_LINES, AppPage
from evaluator.browser_tools.call import tool_call
from evaluator.browser_tools.results import CookieSeen, DownloadSeen, NetworkEntry, PopupSeen, StorageSeen
from evaluator.replay.stage import Stage

TEXT_CHARS = 4_000
MAX_REQUESTS = 1_000
_STORAGE = """async () => {
  const cut = kept => Object.fromEntries(Object.entries(kept).slice(0, 100).map(([k, v]) => [k, v.slice(0, 2000)]));
  const names = async list => { try { return await list(); } catch (error) { return []; } };
  return {local: cut({...localStorage}), session: cut({...sessionStorage}),
    databases: await names(async () => (await indexedDB.databases()).map(d => `${d.name} (version ${d.version})`)),
    caches: self.caches ? await names(() => caches.keys()) : []};
}"""


@dataclass
class NetworkLog:
    """The requests of a visit with what came of them. `follow` it before the first page opens."""

    entries: list[NetworkEntry] = field(default_factory=list)
    _open: dict[Request, NetworkEntry] = field(default_factory=dict)

    def follow(self, visit: AppPage) -> NetworkLog:
        visit.context.on("request", self._asked)
        visit.context.on("response", self._answered)
        visit.context.on("requestfailed", self._failed)
        return self

    @property
    def failed(self) -> list[NetworkEntry]:
        return [one for one in self.entries if one.failed]

    def _asked(self, request: Request) -> None:
        if len(self.entries) < MAX_REQUESTS and not request.url.startswith(("data:", "blob:")):
            entry = NetworkEntry(method=request.method, url=request.url[:2_000], kind=request.resource_type)
            self.entries.append(entry)
            self._open[request] = entry

    def _answered(self, answer: Response) -> None:
        """At its head: a body that nobody reads never ends."""
        if entry := self._open.get(answer.request):
            entry.status = answer.status
            entry.type = answer.headers.get("content-type", "")[:100]
            length = answer.headers.get("content-length", "")
            entry.bytes = int(length) if length.isdecimal() else None

    def _failed(self, request: Request) -> None:
        entry = self._open.pop(request, None)
        if entry:
            entry.failure = (request.failure or "failed")[:200]


@tool_call()
def storage(stage: Stage) -> StorageSeen:
    """Local and session storage, cookies, names of databases and caches."""
    kept: dict[str, Any] = stage.page.evaluate(_STORAGE)
    cookies = [
        CookieSeen(name=c.get("name", ""), value=c.get("value", "")[:2000], persists=c.get("expires", -1) > 0)
        for c in stage.visit.context.cookies()[:100]
    ]
    return StorageSeen(cookies=cookies, **kept)


@tool_call(30.0)
def downloads(stage: Stage) -> list[DownloadSeen]:
    """Every file the application gave, the latest last."""
    with tempfile.TemporaryDirectory(prefix="cdb-download-") as folder:
        return [_download(one, Path(folder) / str(n)) for n, one in enumerate(stage.visit.downloads[-10:])]


def _download(download: Download, path: Path) -> DownloadSeen:
    name = download.suggested_filename[:200]
    try:
        download.save_as(path)
    except PlaywrightError as error:
        return DownloadSeen(name=name, bytes=0, sha256="", text=None, failure=error.message.splitlines()[0][:200])
    size, digest = path.stat().st_size, hashlib.sha256()
    with path.open("rb") as file:
        start = file.read(TEXT_CHARS * 4)
        file.seek(0)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return DownloadSeen(name=name, bytes=size, sha256=digest.hexdigest(), text=_text(start))


def _text(start: bytes) -> str | None:
    """The beginning as text; None where it is none (a last character may be cut in two)."""
    for cut in range(4):
        try:
            text = start[: len(start) - cut].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
        return None if "\0" in text else text[:TEXT_CHARS]
    return None


@tool_call()
def popups(stage: Stage) -> list[PopupSeen]:
    """Every open page of the visit, the first one first."""
    current = stage.page
    return [
        PopupSeen(number=n, url=page.url[:500], title=page.title()[:200], current=page == current)
        for n, page in enumerate(p for p in stage.visit.context.pages[:MAX_LINES] if not p.is_closed())
    ]


@tool_call()
def close_popup(stage: Stage, number: int) -> list[PopupSeen]:
    """Close a further page as a user would; the one before it is looked at again. Raises ValueError."""
    pages = [page for page in stage.visit.context.pages if not page.is_closed()]
    if not 0 < number < len(pages):
        raise ValueError(f"there is no further page {number}; there are {len(pages) - 1} beside page 0")
    pages[number].close()
    return popups(stage)


@tool_call()
def clipboard(stage: Stage) -> str:
    """The text in the clipboard, what a user would paste."""
    return str(stage.page.evaluate("() => navigator.clipboard.readText()"))[:TEXT_CHARS]
