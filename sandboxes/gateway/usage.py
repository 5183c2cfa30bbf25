"""Tokens of one call, read off the wire in four protocols, whatever of the answer arrived.

Every protocol counts differently; here `input` never holds cached tokens and `output` always holds reasoning:

| protocol | input is | cached tokens are | output |
| Anthropic | `input_tokens` | beside it | `output_tokens` |
| OpenAI chat, Responses | `prompt_tokens` − cached | inside `prompt_tokens` | `completion_tokens` |
| Gemini | `promptTokenCount` + tool use − cached | inside `promptTokenCount` | candidates + thoughts |
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandboxes.gateway.policy import Protocol

LONGEST_EVENT_BYTES = 32 * 1024 * 1024
"""An event longer than this is not looked into: memory stays bounded, usage of that event is lost and flagged."""


@dataclass
class Tokens:
    """`cache_write_1h` is part of `cache_write`, `reasoning` of `output`, `audio_input` of `input`."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output: int = 0
    reasoning: int = 0
    audio_input: int = 0
    web_searches: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output

    @property
    def prompt(self) -> int:
        """Everything that went in."""
        return self.input + self.cache_read + self.cache_write

    def record(self) -> dict[str, int]:
        return {key: value for key, value in vars(self).items() if value or key in {"input", "output"}}


