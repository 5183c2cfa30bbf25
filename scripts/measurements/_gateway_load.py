"""The two ends of the gateway's measurement, each a process of its own and as light as they can be.

`python -m scripts.measurements._gateway_load upstream` serves Anthropic-like streams and prints its port;
`… client` reads one JSON job from standard input and prints what it saw.

Call number n asks for usage that follows from n alone (`usage`), and breaks off when `cut` says so; so the sum
that the gateway must arrive at can be worked out by hand.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import NamedTuple

DELTAS = 10
_LENGTH = re.compile(rb"[Cc]ontent-[Ll]ength: *(\d+)")


class Usage(NamedTuple):
    input: int
    cache_write: int
    cache_read: int
    output: int


def cut(number: int, per_cent: int) -> bool:
    """Whether this call's stream breaks off: `per_cent` of each hundred calls, spread out."""
    return number * 37 % 100 < per_cent


def usage(number: int, *, broken: bool) -> Usage:
    """What call `number` reports; a broken stream has told only the first output token."""
    output = 1 if broken else 20 + number % 31
    return Usage(1000 + number % 97, number % 7 * 50, number % 13 * 100, output)


def request(number: int, per_cent: int, token: str) -> bytes:
    body = json.dumps({
        "model": "measured", "max_tokens": 100, "stream": True, "metadata": {"user_id": "m"},
        "messages": [{"role": "user", "content": "word " * 200}], "cut": per_cent, "call": number,
    }, separators=(",", ":")).encode()  # fmt: skip
    head = f"POST /v1/messages HTTP/1.1\r\nHost: m\r\nx-api-key: {token}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _event(kind: str, **more: object) -> bytes:
    data = json.dumps({"type": kind, **more})
    frame = f"event: {kind}\ndata: {data}\n\n".encode()
    return f"{len(frame):x}\r\n".encode() + frame + b"\r\n"


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_DELTA = _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "some words of an answer"})
_STOP = _event("message_stop") + b"0\r\n\r\n"


class _Upstream(asyncio.Protocol):
    """Answers each request with a stream, one write an event."""

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not found or length is None or len(rest) < int(length[1]):
            return
        body, self._buffer = rest[: int(length[1])], rest[int(length[1]) :]
        self._answer(json.loads(body))

    def _answer(self, told: dict[str, int]) -> None:
        broken = cut(told["call"], told["cut"])
        used = usage(told["call"], broken=False)
        write = self._transport.write
        first = {
            "input_tokens": used.input, "cache_creation_input_tokens": used.cache_write,
            "cache_read_input_tokens": used.cache_read, "output_tokens": 1,
        }  # fmt: skip
        write(_HEAD + _event("message_start", message={"model": "measured", "role": "assistant", "usage": first}))
        for _ in range(DELTAS // 2 if broken else DELTAS):
            write(_DELTA)
        if broken:
            self._transport.close()
            return
        write(_event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": used.output}))
        write(_STOP)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Upstream, "127.0.0.1", 0, backlog=256)
    print(json.dumps({"ready": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


class _Client(asyncio.Protocol):
    """Sends one request at a time and waits for the end of its stream, or of the connection."""

    def __init__(self) -> None:
        self._seen = b""
        self._done: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if self._seen.endswith(b"\r\n0\r\n\r\n"):
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end()

    def _end(self) -> None:
        seen, self._seen = self._seen, b""
        if self._done is not None and not self._done.done():
            self._done.set_result(seen)

    async def call(self, raw: bytes) -> bytes:
        assert self._transport is not None
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(raw)
        return await self._done


class Job(NamedTuple):
    """Calls `first` … `first + calls - 1` over `streams` connections to `address` (a port, or a socket's path)."""

    address: str
    token: str
    first: int
    calls: int
    streams: int
    cut: int


async def _work(job: Job) -> dict[str, object]:
    numbers = iter(range(job.first, job.first + job.calls))
    times: list[float] = []
    bad: list[str] = []

    async def one_stream() -> None:
        loop = asyncio.get_running_loop()
        client = _Client()
        for number in numbers:
            raw = request(number, job.cut, job.token)
            if not client.open:
                if job.address.isdigit():
                    _, client = await loop.create_connection(_Client, "127.0.0.1", int(job.address))
                else:
                    _, client = await loop.create_unix_connection(_Client, job.address)
            began = time.perf_counter()
            answer = await client.call(raw)
            times.append(time.perf_counter() - began)
            whole = answer.endswith(b"\r\n0\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 200") or whole == cut(number, job.cut):
                bad.append(f"call {number}: {answer[:300]!r}")

    began = time.perf_counter()
    await asyncio.gather(*(one_stream() for _ in range(job.streams)))
    return {"elapsed_s": time.perf_counter() - began, "times_s": times, "bad": bad[:5]}


if __name__ == "__main__":
    if sys.argv[1] == "upstream":
        asyncio.run(_serve())
    else:
        for line in sys.stdin:
            print(json.dumps(asyncio.run(_work(Job(**json.loads(line))))), flush=True)
