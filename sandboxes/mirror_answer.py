"""An answer of the mirror, whichever registry it stands for, and the line of its log."""

from __future__ import annotations

import json
import time
from typing import BinaryIO, NamedTuple

from aiohttp import web

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