def _count(value: Any) -> int:
    """A count as it may come: missing, null, a float, negative; never less than nothing."""
    return max(0, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _part(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _anthropic(tokens: Tokens, usage: dict[str, Any]) -> None:
    """Later events repeat or correct single fields; each is cumulative."""
    for key, field in (
        ("input_tokens", "input"),
        ("cache_read_input_tokens", "cache_read"),
        ("cache_creation_input_tokens", "cache_write"),
        ("output_tokens", "output"),
    ):
        if usage.get(key) is not None:
            setattr(tokens, field, _count(usage[key]))
    if "cache_creation" in usage:
        tokens.cache_write_1h = _count(_part(usage, "cache_creation").get("ephemeral_1h_input_tokens"))
    if "server_tool_use" in usage:
        tokens.web_searches = _count(_part(usage, "server_tool_use").get("web_search_requests"))


def _openai(tokens: Tokens, usage: dict[str, Any]) -> None:
    """Chat and Responses differ in names only."""
    prompt = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
    details = _part(usage, "prompt_tokens_details") or _part(usage, "input_tokens_details")
    cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    tokens.cache_read = min(_count(cached), prompt)
    tokens.cache_write = min(_count(details.get("cache_write_tokens")), prompt - tokens.cache_read)
    tokens.input = prompt - tokens.cache_read - tokens.cache_write
    tokens.audio_input = min(_count(details.get("audio_tokens")), tokens.input)
    tokens.output = _count(usage.get("completion_tokens", usage.get("output_tokens")))
    made = _part(usage, "completion_tokens_details") or _part(usage, "output_tokens_details")
    tokens.reasoning = min(_count(made.get("reasoning_tokens")), tokens.output)


def _gemini(tokens: Tokens, usage: dict[str, Any]) -> None:
    prompt = _count(usage.get("promptTokenCount")) + _count(usage.get("toolUsePromptTokenCount"))
    tokens.cache_read = min(_count(usage.get("cachedContentTokenCount")), prompt)
    tokens.input = prompt - tokens.cache_read
    tokens.reasoning = _count(usage.get("thoughtsTokenCount"))
    tokens.output = _count(usage.get("candidatesTokenCount")) + tokens.reasoning
    kinds = usage.get("promptTokensDetails")
    for kind in kinds if isinstance(kinds, list) else []:
        if isinstance(kind, dict) and kind.get("modality") == "AUDIO":
            tokens.audio_input = min(_count(kind.get("tokenCount")), tokens.input)


_READERS: dict[Protocol, Callable[[Tokens, dict[str, Any]], None]] = {
    "anthropic": _anthropic,
    "openai-chat": _openai,
    "openai-responses": _openai,
    "gemini": _gemini,
}
_USAGE_KEY: dict[Protocol, bytes] = {
    "anthropic": b'"usage"',
    "openai-chat": b'"usage"',
    "openai-responses": b'"usage"',
    "gemini": b'"usageMetadata"',
}
_LAST: dict[Protocol, tuple[bytes, ...]] = {
    "anthropic": (b"message_stop",),
    "openai-chat": (b"[DONE]",),
    "openai-responses": (b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
    "gemini": (b'"finishReason"',),
}
"""What stands in the last event of a stream that ended as it should."""
_MARKS = {
    protocol: re.compile(b"|".join(map(re.escape, (_USAGE_KEY[protocol], *_LAST[protocol], b'"error"'))))
    for protocol in _LAST
}
"""What makes an event worth parsing; all others pass unread."""


class UsageReader:
    """Fed with an answer's bytes as they pass, in pieces of any size; never raises over what they hold.

    `tokens` is None until a usage was seen. `finished`: a stream brought its last event (a document always has).
    """

    def __init__(self, protocol: Protocol, *, events: bool, encoding: str = "") -> None:
        self.tokens: Tokens | None = None
        self.model = ""
        self.finished = False
        self.error = ""
        """Type of an error that came inside a stream of status 200."""
        self.blind = ""
        """Why (part of) the answer could not be read, if so."""
        self._protocol = protocol
        self._events = events
        self._buffer = bytearray()
        self._decoder = _decoder(encoding)
        if encoding and self._decoder is None:
            self.blind = f"content-encoding {encoding}"

    def feed(self, chunk: bytes) -> None:
        if self._decoder is not None:
            try:
                chunk = self._decoder.decompress(chunk)
            except zlib.error as error:
                self.blind, self._decoder = f"compressed answer is damaged: {error}", None
        if self.blind:
            return
        before = len(self._buffer)
        self._buffer += chunk
        if self._events:
            self._take_events(max(0, before - 3))
        elif len(self._buffer) > LONGEST_EVENT_BYTES:
            del self._buffer[:-LONGEST_EVENT_BYTES]  # usage stands at the end in every protocol

    def end(self) -> None:
        """The answer is over, whole or not."""
        if self._events:
            self._buffer += b"\n\n"
            self._take_events()
        elif not self.blind:
            self._read_document(bytes(self._buffer))
        self._buffer.clear()

    def _take_events(self, since: int = 0) -> None:
        """Look through the whole events at the buffer's beginning; the rest waits for more. No event ends
        before `since`: a long one is not searched anew with every piece of it."""
        buffer = self._buffer
        cut = max(buffer.rfind(end, since) for end in (b"\n\n", b"\r\n\r\n", b"\r\r"))
        if cut < 0:
            if len(buffer) > LONGEST_EVENT_BYTES:
                self.blind = f"an event of more than {LONGEST_EVENT_BYTES} bytes"
                buffer.clear()
            return
        whole = bytes(buffer[:cut])
        del buffer[:cut]
        marks = _MARKS[self._protocol]
        if self.model and marks.search(whole) is None:
            return
        if b"\r" in whole:
            whole = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        for event in whole.split(b"\n\n"):
            if not self.model or marks.search(event):
                self._read_event(event)

    def _read_event(self, event: bytes) -> None:
        data = _event_data(event)
        if any(mark in event for mark in _LAST[self._protocol]):
            self.finished = True
        try:
            told = json.loads(data)
        except (ValueError, RecursionError):
            return  # `[DONE]`, or an event that was cut
        if isinstance(told, dict):
            self._read_object(told)

    def _read_object(self, told: dict[str, Any]) -> None:
        inner = _part(told, "message") or _part(told, "response")
        for place in (told, inner):
            usage = place.get("usageMetadata" if self._protocol == "gemini" else "usage")
            if isinstance(usage, dict):
                self._take(usage)
            model = place.get("modelVersion" if self._protocol == "gemini" else "model")
            if isinstance(model, str) and model:
                self.model = model
        error = told.get("error") or inner.get("error")
        if isinstance(error, dict):
            self.error = str(error.get("type") or error.get("code") or error.get("status") or "error")[:100]

    def _take(self, usage: dict[str, Any]) -> None:
        tokens = self.tokens or Tokens()
        _READERS[self._protocol](tokens, usage)
        self.tokens = tokens

    def _read_document(self, raw: bytes) -> None:
        try:
            told = json.loads(raw)
        except (ValueError, RecursionError):
            usage = _last_object(raw, _USAGE_KEY[self._protocol])  # cut, or an array that grew and was cut
            if usage is not None:
                self._take(usage)
            return
        self.finished = True
        for place in told if isinstance(told, list) else [told]:
            if isinstance(place, dict):
                self._read_object(place)


def _decoder(encoding: str) -> Any:
    """Decompresses a copy of the answer; None where we cannot (br, zstd) or need not."""
    if encoding in {"gzip", "x-gzip", "deflate"}:
        return zlib.decompressobj(wbits=47 if encoding != "deflate" else 15)
    return None


def _event_data(event: bytes) -> bytes:
    """An event's data, which may span several lines."""
    return b"\n".join(line[5:].lstrip(b" ") for line in event.split(b"\n") if line.startswith(b"data:"))


def _last_object(raw: bytes, key: bytes) -> dict[str, Any] | None:
    """The last whole object that is the value of `key` in a document that cannot be parsed as a whole."""
    at = len(raw)
    while (at := raw.rfind(key, 0, at)) >= 0:
        text = raw[at + len(key) : at + len(key) + 4096].decode("utf-8", "replace").lstrip(" \t\r\n:")
        try:
            value, _ = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None
