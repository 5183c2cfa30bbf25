"""The proxy itself: one request for each connection, each decided, logged and ended within bounds."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

from sandboxes.egress.frozen_way import FrozenWay
from sandboxes.egress.open_way import OpenWay, Streams, close
from sandboxes.egress.policy import EgressPolicy, is_blocked
from sandboxes.egress.records import EgressLine, EgressLog
from sandboxes.egress.wire import MAX_HEAD_BYTES, Head, read_head
from sandboxes.open_fetch import FetchFailed, FetchRefused, address_parts

_LOGGED_CHARS = 500
_BACKLOG = 128
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}\Z")
_END_S = 3.0


class EgressServer:
    """Listens on one trial's socket until it is closed. Belongs to one event loop."""

    def __init__(self, policy: EgressPolicy, log: EgressLog) -> None:
        self._policy = policy
        self._log = log
        self._frozen = FrozenWay(policy) if policy.mode == "frozen" else None
        self._open = OpenWay(policy)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, socket: Path) -> None:
        self._server = await asyncio.start_unix_server(self._accept, socket, limit=MAX_HEAD_BYTES, backlog=_BACKLOG)
        socket.chmod(0o666)  # the container's user connects; the folder keeps others out

    async def close(self) -> None:
        """Cut what is under way; each of it is still logged."""
        if self._server:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._policy.connections:
            self._log.sums.connections_dropped += 1
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        line = EgressLine(at=time.time(), method="", host="", port=0, outcome="refused")
        try:
            await self._converse(line, (reader, writer))
        except asyncio.CancelledError:
            line.reason = line.reason or "the trial ended"
        finally:
            if line.method or line.reason:  # else it was opened and closed without a word
                self._log.write(line)
            self._tasks.discard(task)
            await close(writer)

    async def _converse(self, line: EgressLine, agent: Streams) -> None:
        """Handle one connection; `line` tells what became of it, whatever happens."""
        try:
            async with asyncio.timeout(self._policy.head_s):
                head = await read_head(agent[0])
            if head is None:
                return
            if head.method == "CONNECT":
                await self._connect(head, line, agent)
            else:
                await self._request(head, line, agent)
        except FetchRefused as error:
            await self._turn_away(line, agent, 403, str(error))
        except (FetchFailed, OSError, EOFError, TimeoutError) as error:
            said = str(error) or type(error).__name__
            line.outcome = "failed" if line.outcome != "answered" else line.outcome
            await self._turn_away(line, agent, 502, said)
        except Exception as error:  # noqa: BLE001  (one ask must not end the proxy; it is told in its line)
            line.outcome, line.reason = (
                "failed",
                f"a fault of the proxy: {type(error).__name__}: {error}"[:_LOGGED_CHARS],
            )

    async def _connect(self, head: Head, line: EgressLine, agent: Streams) -> None:
        if not head.target.rpartition(":")[2].isdigit():
            raise FetchRefused("CONNECT needs HOST:PORT")
        self._note(line, head.method, f"https://{head.target}")
        line.url = ""
        if self._frozen is None:
            await self._open.tunnel(line, agent)
            return
        context = self._frozen.tls_for(line.host)
        agent[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        line.status = 200
        await agent[1].start_tls(context, ssl_handshake_timeout=self._policy.head_s)
        async with asyncio.timeout(self._policy.head_s):
            inner = await read_head(agent[0])
        if inner is None:
            raise FetchFailed("nothing was asked for in the tunnel")
        line.status = 0
        port = "" if line.port == 443 else f":{line.port}"
        self._note(line, inner.method, f"https://{line.host}{port}{inner.target}", origin=True)
        await self._from_store(self._frozen, inner, line, agent)

    async def _request(self, head: Head, line: EgressLine, agent: Streams) -> None:
        target = self._note(line, head.method, head.target)
        if not head.target.lower().startswith("http://"):
            raise FetchRefused("https is asked for through CONNECT")
        if self._frozen is None:
            await self._open.forward(head, target, line, agent)
        else:
            await self._from_store(self._frozen, head, line, agent)

    async def _from_store(self, frozen: FrozenWay, head: Head, line: EgressLine, agent: Streams) -> None:
        async with asyncio.timeout(self._policy.idle_s):
            await frozen.answer(head, line, agent[1])

    def _note(self, line: EgressLine, method: str, url: str, *, origin: bool = False) -> str:
        """Write into the line who is asked for what; the request target. Raises FetchRefused, for a blocked host
        too. `origin`: the host is known already, and the target came alone."""
        line.method, line.url = method, url
        scheme, host, port, target = address_parts(url)
        if origin and (host, port) != (line.host, line.port):
            raise FetchRefused("its target is no path")
        if not _HOST.match(host):
            raise FetchRefused("its host is no name and no address")
        line.host, line.port = host.rstrip(".").lower(), port
        if is_blocked(line.host, self._policy.blocked):
            line.outcome = "blocked"
            raise FetchRefused(f"{line.host} is blocked: the dataset or its answers lie there")
        default = port == (443 if scheme == "https" else 80)
        shown = f"[{line.host}]" if ":" in line.host else line.host
        line.url = f"{scheme}://{shown}{'' if default else f':{port}'}{target}"
        return target

    async def _turn_away(self, line: EgressLine, agent: Streams, status: int, reason: str) -> None:
        """Say no, where an answer has not begun."""
        line.reason = reason[:_LOGGED_CHARS]
        begun = line.status != 0
        line.status = line.status or status
        if begun or line.outcome == "answered":
            return
        body = f"cdb: {reason}\n".encode("utf-8", "replace")
        head = (
            f"HTTP/1.1 {status} {line.outcome.capitalize()}\r\nx-cdb-egress: {line.outcome}\r\n"
            f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        try:
            async with asyncio.timeout(1.0):
                agent[1].write(head.encode() + body)
                await agent[1].drain()
        except (OSError, TimeoutError):
            return  # nobody listens any more
