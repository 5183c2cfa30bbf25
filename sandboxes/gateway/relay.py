"""Passing an answer on: byte for byte, as it comes, and broken off where it broke off."""

from __future__ import annotations

import asyncio
import time

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from sandboxes.gateway.call import RESPONSE_HEADERS, Call
from sandboxes.gateway.pause import retry_after_s
from sandboxes.gateway.secrecy import KeyMask
from sandboxes.gateway.upstream import NOT_RETURNED, Route
from sandboxes.gateway.usage import UsageReader


async def relay(
    call: Call, request: web.BaseRequest, route: Route, answer: aiohttp.ClientResponse, idle_s: float
) -> web.StreamResponse:
    """Bytes as they come, to the agent and to the reader; an answer that breaks off breaks off there, too."""
    call.upstream_status = call.status = answer.status
    _learn(call, route, answer)
    kind = answer.headers.get("Content-Type", "")
    encoding = answer.headers.get("Content-Encoding", "").lower().replace("identity", "")
    call.reader = UsageReader(call.ask.protocol, events="event-stream" in kind, encoding=encoding)
    mask = KeyMask(route.secrets())
    response = _Relayed(status=answer.status, reason=answer.reason, headers=_returned(answer, mask))
    watch = _Watch(answer, idle_s)
    try:
        await _write(response, b"", request)
        async for chunk in answer.content.iter_any():
            if call.first_byte_s is None and call.sent_at is not None:
                call.first_byte_s = round(time.monotonic() - call.sent_at, 4)
            passed = mask.feed(chunk)
            call.took(passed)
            call.reader.feed(chunk)
            if answer.content.at_eof():
                response.last = passed
                break
            await _write(response, passed)
            watch.touch()
        if held := mask.end():
            call.took(held)
            response.last += held
    except aiohttp.ClientError as error:
        call.ended = "idle_timeout" if watch.fired else "upstream_cut"
        call.note = f"silent for {idle_s:g} s" if watch.fired else named(error, route)
    finally:
        watch.stop()
        call.reader.end()
    if call.ended != "ok":
        if request.transport is not None:
            request.transport.abort()
    elif call.reader.error and answer.status < 400:
        call.ended = "upstream_error"
    return response


def _learn(call: Call, route: Route, answer: aiohttp.ClientResponse) -> None:
    """What the answer's head says about the upstream's state."""
    headers = answer.headers
    call.response_headers = {name: headers[name][:300] for name in RESPONSE_HEADERS if name in headers}
    told = retry_after_s(headers)
    if answer.status == 429 or (answer.status in {503, 529} and told is not None):
        call.retry_after = headers.get("Retry-After", "")[:100]
        length = route.pause.limited(told)
        call.note = f"later calls of {route.name} wait {length:.3g} s"
    elif answer.status < 400:
        route.pause.fine()


class _Relayed(web.StreamResponse):
    """An answer whose last piece goes out with its end, after the handler has returned: by then the call is settled
    and written down, so whoever has seen the end of an answer finds its record."""

    last = b""

    async def write_eof(self, data: bytes = b"") -> None:
        data, self.last = self.last or data, b""
        await super().write_eof(data)


async def _write(response: web.StreamResponse, data: bytes, request: web.BaseRequest | None = None) -> None:
    """Send to the agent (with `request`: the head first). Raises ConnectionResetError, which is not aiohttp's
    own: an error of the agent's connection must not look like one of the upstream's."""
    try:
        if request is not None:
            await response.prepare(request)
        if data:
            await response.write(data)
    except ConnectionError:
        raise ConnectionResetError("the client is gone") from None


class _Watch:
    """Ends the reading of an answer that has been silent for too long."""

    def __init__(self, answer: aiohttp.ClientResponse, idle_s: float) -> None:
        self.fired = False
        self._answer, self._idle_s = answer, idle_s
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_at(self._last + idle_s, self._look)

    def touch(self) -> None:
        self._last = self._loop.time()

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        due = self._last + self._idle_s
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._look)
            return
        self.fired = True
        self._answer.content.set_exception(aiohttp.ServerTimeoutError("the upstream fell silent"))


def _returned(answer: aiohttp.ClientResponse, mask: KeyMask) -> CIMultiDict[str]:
    headers = CIMultiDict[str]()
    for name, value in answer.headers.items():
        if name.lower() not in NOT_RETURNED:
            passed = mask.feed(value.encode("utf-8", "surrogateescape")) + mask.end()
            headers.add(name, passed.decode("utf-8", "surrogateescape"))
    return headers


def named(error: Exception, route: Route) -> str:
    """What went wrong, with no secret in it (a proxy's address may hold a password)."""
    text = f"{type(error).__name__}: {error}"[:500]
    for secret in route.secrets():
        text = text.replace(secret.decode("utf-8", "replace"), "***")
    return text
