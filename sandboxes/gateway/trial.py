"""One trial's side of the gateway: who may ask what, how a call is passed on, and what is written down."""

from __future__ import annotations

import asyncio
import hmac
import time
import traceback
from collections.abc import Mapping

import aiohttp
from aiohttp import HttpVersion11, web

from bench.errors import UsageError
from sandboxes.gateway import edits, refusals, routes
from sandboxes.gateway.call import REQUEST_HEADERS, Call
from sandboxes.gateway.edits import Refused
from sandboxes.gateway.ledger import Exhausted, Ledger
from sandboxes.gateway.policy import TrialPolicy
from sandboxes.gateway.prices import PriceTable
from sandboxes.gateway.records import Refusal, Tally, Writer
from sandboxes.gateway.relay import named, relay
from sandboxes.gateway.upstream import Route

HEADER = "x-cdb-gateway"
"""Stands in the gateway's own answers only: `budget`, `model`, `token`, `path`, `request`, `upstream` …"""
COUNT_CALLS_PER_REQUEST = 10
MOST_SMALL_RECORDS = 2000
"""Refused requests and probes are written down up to this number, and counted beyond: no agent fills the disk."""
MOST_BODY_BYTES = 4 * 1024 * 1024 * 1024
MOST_AT_ONCE = 64
MOST_HELD_BYTES = 256 * 1024 * 1024
"""Requests of one trial that are held in memory at the same time."""


