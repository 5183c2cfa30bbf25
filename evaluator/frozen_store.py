"""The store of frozen resources (`bench.frozen_store`) as the evaluator's browser is answered from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urldefrag

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Route

from bench import frozen_store
from bench.frozen_store import (
    KEPT_HEADERS,
    ORIGIN,
    FrozenEntry,
    FrozenIndex,
    NotRecorded,
    blob_path,
    byte_range,
    checked_index,
    keep_blob,
    read_index,
    steady,
    write_index,
)

__all__ = [
    "KEPT_HEADERS",
    "ORIGIN",
    "FrozenEntry",
    "FrozenIndex",
    "FrozenStore",
    "NotRecorded",
    "blob_path",
    "keep_blob",
    "open_store",
    "read_index",
    "steady",
    "write_index",
]

_MODULE = re.compile(r"(?:^|[;}\n])\s*(?:import\b(?!\s*\()|export\b)")
_DEFAULT_EXPORT = re.compile(r"\bexport\s+default\b|\bas\s+default\b|\bexport\s*\{\s*default\b")


class FrozenStore(frozen_store.FrozenStore):
    """A store that answers Playwright's routes."""

    def answer(self, route: Route, origin: str) -> bool:
        """Answer a request of a page of `origin` from the store; False when it cannot be."""
        request = route.request
        entry = self.find(request.url) if request.method in ("GET", "HEAD") else None
        if entry is None:
            return False
        body = blob_path(self.folder, entry.sha256).read_bytes() if request.method == "GET" else b""
        status, headers = entry.status, {k: v.replace(ORIGIN, origin) for k, v in entry.headers.items()}
        if entry.url != entry.final_url != urldefrag(request.url).url:
            body = _as_if_redirected(entry, body)
        elif status == 200 and (part := byte_range(request.headers.get("range", ""), len(body))):
            start, end = part
            headers["content-range"] = f"bytes {start}-{end - 1}/{len(body)}"
            status, body = 206, body[start:end]
        headers["accept-ranges"] = "bytes"
        # Without this header Playwright adds one that lets every page read the answer, as its server did not.
        headers.setdefault("access-control-allow-origin", "null")
        try:
            route.fulfill(status=status, headers=headers, body=body)
        except PlaywrightError:
            return True  # the page went away first
        return True


def open_store(folder: Path) -> FrozenStore:
    """Read a store and check every body against its hash. Raises UsageError for a wrong folder, DataError."""
    return FrozenStore(folder, checked_index(folder))


def _as_if_redirected(entry: FrozenEntry, body: bytes) -> bytes:
    """A body whose relative addresses mean what they meant where a redirect had led.

    A redirect itself cannot be answered: Playwright gives its target to no route. So a style sheet or a module is
    answered by one that loads the final address; everything else has no relative addresses that depend on its own.
    """
    target = json.dumps(entry.final_url)
    if entry.type == "text/css":
        return f"@import url({target});".encode()
    if entry.type.endswith(("javascript", "ecmascript")):
        text = body.decode("utf-8", "replace")
        if _MODULE.search(text):
            default = f"export {{ default }} from {target};" if _DEFAULT_EXPORT.search(text) else ""
            return f"export * from {target};{default}".encode()
    return body
