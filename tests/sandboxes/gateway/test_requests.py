"""Reading and editing requests: any JSON at all is refused or passes with nothing but the policy's edits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateway_calls import policy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxes.gateway import edits, routes
from sandboxes.gateway.edits import Refused, prepare
from sandboxes.gateway.json_text import Document, NotEditable
from sandboxes.gateway.policy import ModelRule, Upstream
from sandboxes.gateway.usage import UsageReader

PATHS = ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/m:streamGenerateContent"]
WORDS = st.sampled_from([
    "model", "tools", "type", "name", "function", "web_search", "url", "source", "image", "image_url", "messages", "input",
    "contents", "parts", "stream", "stream_options", "include_usage", "service_tier", "speed", "tool_choice", "googleSearch",
    "functionDeclarations", "namespace", "environment", "max_tokens", "n", "generationConfig", "mcp_servers", "https://x", "m",
    "fileData", "inlineData", "plugins", "priority", "custom", "", "é\u0000\ud800",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=25
)
RULES = (ModelRule(asked="*", upstream="up"),)
UPSTREAMS = {"up": Upstream(base_url="http://x")}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(WORDS, VALUES, max_size=8), st.sampled_from(PATHS), st.booleans(), st.booleans())
def test_any_request_is_refused_or_passes_with_its_edits_only(
    told: dict[str, Any], path: str, hosted: bool, spaced: bool
) -> None:
    told["model"] = "m"
    raw = json.dumps(told, indent=1 if spaced else None).encode()
    try:
        ready = prepare(raw, routes.parse("POST", path), policy(models=RULES, hosted_tools=hosted), UPSTREAMS)
    except Refused as refused:
        assert refused.status in {400, 404}
        return
    usd, tokens = edits.estimate(ready, None)
    assert usd is None and tokens > 0
    if not ready.edits:
        assert ready.body == raw
        return
    sent = json.loads(ready.body)
    touched = {"tools", "tool_choice", "stream_options", "service_tier", "speed", "model"}
    for key, value in told.items():
        if key in touched or key not in sent:
            continue
        assert sent[key] == value
    gone = told.keys() - sent.keys()
    assert gone <= touched | {edit["what"] for edit in ready.edits}
    again = prepare(ready.body, routes.parse("POST", path), policy(models=RULES, hosted_tools=hosted), UPSTREAMS)
    assert again.edits == []


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(max_size=8), VALUES, max_size=8), st.sampled_from([None, 1, "\t"]))
def test_a_document_is_read_as_json_reads_it(told: dict[str, Any], indent: Any) -> None:
    text = json.dumps(told, indent=indent)
    document = Document(text.encode())
    assert {key: span.value for key, span in document.members.items()} == json.loads(text)
    assert document.bytes() == text.encode()
    for key in told:
        other = Document(text.encode())
        other.drop(key)
        assert json.loads(other.bytes()) == {k: v for k, v in json.loads(text).items() if k != key}
        other = Document(text.encode())
        other.put(key, '[1.50, "x"]')
        assert json.loads(other.bytes()) == json.loads(text) | {key: [1.5, "x"]}


@given(st.binary(max_size=60))
def test_bytes_that_are_no_document_are_refused(raw: bytes) -> None:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        with pytest.raises(NotEditable):
            Document(raw)


STREAM = (
    b'event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}'
    b'\n\nevent: ping\ndata: {"type": "ping"}\n\n: a comment\n\n'
    + 'data: {"type":"content_block_delta","delta":{"text":"é \\"usage\\": {\\"input_tokens\\": 99} 世"}}\n\n'.encode()
    + b'data: {"type":"message_delta",\ndata: "usage":{"output_tokens":7}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=10), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_is_read_the_same_however_it_is_cut_and_its_lines_end(cuts: list[int], end: bytes) -> None:
    stream = STREAM.replace(b"\n", end)
    reader = UsageReader("anthropic", events=True)
    places = sorted({0, *cuts, len(stream)})
    for begin, stop in zip(places, [*places[1:], len(stream)], strict=True):
        reader.feed(stream[begin:stop])
    reader.end()
    assert reader.tokens is not None and (reader.tokens.input, reader.tokens.output) == (9, 7)
    assert reader.finished and reader.model == "m" and not reader.blind


@given(st.lists(st.binary(max_size=200), max_size=5), st.sampled_from(["anthropic", "openai-chat", "openai-responses", "gemini"]),
       st.booleans(), st.sampled_from(["", "gzip", "deflate", "br"]))  # fmt: skip
def test_no_answer_whatsoever_upsets_the_reader(
    pieces: list[bytes], protocol: Any, events: bool, encoding: str
) -> None:
    reader = UsageReader(protocol, events=events, encoding=encoding)
    for piece in pieces:
        reader.feed(piece)
    reader.end()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from(["anthropic", "openai-chat", "openai-responses", "gemini"]))
def test_no_usage_whatsoever_upsets_the_reader_or_counts_below_nothing(usage: Any, protocol: Any) -> None:
    key = "usageMetadata" if protocol == "gemini" else "usage"
    names = (
        "input_tokens",
        "prompt_tokens",
        "promptTokenCount",
        "prompt_tokens_details",
        "cached_tokens",
        "output_tokens",
    )
    for told in (
        {key: usage},
        {key: dict.fromkeys(names, usage)},
        [{key: usage}],
        {"message": usage, "response": usage},
    ):
        reader = UsageReader(protocol, events=False)
        reader.feed(json.dumps(told).encode())
        reader.end()
        if reader.tokens is not None:
            assert all(value >= 0 for value in vars(reader.tokens).values())


def test_usage_of_a_document_that_was_cut_is_found() -> None:
    reader = UsageReader("gemini", events=False)
    reader.feed(b'[{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":1}},{"usageMetadata":{"promptTok')
    reader.end()
    assert reader.tokens is not None and reader.tokens.input == 5 and not reader.finished
