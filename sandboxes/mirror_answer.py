"""An answer of the mirror, whichever registry it stands for, and the line of its log."""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

from aiohttp import web

from sandboxes.mirror_store import Store
from sandboxes.mirror_upstream import Upstream

HEADER = "x-cdb-mirror"
"""Carried by an answer that is not the registry's own: `missing`, `outage` or `refused`."""


class Served(NamedTuple):
    """An answer and how it came about: `hit`, `miss`, `stale`, `-`; `note` goes to the log."""

    status: int
    body: bytes
    cache: str = "-"
    kind: str = "application/json"
    marker: str = ""
    note: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {HEADER: self.marker} if self.marker else {}

    def response(self, body: bytes) -> web.Response:
        return web.Response(status=self.status, body=body, content_type=self.kind, headers=self.headers)


def fault(status: int, marker: str, reason: str) -> Served:
    body = json.dumps({"error": f"mirror: {reason}"}).encode()
    return Served(status, body, marker=marker, note=reason)


class Log:
    """One JSON line for each answer (`sandboxes.mirror.MirrorEntry`)."""

    def __init__(self, file: BinaryIO, registry: str) -> None:
        self._file, self._registry = file, registry

    def write(
        self,
        request: web.Request,
        served: Served,
        body: bytes | int,
        began: float,
        *,
        client: str,
        kind: str,
        package: str,
        item: str,
    ) -> None:
        """`body`: what was sent, or how many bytes of it; `began`: monotonic time the request came."""
        entry = {
            "time": round(time.time(), 3), "registry": self._registry, "client": client, "method": request.method,
            "kind": kind, "package": package, "item": item, "path": request.rel_url.raw_path[:500],
            "status": served.status, "cache": served.cache, "bytes": body if isinstance(body, int) else len(body),
            "marker": served.marker, "note": served.note, "ms": round((time.monotonic() - began) * 1000, 1),
        }  # fmt: skip
        self._file.write(json.dumps(entry, ensure_ascii=True).encode() + b"\n")
        self._file.flush()


class RegistryApp(ABC):
    """Handles requests for one registry. One per process and registry; every answer goes to `log`.

    `fresh_s`: a kept document older than this is asked for again."""

    def __init__(self, upstream: Upstream, store: Store, log: Log, *, fresh_s: float) -> None:
        self._upstream = upstream
        self._store = store
        self._log = log
        self._fresh_s = fresh_s
        # One fetch at a time per document or file: later callers find it kept.
        self._fetching: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    @abstractmethod
    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request and write its line of the log."""


def own_address(request: web.Request, client: str) -> str:
    """The mirror as the caller `client` ("" for one without a name) addresses it, with a slash at the end."""
    return f"http://{request.host}/" + (f"~{quote(client)}/" if client else "")
