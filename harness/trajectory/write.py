"""A trial's trajectory, from the gateway's records: the same for every agent, whatever it writes itself."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bench import __version__
from bench.atomic import write_bytes, write_json
from bench.errors import DataError
from bench.redact import Redactor
from harness.agents.agent import Agent
from harness.trajectory import anthropic, gemini, openai
from harness.trajectory.atif import (
    AgentInfo,
    Content,
    ContentPart,
    FinalMetrics,
    MediaSource,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)
from harness.trajectory.said import Call, Media, Message, Part, Reply, Result, Text, sse_events
from sandboxes.gateway.bodies import Bodies
from sandboxes.gateway.records import CallRecord, read_calls
from sandboxes.packs.store import need_pack

FILE = "trajectory.json"
MEDIA = "media"
NOTES = (
    "Made from the calls that went through the gateway. Side calls and sub-agents stand in the order of their calls."
)
_SUFFIXES = {
    "image/png": ("image", ".png"), "image/jpeg": ("image", ".jpg"), "image/gif": ("image", ".gif"),
    "image/webp": ("image", ".webp"), "audio/wav": ("audio", ".wav"), "audio/mpeg": ("audio", ".mp3"),
    "audio/mp4": ("audio", ".m4a"), "audio/aac": ("audio", ".aac"), "audio/ogg": ("audio", ".ogg"),
    "audio/flac": ("audio", ".flac"), "audio/webm": ("audio", ".webm"), "audio/aiff": ("audio", ".aiff"),
}  # fmt: skip
_ALIASES = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/x-m4a": "audio/mp4",
}


class Reader(NamedTuple):
    """How one protocol's bodies are read."""

    request: Callable[[dict[str, Any]], Iterator[Message | Result]]
    reply: Callable[[dict[str, Any]], Reply]
    streamed: Callable[[Iterable[dict[str, Any]]], Reply]


READERS = {
    "anthropic": Reader(anthropic.request, anthropic.reply, anthropic.streamed),
    "openai-chat": Reader(openai.chat_request, openai.chat_reply, openai.chat_streamed),
    "openai-responses": Reader(openai.responses_request, openai.responses_reply, openai.responses_streamed),
    "gemini": Reader(gemini.request, gemini.reply, gemini.streamed),
}


def write_trajectory(folder: Path, agent: AgentInfo, session: str, prompt: str, redactor: Redactor) -> Path:
    """Write `folder/trajectory.json` from the records in `folder`, without secrets; pictures and sounds go to
    `folder/media/`.

    `prompt` stands as the only step where the agent never called its model. Raises DataError for records that
    cannot be read.
    """
    teller = _Teller(folder)
    for call in sorted(read_calls(folder), key=lambda call: (call.started_at, call.n)):
        if call.kind == "model":
            teller.take(call)
    trajectory = Trajectory(
        session_id=session,
        agent=agent,
        steps=teller.steps or [Step(step_id=1, source="user", message=prompt)],
        notes=NOTES,
        final_metrics=teller.final(),
    )
    path = folder / FILE
    write_json(path, redactor.value(trajectory.model_dump(mode="json", exclude_none=True)))
    return path


def agent_info(agent: Agent) -> AgentInfo:
    """The agent as ATIF names it: the version of its command line, or ours for an agent of our own."""
    pack = need_pack(agent.pack).record.version if agent.pack else __version__
    return AgentInfo(name=agent.name, version=pack, model_name=agent.model)


