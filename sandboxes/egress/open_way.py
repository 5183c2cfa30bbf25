"""`open`: TLS tunnels and plain requests to public addresses, to checked ones only; TLS is never opened.

A name is resolved once, every address it has is checked (`sandboxes.open_fetch`), and the connection goes to the
address that was checked. A tunnel must begin with a TLS greeting for the very host that it was asked for: else a
tunnel to any host of a shared network could speak to a blocked one behind the same address.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import Any

from sandboxes.egress.policy import EgressPolicy, is_blocked, is_literal
from sandboxes.egress.records import EgressLine
from sandboxes.egress.wire import HOP_BY_HOP, MAX_HEAD_BYTES, PIECE_BYTES, Head, copy_body, read_greeting
from sandboxes.open_fetch import CONNECT_S, FetchFailed, FetchRefused, why_not_public

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class OpenWay:
    """Reaches out for one trial."""

    def __init__(self, policy: EgressPolicy) -> None:
        self._policy = policy
        self._allowed = frozenset(policy.allowed)

    async def tunnel(self, line: EgressLine, agent: Streams) -> None:
        """Carry a TLS connection to `line.host`. Raises FetchRefused, FetchFailed, TimeoutError, OSError."""
        far = await self._dial(line.host, line.port)
        try:
            agent[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            line.status = 200
            await agent[1].drain()
            async with asyncio.timeout(self._policy.head_s):
                greeting, name = await read_greeting(agent[0])
            self._check_name(line, name)
            line.outcome, line.reason = "answered", ""
            line.sent_bytes += len(greeting)
            far[1].write(greeting)
            await self._carry(line, agent, far)
        finally:
            await close(far[1])

    def _check_name(self, line: EgressLine, name: str) -> None:
        if is_blocked(name, self._policy.blocked):
            line.outcome = "blocked"
            raise FetchRefused(f"the TLS greeting in it is for {name}")
        if name.rstrip(".").lower() != line.host and not (is_literal(line.host) and not name):
            raise FetchRefused(f"the TLS greeting in it is for {name[:200] or 'no name'}")

    async def forward(self, head: Head, target: str, line: EgressLine, agent: Streams) -> None:
        """Pass one plain request on. Raises as `tunnel` does."""
        length = head.body_bytes
        far = await self._dial(line.host, line.port)
        try:
            host = f"[{line.host}]" if ":" in line.host else line.host
            kept = [(name, text) for name, text in head.headers if name.lower() not in HOP_BY_HOP]
            told = [("Host", host if line.port == 80 else f"{host}:{line.port}"), *kept, ("Connection", "close")]
            fields = "".join(f"{name}: {text}\r\n" for name, text in told)
            far[1].write(f"{head.method} {target} HTTP/1.1\r\n{fields}\r\n".encode("latin-1"))
            await self._carry(line, agent, far, None if length == 0 else head, whole=True)
        finally:
            await close(far[1])

    async def _carry(
        self, line: EgressLine, agent: Streams, far: Streams, head: Head | None = None, *, whole: bool = False
    ) -> None:
        """Copy both ways until both have ended, or nothing moved for `idle_s`. `whole`: one request, one answer."""
        moved_at = time.monotonic()

        def sent(size: int) -> None:
            nonlocal moved_at
            line.sent_bytes += size
            moved_at = time.monotonic()

        async def back() -> None:
            nonlocal moved_at
            while piece := await far[0].read(PIECE_BYTES):
                if line.outcome != "answered":
                    line.outcome, line.status, line.reason = "answered", _status(piece), ""
                agent[1].write(piece)
                await agent[1].drain()
                line.received_bytes += len(piece)
                moved_at = time.monotonic()
            if line.outcome != "answered":
                raise FetchFailed(f"{line.host} closed the connection without an answer")
            if agent[1].can_write_eof():
                agent[1].write_eof()

        async def out() -> None:
            if whole:
                if head is not None:
                    await copy_body(agent[0], far[1], head, sent)
                return
            while piece := await agent[0].read(PIECE_BYTES):
                far[1].write(piece)
                await far[1].drain()
                sent(len(piece))
            if far[1].can_write_eof():
                far[1].write_eof()

        async def watch() -> None:
            while (left := moved_at + self._policy.idle_s - time.monotonic()) > 0:
                await asyncio.sleep(left)
            raise TimeoutError(f"nothing moved for {self._policy.idle_s:g} s")

        tasks = [asyncio.create_task(one()) for one in (watch, back, out)]
        try:
            ends: set[asyncio.Future[Any]] = {tasks[0], asyncio.gather(*tasks[1:])}
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _dial(self, host: str, port: int) -> Streams:
        address = await self._checked(host, port)
        try:
            async with asyncio.timeout(CONNECT_S):
                return await asyncio.open_connection(address, port, limit=MAX_HEAD_BYTES)
        except (OSError, TimeoutError) as error:
            raise FetchFailed(f"{host} does not answer at {address}: {type(error).__name__}") from error

    async def _checked(self, host: str, port: int) -> str:
        addresses = await self._resolve(host, port)
        for address in addresses:
            if (address, port) in self._allowed:
                continue
            if why := why_not_public(address):
                raise FetchRefused(f"{host} is at {address}: {why}")
            if is_literal(host):
                raise FetchRefused("an address says not whose it is; ask by name")
        return addresses[0]

    async def _resolve(self, host: str, port: int) -> list[str]:
        if host in self._policy.names:
            return [self._policy.names[host]]
        if is_literal(host):
            return [host]
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise FetchFailed(f"{host} is not resolved: {error}") from error
        if not found:
            raise FetchFailed(f"{host} has no address")
        return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


def _status(piece: bytes) -> int:
    """The number in an answer's first line."""
    words = piece[:64].split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[1].isdigit() and len(words[1]) == 3 else 0


CLOSE_S = 10.0
"""For what is written and not yet taken."""


async def close(writer: asyncio.StreamWriter) -> None:
    """End a connection soon, whatever its other side does."""
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSE_S):
            await writer.wait_closed()
    writer.transport.abort()
