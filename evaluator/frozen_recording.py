"""A store of frozen resources while it grows: what to fetch, what was kept, what could not be."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

from playwright.sync_api import Route

from evaluator.external_addresses import addresses_in_css
from evaluator.frozen_store import (
    KEPT_HEADERS,
    ORIGIN,
    FrozenEntry,
    FrozenIndex,
    FrozenStore,
    NotRecorded,
    keep_blob,
    write_index,
)
from sandboxes.open_fetch import Fetched, FetchFailed, FetchRefused, OpenFetch

MAX_URLS = 1_500
MAX_CASE_BYTES = 256 * 1024 * 1024
FETCHERS = 8
TRIES = 3
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass
class Recording:
    """The store while it grows. Several threads record into it; `_lock` guards index and look-up."""

    folder: Path
    index: FrozenIndex
    fetch: OpenFetch
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _given_up: dict[str, NotRecorded] = field(default_factory=dict)
    _bytes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index.allowed = sorted({*self.index.allowed, *(f"{host}:{port}" for host, port in self.fetch.allowed)})
        self._given_up = {one.url: one for one in self.index.not_recorded if one.kind == "refused"}
        self._store = FrozenStore(self.folder, self.index)

    def answer(self, route: Route, origin: str) -> bool:
        return self._store.answer(route, origin)

    def fetch_all(self, case: str, wanted: Mapping[str, Mapping[str, str]]) -> int:
        """Fetch addresses (with the headers to send) and all that fetched style sheets name; how many were new."""
        new = 0
        pending = {urldefrag(url).url: headers for url, headers in wanted.items()}
        while pending:
            todo = [(url, headers) for url, headers in pending.items() if self._claim(case, url)]
            pending = {}
            with ThreadPoolExecutor(max_workers=FETCHERS) as pool:
                for (url, headers), fetched in zip(todo, pool.map(self._get, todo), strict=True):
                    if self._keep(case, url, fetched, headers):
                        new += 1
                        assert isinstance(fetched, Fetched)
                        pending |= {inner: {**headers, "accept": "*/*"} for inner in _named_in(fetched)}
        return new

    def finish(self, case: str, start_digest: str) -> None:
        with self._lock:
            failed = any(one.kind == "failed" and case in one.cases for one in self._given_up.values())
            if not failed:
                self.index.done[case] = start_digest

    def write(self) -> None:
        with self._lock:
            self.index.not_recorded = list(self._given_up.values())
            write_index(self.folder, self.index)

    def told(self, case: str) -> str:
        with self._lock:
            kept = sum(case in entry.cases for entry in self.index.entries)
            missing = sum(case in one.cases for one in self._given_up.values())
        return f"{kept} resources recorded" + (f", {missing} not" if missing else "")

    def _claim(self, case: str, url: str) -> bool:
        """Whether an address has to be fetched; if not, the case is noted where it is known already."""
        with self._lock:
            known = self._store.find(url) or self._given_up.get(url)
            if known is None:
                return True
            if case not in known.cases:
                known.cases.append(case)
            return False

    def _get(self, todo: tuple[str, Mapping[str, str]]) -> Fetched | FetchRefused | FetchFailed:
        url, headers = todo
        for attempt in range(1, TRIES + 1):
            try:
                fetched = self.fetch.get(url, headers)
                if fetched.status not in TRANSIENT:
                    return fetched
                problem = FetchFailed(f"it answers {fetched.status}")
            except FetchRefused as error:
                return error
            except FetchFailed as error:
                problem = error
            time.sleep(0.5 * attempt if attempt < TRIES else 0)
        return problem

    def _keep(
        self, case: str, url: str, fetched: Fetched | FetchRefused | FetchFailed, sent: Mapping[str, str]
    ) -> bool:
        with self._lock:
            if self._store.find(url) or url in self._given_up:  # another task's thread was first
                return False
            count = sum(case in entry.cases for entry in self.index.entries)
            size = self._bytes.get(case, 0)
            if isinstance(fetched, Fetched) and (count >= MAX_URLS or size + len(fetched.body) > MAX_CASE_BYTES):
                caps = f"{MAX_URLS} addresses or {MAX_CASE_BYTES // 2**20} MiB"
                fetched = FetchRefused(f"a task's resources are capped at {caps}")
            if not isinstance(fetched, Fetched):
                kind = "refused" if isinstance(fetched, FetchRefused) else "failed"
                self._given_up[url] = NotRecorded(url=url, kind=kind, reason=str(fetched), cases=[case])
                return False
            self._bytes[case] = size + len(fetched.body)
            entry = _entry(self.folder, case, url, fetched, sent)
            self.index.entries.append(entry)
            self._store.add(entry)
            return True


def _entry(folder: Path, case: str, url: str, fetched: Fetched, sent: Mapping[str, str]) -> FrozenEntry:
    headers = {name: text for name, text in fetched.headers.items() if name in KEPT_HEADERS}
    allow = headers.get("access-control-allow-origin", "")
    if allow and allow == sent.get("origin"):
        headers["access-control-allow-origin"] = ORIGIN
    return FrozenEntry(
        url=url,
        final_url=urldefrag(fetched.url).url,
        status=fetched.status,
        headers=headers,
        sha256=keep_blob(folder, fetched.body),
        bytes=len(fetched.body),
        type=headers.get("content-type", "").partition(";")[0].strip().lower(),
        cases=[case],
    )


def _named_in(fetched: Fetched) -> Iterator[str]:
    """What a fetched style sheet names: fonts and pictures that a later state of the application may need."""
    if fetched.status == 200 and fetched.headers.get("content-type", "").startswith("text/css"):
        for address in addresses_in_css(fetched.body.decode("utf-8", "replace")):
            url = urljoin(fetched.url, address)
            if urlsplit(url).scheme in ("http", "https"):
                yield urldefrag(url).url