class Trial:
    """Handles the requests of one trial's socket. Everything runs in one event loop."""

    def __init__(
        self, policy: TrialPolicy, upstreams: Mapping[str, Route], prices: PriceTable, token: str, writer: Writer
    ) -> None:
        self.policy = policy
        self._routes = upstreams
        self._told = {name: route.told for name, route in upstreams.items()}
        self._prices = prices
        self._token = token.encode()
        self._writer = writer
        self._ledger = Ledger(policy.caps)
        self._tally = Tally(policy.trial)
        self._tasks: set[asyncio.Task[object]] = set()
        self._closed = False
        self._fault = ""
        self._count = 0
        self._small_records = 0
        self._count_calls = 0
        self._body_bytes = 0
        self._held_bytes = 0
        self._waiting = 0
        self._waiting_since = 0.0
        self._waited_s = 0.0

    # ---- life ---------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        waited = self._waited_s + (time.monotonic() - self._waiting_since if self._waiting else 0.0)
        return self._tally.summary(
            requests=self._ledger.requests,
            exhausted=self._ledger.exhausted(),
            waited_s=round(waited, 3),
            in_flight=len(self._tasks),
            fault=self._fault,
        )

    async def close(self) -> dict[str, object]:
        """Refuse everything from now on, end what is under way, and write the summary."""
        self._closed = True
        under_way = list(self._tasks)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        summary = self.summary()
        try:
            self._writer.close(summary)
        except OSError as error:
            self._fault = self._fault or f"the records could not be finished: {error}"
            summary = self.summary()
        return summary

    # ---- one request --------------------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        headers = request.headers
        self._count += 1
        raw_path = request.raw_path
        ask = routes.parse(request.method, raw_path, anthropic="anthropic-version" in headers)
        call = Call(self._count, ask, request.method, raw_path.partition("?")[0])
        try:
            return await self._answer(call, request)
        except Refused as refused:
            call.model_asked = refused.model[:200]
            return self._refuse(call, refused.status, refused.code, str(refused))
        except asyncio.CancelledError:
            call.ended = "trial_ended" if self._closed else "client_gone"
            raise
        except (ConnectionError, web.RequestPayloadError):
            call.ended = "client_gone"
            raise ConnectionResetError("the client is gone") from None
        except Exception as error:  # noqa: BLE001  (a call's outermost edge: recorded, and other calls go on)
            traceback.print_exc()
            call.ended, call.note = "upstream_error", f"fault of the gateway: {type(error).__name__}: {error}"[:500]
            return self._own(call, 500, self._error(call, 500, call.note), code="fault")
        finally:
            self._finish(call)
            self._tasks.discard(task)

    async def _answer(self, call: Call, request: web.BaseRequest) -> web.StreamResponse:
        ask, headers = call.ask, request.headers
        if self._closed:
            raise Refused(403, "token", "the trial is over")
        if len(self._tasks) > MOST_AT_ONCE:
            raise Refused(503, "request", f"more than {MOST_AT_ONCE} requests at once")
        if "Upgrade" in headers:
            raise Refused(426, "path", "no upgrades here: use plain HTTP requests and server-sent events")
        if ask.kind == "probe":
            return self._own(call, 200, b'{"ok":true}')
        if not self._knows(request, ask.token):
            raise Refused(401, "token", "this trial's token is missing or wrong")
        if ask.kind == "refused":
            raise Refused(404, "path", ask.reason)
        if ask.kind == "models":
            return self._models(call)
        if self._fault:
            raise Refused(503, "record", self._fault)
        call.request_headers = {name: headers[name][:500] for name in REQUEST_HEADERS if name in headers}
        call.raw = await self._read(call, request)
        prepared = edits.prepare(call.raw, ask, self.policy, self._told)
        call.prepared, call.upstream = prepared, prepared.rule.upstream
        route = self._routes[prepared.rule.upstream]
        await self._admit(call, route)
        return await self._pass_on(call, request, route)

    def _knows(self, request: web.BaseRequest, in_query: str) -> bool:
        """Whether the trial's token is in any of the places where the four protocols put a key."""
        headers = request.headers
        scheme, _, bearer = headers.get("Authorization", "").partition(" ")
        told = [bearer.strip() if scheme.lower() == "bearer" else "", in_query]
        told += [headers.get(name, "") for name in ("x-api-key", "x-goog-api-key", "api-key")]
        found = [hmac.compare_digest(one.encode("utf-8", "replace"), self._token) for one in told]
        return any(found)

    async def _read(self, call: Call, request: web.BaseRequest) -> bytes:
        limit = self.policy.max_request_bytes
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(415, "request", "send the body uncompressed: the policy has to read it")
        if (request.content_length or 0) > limit:
            raise Refused(413, "request", f"a request may have {limit} bytes")
        if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= HttpVersion11:
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # the answer itself has not begun
        pieces = []
        async for chunk in request.content.iter_any():
            call.held_bytes += len(chunk)
            self._held_bytes += len(chunk)
            if call.held_bytes > limit:
                raise Refused(413, "request", f"a request may have {limit} bytes")
            if self._held_bytes > MOST_HELD_BYTES:
                raise Refused(503, "request", "too many large requests at once")
            pieces.append(chunk)
        return b"".join(pieces)

    def _models(self, call: Call) -> web.StreamResponse:
        names = [rule.asked for rule in self.policy.models if not set("*?[") & set(rule.asked)]
        body = refusals.models_body(call.ask.protocol, names, call.ask.model)
        if body is None:
            raise Refused(404, "model", f"model {call.ask.model!r} is not on this trial's list")
        return self._own(call, 200, body)

    # ---- budget and rate limit ----------------------------------------------------------------------------

    async def _admit(self, call: Call, route: Route) -> None:
        """Wait for room in the budget, then for the end of a rate limit. Raises Refused."""
        prepared = call.prepared
        assert prepared is not None
        caps = self.policy.caps
        if call.ask.kind == "count":
            self._count_calls += 1
            if caps.requests is not None and self._count_calls > caps.requests * COUNT_CALLS_PER_REQUEST:
                raise Refused(403, "budget", "too many token counts for this trial")
        else:
            call.price = prepared.rule.price or self._prices.find(prepared.sent, route.told.provider)
            if call.price is None and caps.usd is not None and caps.tokens is None:
                raise Refused(403, "budget", f"model {prepared.sent!r} has no known price, so a USD cap cannot hold")
            try:
                call.held = await self._ledger.reserve(prepared.sent, *edits.estimate(prepared, call.price))
            except Exhausted as error:
                limit = getattr(caps, error.which)
                raise Refused(403, "budget", f"this trial's budget is used up: {limit:g} {error.which}") from None
            finally:
                call.queued_s = time.monotonic() - call.began
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting += 1
        try:
            call.waited_s = await route.pause.wait()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited_s += time.monotonic() - self._waiting_since

    # ---- passing on ---------------------------------------------------------------------------------------

    async def _pass_on(self, call: Call, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        prepared = call.prepared
        assert prepared is not None
        idle_s = self.policy.idle_timeout_s if prepared.stream else self.policy.whole_timeout_s
        call.sent_at = time.monotonic()
        try:
            async with asyncio.timeout(idle_s):
                answer = await route.send(call.ask, prepared.sent, request.headers, prepared.body)
        except TimeoutError:
            call.ended, call.note = "idle_timeout", f"no answer within {idle_s:g} s"
            return self._own(call, 504, self._error(call, 504, call.note), code="upstream")
        except (aiohttp.ClientError, OSError, UsageError) as error:
            call.ended, call.note = "upstream_error", named(error, route)
            told = f"the model's provider could not be asked ({type(error).__name__})"
            return self._own(call, 502, self._error(call, 502, told), code="upstream")
        try:
            response = await relay(call, request, route, answer, idle_s)
        except BaseException:
            answer.close()  # the agent is gone or the trial over: end it upstream, too
            raise
        if call.ended == "ok":
            answer.release()
        else:
            answer.close()
        return response

    # ---- answers of our own and records -------------------------------------------------------------------

    def _refuse(self, call: Call, status: int, code: str, message: str) -> web.StreamResponse:
        refusal: Refusal = code  # type: ignore[assignment]
        call.refusal, call.ended, call.note = refusal, "refused", message[:500]
        response = self._own(call, status, self._error(call, status, message, code), code=code)
        if status in {413, 415, 426, 503}:
            response.force_close()
        return response

    def _error(self, call: Call, status: int, message: str, code: str = "") -> bytes:
        return refusals.error_body(call.ask.protocol, status, message, f"gateway_{code}" if code else "")

    def _own(self, call: Call, status: int, body: bytes, *, code: str = "") -> web.StreamResponse:
        call.status = status
        headers = {HEADER: code} if code else None
        return web.Response(status=status, body=body, content_type="application/json", headers=headers)

    def _finish(self, call: Call) -> None:
        """Settle and write down; runs to its end whatever happened, a cancellation included."""
        self._held_bytes -= call.held_bytes
        if call.reader is not None and call.ended in {"client_gone", "trial_ended"}:
            call.reader.end()
        if call.held is not None:
            usd, tokens = call.against_caps()
            self._ledger.settle(call.held, usd, tokens, counts=call.counts)
        record = call.record()
        self._tally.add(record)
        small = call.ask.kind in {"probe", "models", "refused"} or bool(call.refusal)
        self._small_records += small
        if small and self._small_records > MOST_SMALL_RECORDS:
            return
        try:
            if call.ask.kind == "model" and call.sent_at is not None:
                self._keep_bodies(call, record)
            self._writer.line(record)
        except OSError as error:
            self._fault = self._fault or f"a call could not be written down ({error}); free some disk"

    def _keep_bodies(self, call: Call, record: dict[str, object]) -> None:
        assert call.prepared is not None
        bodies = {"request_sha256": call.raw, "request_sent_sha256": call.prepared.body, "response_sha256": call.body}
        self._body_bytes += sum(map(len, bodies.values()))
        if self._body_bytes > MOST_BODY_BYTES:
            record["note"] = f"{record.get('note', '')}; bodies not kept: over {MOST_BODY_BYTES} bytes in this trial"
            return
        for name, body in bodies.items():
            record[name] = self._writer.body(body)
