"""`frozen`: recorded GETs are answered from the store, and nothing else is."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from bench.frozen_store import ORIGIN, FrozenEntry, FrozenIndex, FrozenStore, blob_path, byte_range, read_index
from sandboxes.egress.policy import EgressPolicy
from sandboxes.egress.records import EgressLine
from sandboxes.egress.wire import PIECE_BYTES, Head
from sandboxes.open_fetch import FetchRefused, address_parts


def secure_hosts(index: FrozenIndex) -> list[str]:
    """Hosts of every `https` address that is answered, ends of redirects too."""
    urls = {url for entry in index.entries for url in (entry.url, entry.final_url)}
    return sorted({address_parts(url)[1] for url in urls if urlsplit(url).scheme == "https"})


class FrozenWay:
    """Answers for one trial. Raises DataError for a store that cannot be read, OSError."""

    def __init__(self, policy: EgressPolicy) -> None:
        assert policy.store is not None
        index = read_index(policy.store)
        if index is None:
            raise FileNotFoundError(policy.store / "index.json")
        self._store = FrozenStore(policy.store, index)
        self._hosts = frozenset(secure_hosts(index))
        self._tls: ssl.SSLContext | None = None
        if policy.certificate and policy.key:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(policy.certificate, policy.key)

    def tls_for(self, host: str) -> ssl.SSLContext:
        """What ends a tunnel to a recorded host here. Raises FetchRefused."""
        if self._tls is None or host not in self._hosts:
            raise FetchRefused(f"nothing of https://{host} is recorded")
        return self._tls

    async def answer(self, head: Head, line: EgressLine, writer: asyncio.StreamWriter) -> None:
        """Answer one request for `line.url` and write into `line` what became of it. Raises FetchRefused."""
        if head.method not in ("GET", "HEAD"):
            raise FetchRefused(f"{head.method} is not answered: only GET was recorded")
        entry = self._store.find(line.url)
        if entry is None:
            raise FetchRefused("it is not among the recorded resources")
        if entry.url != entry.final_url != line.url:
            # What led there is not recorded, only where it led: relative addresses mean what they meant there.
            fields = {"location": entry.final_url, "content-length": "0"}
            await self._send(writer, line, 302, fields, iter(()))
            return
        path = blob_path(self._store.folder, entry.sha256)
        status, start, end = entry.status, 0, entry.bytes
        fields = _headers(entry, head)
        if status == 200 and (part := byte_range(head.get("range"), entry.bytes)):
            status, (start, end) = 206, part
            fields["content-range"] = f"bytes {start}-{end - 1}/{entry.bytes}"
        fields["content-length"] = str(end - start)
        body = _pieces(path, start, end) if head.method == "GET" else iter(())
        await self._send(writer, line, status, fields, body)

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        line: EgressLine,
        status: int,
        fields: dict[str, str],
        body: Iterator[bytes],
    ) -> None:
        told = "".join(f"{name}: {text}\r\n" for name, text in {**fields, "connection": "close"}.items())
        writer.write(f"HTTP/1.1 {status} Recorded\r\n{told}\r\n".encode("latin-1", "replace"))
        line.outcome, line.status, line.reason = "answered", status, ""
        for piece in body:
            writer.write(piece)
            await writer.drain()
            line.received_bytes += len(piece)
        await writer.drain()


def _headers(entry: FrozenEntry, head: Head) -> dict[str, str]:
    origin = head.get("origin") or "null"
    return {name: text.replace(ORIGIN, origin) for name, text in entry.headers.items()} | {"accept-ranges": "bytes"}


def _pieces(path: Path, start: int, end: int) -> Iterator[bytes]:
    with path.open("rb") as body:
        body.seek(start)
        left = end - start
        while left > 0 and (piece := body.read(min(left, PIECE_BYTES))):
            left -= len(piece)
            yield piece
