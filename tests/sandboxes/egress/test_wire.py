"""What the proxy reads of an agent's bytes, and what it will not take for a request."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest

from sandboxes.egress.wire import MAX_HEAD_BYTES, Head, read_greeting, read_head
from sandboxes.open_fetch import FetchRefused


def reading(raw: bytes, read: Any) -> Any:
    async def run() -> Any:
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
        reader.feed_data(raw)
        reader.feed_eof()
        return await read(reader)

    return asyncio.run(run())


def greeting(name: str | None) -> bytes:
    """What a real TLS client sends first."""
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


@pytest.mark.parametrize("name", ["cdn.example.com", "a.b", None])
def test_the_name_in_a_tls_greeting_is_read_and_its_bytes_kept(name: str | None) -> None:
    raw = greeting(name)
    assert reading(raw + b"more", read_greeting) == (raw, name or "")


def test_a_greeting_in_several_records_is_put_together() -> None:
    raw = greeting("cdn.example.com")
    hello = raw[5:]
    pieces = [hello[:1], hello[1:40], hello[40:]]
    split = b"".join(raw[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)
    assert reading(split, read_greeting) == (split, "cdn.example.com")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: github.com\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x16\x03\x01\x00",
        b"\x16\x03\x01\x00\x04\x01\x00\x00\x00",
        b"\x16\x03\x01\xff\xff" + b"\x01\xff\xff\xff" + b"a" * 65531 + b"\x16\x03\x01\xff\xff",
        greeting("cdn.example.com")[:-1],
    ],
)
def test_what_is_no_whole_tls_greeting_is_refused(raw: bytes) -> None:
    with pytest.raises(FetchRefused):
        reading(raw, read_greeting)


def test_a_head_is_read_as_it_came() -> None:
    raw = b"POST http://a.test/x?y=1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nX-Empty:\r\n\r\nabc"
    head = reading(raw, read_head)
    assert head == Head("POST", "http://a.test/x?y=1", (("Host", "a.test"), ("Content-Length", "3"), ("X-Empty", "")))
    assert head.body_bytes == 3
    assert reading(b"", read_head) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\nHost: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a",
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET /" + b"a" * MAX_HEAD_BYTES + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_a_head_that_two_readers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises(FetchRefused):
        reading(raw, read_head)


@pytest.mark.parametrize(
    "headers",
    [
        (("Content-Length", "3"), ("Transfer-Encoding", "chunked")),
        (("Content-Length", "3"), ("Content-Length", "4")),
        (("Content-Length", "-1"),),
        (("Transfer-Encoding", "gzip, chunked"),),
    ],
)
def test_a_body_without_a_certain_end_is_refused(headers: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(FetchRefused):
        _ = Head("POST", "/", headers).body_bytes