class _Teller:
    """Turns calls into steps: what is new in a request since it was last heard, then the reply."""

    def __init__(self, folder: Path) -> None:
        self.steps: list[Step] = []
        self._folder = folder
        self._heard: Counter[Message] = Counter()
        self._open: dict[str, int] = {}
        """Tool call ids without a result yet, and the index of their step."""
        self._failed = 0
        self._calls: list[CallRecord] = []
        self._bodies: Bodies | None = None

    def take(self, call: CallRecord) -> None:
        self._calls.append(call)
        reader = READERS[call.protocol]
        request = _json(self._body(call.request_sha256))
        if request is not None:
            self._listen(call, list(reader.request(request)))
        raw = self._reply_body(call)
        if call.refusal or call.status >= 400 or not raw:
            self._failed += 1
            what = f"refused: {call.refusal}" if call.refusal else f"{call.ended}, status {call.status}"
            self._step(call, "system", f"[call {call.n} came to nothing: {what}]", extra={"call": call.n})
            return
        whole = None if call.stream else _json(raw)
        self._answer(call, reader.reply(whole) if whole is not None else reader.streamed(sse_events(raw)))

    def final(self) -> FinalMetrics:
        priced = [call.cost_usd for call in self._calls if not call.refusal]
        known = None if any(cost is None for cost in priced) else round(sum(cost or 0.0 for cost in priced), 9)
        used = [_metrics(call) for call in self._calls if call.usage]
        return FinalMetrics(
            total_prompt_tokens=sum(metrics.prompt_tokens or 0 for metrics in used),
            total_completion_tokens=sum(metrics.completion_tokens or 0 for metrics in used),
            total_cached_tokens=sum(metrics.cached_tokens or 0 for metrics in used),
            total_cost_usd=known,
            total_steps=len(self.steps) or 1,
            extra={"calls": len(self._calls), "failed_calls": self._failed},
        )

    def _listen(self, call: CallRecord, said: list[Message | Result]) -> None:
        now: Counter[Message] = Counter()
        for one in said:
            if isinstance(one, Result):
                self._observe(call, one)
                continue
            now[one] += 1
            if now[one] > self._heard[one]:
                self._heard[one] += 1
                self._step(call, "system" if one.role == "system" else "user", self._content(one.parts))

    def _observe(self, call: CallRecord, result: Result) -> None:
        """Results come again with every later request; each is told once, at the step that called for it."""
        known = result.call_id or next((key for key in self._open if key.endswith(f"#{result.name}")), "")
        index = self._open.pop(known, None)
        if index is None:
            return
        step = self.steps[index]
        observation = step.observation or Observation(results=[])
        observation.results.append(ObservationResult(source_call_id=known, content=self._content(result.parts)))
        self.steps[index] = step.model_copy(update={"observation": observation})

    def _answer(self, call: CallRecord, reply: Reply) -> None:
        calls = [self._named(call, number, made) for number, made in enumerate(reply.calls)]
        self._step(
            call,
            "agent",
            reply.text,
            model_name=call.model_answered or call.model_sent or None,
            reasoning_content=reply.reasoning or None,
            tool_calls=calls or None,
            metrics=_metrics(call),
            llm_call_count=1,
            extra={"call": call.n, "ended": call.ended} | ({"asked": call.model_asked} if call.model_asked else {}),
        )
        self._open |= {made.tool_call_id: len(self.steps) - 1 for made in calls}

    def _named(self, call: CallRecord, number: int, made: Call) -> ToolCall:
        """Where a protocol gives calls no id they get one that ends in the tool's name."""
        return ToolCall(
            tool_call_id=made.id or f"call-{call.n}-{number}#{made.name}",
            function_name=made.name,
            arguments=made.arguments,
        )

    def _step(self, call: CallRecord, source: str, message: Content, **more: Any) -> None:
        began = datetime.fromisoformat(call.started_at)
        at = began + timedelta(seconds=call.duration_s) if source == "agent" else began
        told = {"step_id": len(self.steps) + 1, "timestamp": at.isoformat(), "source": source, "message": message}
        self.steps.append(Step.model_validate({**told, **more}))

    def _content(self, parts: tuple[Part, ...]) -> Content:
        if all(isinstance(part, Text) for part in parts):
            return "\n".join(part.text for part in parts if isinstance(part, Text))
        return [self._part(part) for part in parts]

    def _part(self, part: Part) -> ContentPart:
        if isinstance(part, Text):
            return ContentPart(type="text", text=part.text)
        return self._kept(part)

    def _kept(self, media: Media) -> ContentPart:
        mime = _ALIASES.get(media.mime, media.mime)
        if not media.data or mime not in _SUFFIXES:
            what = media.address or f"{len(media.data)} bytes"
            return ContentPart(type="text", text=f"[{mime or 'file'}: {what}]")
        kind, suffix = _SUFFIXES[mime]
        name = f"{MEDIA}/{hashlib.sha256(media.data).hexdigest()[:16]}{suffix}"
        if not (self._folder / name).exists():
            write_bytes(self._folder / name, media.data)
        return ContentPart.model_validate({"type": kind, "source": MediaSource(media_type=mime, path=name)})

    def _body(self, digest: str) -> bytes:
        if not digest:
            return b""
        self._bodies = self._bodies or Bodies(self._folder)
        return self._bodies.read(digest)

    def _reply_body(self, call: CallRecord) -> bytes:
        raw = self._body(call.response_sha256)
        try:
            match call.response_headers.get("content-encoding", ""):
                case "gzip":
                    return gzip.decompress(raw)
                case "deflate":
                    return zlib.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self._folder}: the reply of call {call.n} cannot be unpacked: {error}") from error
        return raw


def _metrics(call: CallRecord) -> Metrics:
    usage = call.usage or {}
    cached, written = usage.get("cache_read", 0), usage.get("cache_write", 0)
    extra: dict[str, Any] = {
        "latency_s": call.duration_s,
        "first_byte_s": call.first_byte_s,
        "waited_s": call.waited_s,
    }
    extra |= {name: usage[name] for name in ("cache_write", "reasoning") if usage.get(name)}
    return Metrics(
        prompt_tokens=usage.get("input", 0) + cached + written if usage else None,
        completion_tokens=usage.get("output") if usage else None,
        cached_tokens=cached if usage else None,
        cost_usd=call.cost_usd,
        extra=extra | ({"usage_partial": True} if call.usage_partial else {}),
    )


def _json(raw: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(raw) if raw else None
    except ValueError:
        return None
    return told if isinstance(told, dict) else None
