"""What agent and provider say to each other passes unchanged, in four protocols."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest
from fakes.model_server import ModelServer, say
from gateway_calls import CHAT, GEMINI, GEMINI_STREAM, KEY, MESSAGES, RESPONSES, Agent, body

from sandboxes.gateway.records import read_body

Play = Callable[..., ModelServer]
OpenTrial = Callable[..., Agent]
ALL = [MESSAGES, CHAT, RESPONSES, GEMINI, GEMINI_STREAM]


def direct(server: ModelServer, path: str, raw: bytes) -> bytes:
    import urllib.request

    request = urllib.request.Request(server.address + path, data=raw, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


@pytest.mark.parametrize("path", ALL)
@pytest.mark.parametrize("streamed", [True, False])
def test_answers_are_the_providers_byte_for_byte(
    play: Play, open_trial: OpenTrial, path: str, streamed: bool
) -> None:
    server = play(usage={"input": 7, "output": 5})
    raw = json.dumps(
        body(path, stream=streamed, **({"stream_options": {"include_usage": True}} if path == CHAT else {}))
    )
    agent = open_trial()
    answer = agent.ask(path, raw.encode())
    assert answer.status == 200
    assert answer.body == direct(server, path, raw.encode())
    call = agent.last()
    assert call.usage is not None and (call.usage["input"], call.usage["output"]) == (7, 5)
    assert not call.usage_partial and call.edits == [] and call.ended == "ok"
    assert call.model_answered == "m"
    assert read_body(agent.folder, call.response_sha256) == answer.body
    assert read_body(agent.folder, call.request_sha256) == raw.encode()


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES, GEMINI])
def test_c37_unknown_fields_and_headers_arrive_untouched(play: Play, open_trial: OpenTrial, path: str) -> None:
    server = play()
    tool = {"name": "t", "input_schema": {}, "defer_loading": True, "x": 1.0}
    tool = {"functionDeclarations": [tool]} if path == GEMINI else tool | {"type": "custom"}
    raw = (
        b' {"context_management" : {"edits":[{"type":"clear_tool_uses_20250919"}]},\r\n "f": 1.50, "e": "\\u00e9\\/",'
        + (json.dumps(body(path, tools=[tool], unheard_of={"deep": [1, None]}))[1:].encode())
    )
    headers = {
        "anthropic-beta": "context-management-2025-06-27,fine-grained-tool-streaming-2025-05-14",
        "anthropic-version": "2023-06-01",
        "X-Stainless-Timeout": "600",
        "X-Unheard-Of": 'a, b;c="d"',
        "User-Agent": "agent/1.0",
    }
    assert open_trial().ask(path, raw, headers=headers).status == 200
    (seen,) = server.requests()
    assert seen["sha256"] == hashlib.sha256(raw).hexdigest()
    arrived = {name.lower(): value for name, value in seen["headers"]}
    for name, value in headers.items():
        assert arrived[name.lower()] == value
    assert arrived["x-api-key"] == KEY


@pytest.mark.parametrize("path", ALL)
def test_c37_a_400_comes_back_verbatim(play: Play, open_trial: OpenTrial, path: str) -> None:
    told = '{"error" : {"message":"prompt is too long: 215000 tokens > 200000", "x":1.0}}\n'
    play(faults=[{"status": 400, "body": told}])
    agent = open_trial()
    answer = agent.ask(path)
    assert (answer.status, answer.body.decode()) == (400, told)
    assert agent.last().ended == "ok" and agent.last().cost_usd == 0.0
    assert agent.close().ending == "rejected"


def test_an_edit_leaves_every_other_byte_as_it_was(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    raw = b'{"z": 1.50,"model":"m", "stream" : true,"messages":[{"role":"user","content":"caf\\u00e9 \xe4\xb8\x96 1E5"}],"n":1}'
    assert agent.ask(CHAT, raw).status == 200
    (seen,) = server.requests()
    assert seen["body"].encode() == (
        b'{"z": 1.50,"model":"m","stream" : true,"messages":[{"role":"user","content":"caf\\u00e9 \xe4\xb8\x96 1E5"}],"n":1,'
        b'"stream_options":{"include_usage":true}}'
    )
    call = agent.last()
    assert call.edits == [{"edit": "include_usage", "what": "stream_options.include_usage"}]
    assert call.usage is not None
    assert read_body(agent.folder, call.request_sent_sha256) == seen["body"].encode()
    assert read_body(agent.folder, call.request_sha256) == raw


def test_counting_tokens_is_passed_on_and_is_no_request(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    assert agent.ask("/v1/messages/count_tokens").json()["input_tokens"] > 0
    assert agent.ask("/v1beta/models/m:countTokens").json()["totalTokens"] > 0
    assert [r["path"] for r in server.requests()] == ["/v1/messages/count_tokens", "/v1beta/models/m:countTokens"]
    summary = agent.close()
    assert (summary.calls, summary.requests, summary.cost_usd) == (0, 0, 0.0)
    assert len(agent.calls("count")) == 2


@pytest.mark.parametrize(("method", "path"), [("HEAD", "/"), ("HEAD", "/api/hello"), ("GET", "/api/hello")])
def test_probes_are_answered_here_without_a_token(play: Play, open_trial: OpenTrial, method: str, path: str) -> None:
    server = play()
    assert open_trial().ask(path, method=method, token="").status == 200
    assert server.requests() == []


def test_the_models_list_is_the_trials(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    assert [m["id"] for m in agent.ask("/v1/models", method="GET").json()["data"]] == ["m"]
    named = agent.ask("/v1/models", method="GET", headers={"anthropic-version": "2023-06-01"}).json()
    assert named["data"][0]["type"] == "model" and named["has_more"] is False
    assert agent.ask("/v1beta/models", method="GET").json()["models"][0]["name"] == "models/m"
    assert agent.ask("/v1/models/m", method="GET").json()["id"] == "m"
    assert agent.ask("/v1/models/other", method="GET").status == 404
    assert server.requests() == []


@pytest.mark.parametrize("split", [1, 2, 3, 7])
@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES, GEMINI_STREAM])
def test_pieces_cut_anywhere_make_no_difference(play: Play, open_trial: OpenTrial, path: str, split: int) -> None:
    play(
        turns=[[say('é世界🌱 "usage": {"output_tokens": 9} ' * 3)]],
        usage={"input": 11, "output": 13},
        faults=[{"split": split}],
    )
    agent = open_trial()
    answer = agent.ask(path, stream=True)
    assert "世界" in answer.body.decode()
    call = agent.last()
    assert call.usage is not None and (call.usage["input"], call.usage["output"]) == (11, 13)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("streamed", [True, False])
def test_compressed_answers_pass_and_their_usage_is_read(
    play: Play, open_trial: OpenTrial, encoding: str, streamed: bool
) -> None:
    play(faults=[{"encoding": encoding}], usage={"input": 11, "output": 13})
    agent = open_trial()
    answer = agent.ask(MESSAGES, stream=streamed)
    assert answer.headers["content-encoding"] == encoding
    assert agent.last().usage == {"input": 11, "output": 13}


def test_a_five_megabyte_event_passes(play: Play, open_trial: OpenTrial) -> None:
    play(turns=[[say("x" * 5_000_000)]], events=1, usage={"input": 1, "output": 2})
    agent = open_trial()
    answer = agent.ask(MESSAGES, stream=True)
    assert len(answer.body) > 5_000_000
    assert agent.last().usage == {"input": 1, "output": 2}


def test_a_large_request_passes_and_a_larger_one_is_refused(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial(max_request_bytes=3_000_000)
    raw = json.dumps(body(MESSAGES, system="y" * 2_900_000)).encode()
    assert agent.ask(MESSAGES, raw).status == 200
    assert server.requests()[0]["sha256"] == hashlib.sha256(raw).hexdigest()
    assert agent.ask(MESSAGES, json.dumps(body(MESSAGES, system="y" * 3_100_000)).encode()).status == 413
    assert len(server.requests()) == 1


def test_what_media_arrived_is_counted(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": picture}]}
    content = [{"type": "image", "source": picture}, {"type": "document", "source": picture}, result]
    agent.ask(MESSAGES, body(MESSAGES) | {"messages": [{"role": "user", "content": content}]})
    assert agent.last(calls=1).media == {"image": 2, "document": 1}
    parts = [
        {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}},
        {"inline_data": {"mime_type": "video/mp4"}},
    ]
    agent.ask(GEMINI, {"contents": [{"parts": parts}]})
    assert agent.last(calls=2).media == {"audio": 1, "video": 1}
    url = "data:image/png;base64,iVBORw0KGgo="
    agent.ask(
        CHAT,
        body(CHAT) | {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]},
    )
    agent.ask(
        RESPONSES,
        body(RESPONSES) | {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]},
    )
    assert agent.last(calls=4).media == {"image": 1}
    assert agent.close().media == {"image": 4, "document": 1, "audio": 1, "video": 1}
