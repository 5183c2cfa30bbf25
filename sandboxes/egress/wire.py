"""Reading what an agent sends, without trust: the head of a request, its body's end, the name in a TLS greeting."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass

from sandboxes.open_fetch import FetchRefused

MAX_HEAD_BYTES = 32 * 1024
MAX_GREETING_BYTES = 64 * 1024
PIECE_BYTES = 64 * 1024
_METHOD = re.compile(r"[A-Z]{1,20}\Z")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "host"}
)
"""Headers that end here; `host` is written anew from the address."""


@dataclass(frozen=True)
class Head:
    """The head of an HTTP/1 request. Header names as they came."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return next((text for key, text in self.headers if key.lower() == name), "")

    @property
    def body_bytes(self) -> int | None:
        """How long the body is; None when it comes in chunks. Raises FetchRefused where two readers could differ."""
        lengths = {text for key, text in self.headers if key.lower() == "content-length"}
        coding = [text.strip().lower() for key, text in self.headers if key.lower() == "transfer-encoding"]
        if coding:
            if coding != ["chunked"] or lengths:
                raise FetchRefused("its body has no certain end")
            return None
        if len(lengths) > 1 or not all(re.fullmatch(r"[0-9]{1,15}", text.strip()) for text in lengths):
            raise FetchRefused("its body has no certain end")
        return int(lengths.pop()) if lengths else 0


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next request's head; None when the connection ended before one began.

    Raises FetchRefused for anything that is no plain HTTP/1 head. The reader's limit is MAX_HEAD_BYTES.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise FetchRefused("the request ended within its head") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise FetchRefused(f"its head is longer than {MAX_HEAD_BYTES} bytes") from error
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    match first.split(" "):
        case [method, target, "HTTP/1.1" | "HTTP/1.0"] if _METHOD.match(method) and target:
            return Head(method, target, tuple(map(_header, lines)))
    raise FetchRefused("it does not begin as a request to a proxy does")


def _header(line: str) -> tuple[str, str]:
    name, colon, text = line.partition(":")
    if not colon or not _NAME.match(name) or _CONTROL.search(text):
        raise FetchRefused("a header of it is malformed")
    return name, text.strip()


async def copy_body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: Head, passed: Callable[[int], None]
) -> None:
    """Pass on a request's body and not a byte beyond its end; `passed` is told the size of each piece.

    Raises FetchRefused.
    """
    left = head.body_bytes
    try:
        if left is not None:
            await _copy(reader, writer, left, passed)
        else:
            await _copy_chunks(reader, writer, passed)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise FetchRefused("the request ended within its body, or a line of it is too long") from error


async def _copy_chunks(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: Callable[[int], None]
) -> None:
    while True:
        line = await reader.readuntil(b"\r\n")
        if not (match := re.fullmatch(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[^\r\n]*)?\r\n", line)):
            raise FetchRefused("a chunk of its body is malformed")
        size = int(match[1], 16)
        writer.write(b"%x\r\n" % size)
        if size == 0:
            break
        await _copy(reader, writer, size, passed)
        if await reader.readexactly(2) != b"\r\n":
            raise FetchRefused("a chunk of its body is malformed")
        writer.write(b"\r\n")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers end here
    writer.write(b"\r\n")
    await writer.drain()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int, passed: Callable[[int], None]
) -> None:
    while left:
        piece = await reader.read(min(left, PIECE_BYTES))
        if not piece:
            raise FetchRefused("the request ended within its body")
        writer.write(piece)
        await writer.drain()
        passed(len(piece))
        left -= len(piece)


async def read_greeting(reader: asyncio.StreamReader) -> tuple[bytes, str]:
    """The bytes of a TLS ClientHello (RFC 8446, 4.1.2) and the server name in it, empty where it has none.

    Raises FetchRefused for anything else.
    """
    raw = hello = b""
    while len(hello) < 4 or len(hello) < 4 + int.from_bytes(hello[1:4], "big"):
        try:
            record = await reader.readexactly(5)
            length = int.from_bytes(record[3:5], "big")
            if record[0] != 22 or record[1] != 3 or len(raw) + length > MAX_GREETING_BYTES:
                raise FetchRefused("a tunnel carries nothing but TLS")
            body = await reader.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise FetchRefused("the tunnel ended before its TLS greeting") from error
        raw, hello = raw + record + body, hello + body
        if hello[:1] != b"\x01":
            raise FetchRefused("a tunnel carries nothing but TLS")
    try:
        return raw, _server_name(hello[4 : 4 + int.from_bytes(hello[1:4], "big")])
    except (IndexError, UnicodeDecodeError) as error:
        raise FetchRefused("its TLS greeting is malformed") from error


def _server_name(hello: bytes) -> str:
    at = 34
    at += 1 + hello[at]  # session id
    at += 2 + int.from_bytes(hello[at : at + 2], "big")  # cipher suites
    at += 1 + hello[at]  # compression methods
    end = at + 2 + int.from_bytes(hello[at : at + 2], "big")
    at += 2
    while at + 4 <= min(end, len(hello)):
        kind, length = int.from_bytes(hello[at : at + 2], "big"), int.from_bytes(hello[at + 2 : at + 4], "big")
        if kind == 0:
            name_length = int.from_bytes(hello[at + 7 : at + 9], "big")
            return hello[at + 9 : at + 9 + name_length].decode("ascii")
        at += 4 + length
    return ""
