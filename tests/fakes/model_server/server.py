"""The scripted model server's HTTP side: four protocols, faults, and a record of everything it was sent.

`GET /_requests` gives what arrived (one object a request), `PUT /_scenario` replaces what is played. Every path also
exists behind `/_stage/NAME`: stages know nothing of each other, so that one server plays for many trials at once
(`PUT …/_scenario?key=KEY` opens one).
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes.model_server.protocols import ANTHROPIC, CHAT, GEMINI, RESPONSES, Protocol, Reply
from fakes.model_server.scenario import Fault, Scenario, choose, read_scenarios

GEMINI_PATH = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)\Z")
STAGE_PATH = re.compile(r"(?:/_stage/([A-Za-z0-9_-]+))?(/.*)\Z")
MAX_REQUEST_BYTES = 256 * 1024 * 1024


@dataclass
class Stage:
    """What is played, to whom who has the key, and what arrived."""

    scenarios: list[Scenario]
    key: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)


class ModelApp:
    """One server. With `folder`, each body goes to FOLDER/NNNN.body and the rest to FOLDER/requests.jsonl."""

    def __init__(self, told: dict[str, Any], folder: Path | None, *, key: str = "") -> None:
        self._stages = {"": Stage(read_scenarios(told), key)}
        self._folder = folder
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        found = STAGE_PATH.match(request.path)
        assert found is not None
        name, path = found[1] or "", found[2]
        if (request.method, path) == ("PUT", "/_scenario"):
            known = self._stages.get(name)
            key = request.query.get("key", known.key if known else "")
            self._stages[name] = Stage(read_scenarios(await request.json()), key)
            return web.json_response({"ok": True})
        stage = self._stages.get(name)
        if stage is None:
            return web.json_response(CHAT.error(404, f"no stage {name}"), status=404)
        if (request.method, path) == ("GET", "/_requests"):
            return web.json_response(stage.requests)
        return await self._play(request, path, stage)

    async def _play(self, request: web.Request, path: str, stage: Stage) -> web.StreamResponse:
        raw = await request.read()
        record = self._record(request, raw, stage)
        gemini = GEMINI_PATH.match(path)
        kind = request.method, gemini[2] if gemini else path
        if stage.key and stage.key not in json.dumps(record["headers"]):
            return web.json_response(CHAT.error(401, "the key is wrong"), status=401)
        match kind:
            case "POST", "/v1/messages":
                return await self._answer(request, raw, record, stage, ANTHROPIC)
            case "POST", "/v1/messages/count_tokens":
                return web.json_response({"input_tokens": max(1, len(raw) // 4)})
            case "POST", "/v1/chat/completions":
                return await self._answer(request, raw, record, stage, CHAT)
            case "POST", "/v1/responses":
                return await self._answer(request, raw, record, stage, RESPONSES)
            case "POST", "countTokens":
                return web.json_response({"totalTokens": max(1, len(raw) // 4)})
            case "POST", ("generateContent" | "streamGenerateContent") as verb:
                assert gemini is not None
                streamed = verb == "streamGenerateContent"
                return await self._answer(request, raw, record, stage, GEMINI, gemini[1], streamed)
            case "GET", "/v1/models" | "/v1beta/models":
                listed = stage.scenarios[0].models
                told = {
                    "data": [{"id": name} for name in listed],
                    "models": [{"name": f"models/{n}"} for n in listed],
                }
                return web.json_response({"object": "list", **told})
        return web.json_response(CHAT.error(404, f"no such path: {path}"), status=404)

    def _record(self, request: web.Request, raw: bytes, stage: Stage) -> dict[str, Any]:
        record: dict[str, Any] = {
            "n": len(stage.requests),
            "at": time.time(),
            "method": request.method,
            "path": request.raw_path,
            "headers": [[name, value] for name, value in request.headers.items()],
            "sha256": hashlib.sha256(raw).hexdigest(),
            "bytes": len(raw),
            "body": raw.decode("utf-8", "surrogateescape") if len(raw) < 1_000_000 and not self._folder else None,
            "ended": "",
        }
        stage.requests.append(record)
        if self._folder:
            (self._folder / f"{record['n']:04d}.body").write_bytes(raw)
            with (self._folder / "requests.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(record) + "\n")
        return record

    async def _answer(
        self,
        request: web.Request,
        raw: bytes,
        record: dict[str, Any],
        stage: Stage,
        protocol: Protocol,
        model: str = "",
        stream: bool | None = None,
    ) -> web.StreamResponse:
        body = json.loads(raw)
        model = model or str(body.get("model", ""))
        scenario = choose(stage.scenarios, model, raw)
        if scenario.models and model not in scenario.models:
            return web.json_response(protocol.error(404, f"The model {model!r} does not exist"), status=404)
        fault = scenario.next_fault(len(raw))
        if fault.status:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            told = protocol.error(fault.status, fault.message or f"scripted {fault.status}")
            text = fault.body or json.dumps(told)
            return web.Response(status=fault.status, text=text, content_type="application/json", headers=headers)
        parts = scenario.reply(raw, protocol.assistant_messages(body), protocol.offered(body))
        reply = Reply(scenario.model_answered or model, parts, scenario.usage, scenario.events)
        streamed = bool(body.get("stream")) if stream is None else stream
        record["ended"] = "unfinished"
        try:
            if not streamed:
                response = await self._whole(request, protocol.document(reply), fault)
            else:
                response = await self._stream(request, _frames(protocol, reply, body, request, fault), fault)
        except (asyncio.CancelledError, ConnectionError):
            record["ended"] = "client gone"
            raise
        record["ended"] = "whole"
        return response

    async def _whole(self, request: web.Request, document: dict[str, Any], fault: Fault) -> web.StreamResponse:
        if fault.slow_s:
            await asyncio.sleep(fault.slow_s)
        if fault.no_usage:
            document = {key: value for key, value in document.items() if key not in {"usage", "usageMetadata"}}
        content = json.dumps(document).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json", "request-id": "req_fake"})
        content = _packed(content, fault, response)
        if fault.hang_after >= 0:
            await asyncio.sleep(3600)
        response.content_length = len(content)
        await response.prepare(request)
        if fault.cut_after >= 0:
            await response.write(content[: len(content) // 2])
            _reset(request)
            return response
        await response.write(content)
        await response.write_eof()
        return response

    async def _stream(self, request: web.Request, frames: Iterator[bytes], fault: Fault) -> web.StreamResponse:
        kind = "application/json" if _json_array(request) else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind, "request-id": "req_fake"})
        if fault.encoding:
            whole = _packed(b"".join(frames), fault, response)
            frames = iter([whole])
        await response.prepare(request)
        for number, frame in enumerate(frames):
            if fault.cut_after == number:
                _reset(request)
                return response
            if fault.hang_after == number:
                await asyncio.sleep(3600)
            if fault.slow_s:
                await asyncio.sleep(fault.slow_s)
            size = fault.split or len(frame)
            for start in range(0, len(frame), size):
                await response.write(frame[start : start + size])
                if fault.split:
                    await asyncio.sleep(0)
        await response.write_eof()
        return response


def _frames(
    protocol: Protocol, reply: Reply, body: dict[str, Any], request: web.Request, fault: Fault
) -> Iterator[bytes]:
    """The stream's bytes, one event each. OpenAI chat sends usage only when asked for it, as the real one does."""
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    array = _json_array(request)
    if fault.huge:
        yield b": " + b"x" * fault.huge + b"\n\n"
    for number, (name, data) in enumerate(protocol.events(reply)):
        if protocol is CHAT and name == "usage":
            if wants_usage and not fault.no_usage:
                yield f"data: {data}\n\n".encode()
        elif array:
            yield ("[" if number == 0 else ",\r\n").encode() + data.encode()
        else:
            head = f"event: {name}\n" if name else ""
            yield f"{head}data: {data}\n\n".encode()
    if array:
        yield b"]"


def _json_array(request: web.Request) -> bool:
    """Gemini's stream without `alt=sse` is one JSON array that grows."""
    return ":streamGenerateContent" in request.path and request.query.get("alt") != "sse"


def _packed(content: bytes, fault: Fault, response: web.StreamResponse) -> bytes:
    if not fault.encoding:
        return content
    response.headers["Content-Encoding"] = fault.encoding
    return gzip.compress(content) if fault.encoding == "gzip" else zlib.compress(content)


def _reset(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
