"""What was said in a call is the same, whichever protocol carried it, streamed or whole."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from harness.trajectory.said import Call, Media, Message, Reply, Result, Text, sse_events, url_media
from harness.trajectory.write import READERS

PIXEL = b"\x89PNG not really"
DATA = base64.b64encode(PIXEL).decode()
PICTURE = Media("image/png", PIXEL)

REQUESTS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "system": [{"type": "text", "text": "Be good."}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Fix it."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
        ],
    },
    "openai-chat": {
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": [
                {"type": "text", "text": "Fix it."},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
    },
    "openai-responses": {
        "instructions": "Be good.",
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Fix it."},
                {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be good."}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "Fix it."}, {"inlineData": {"mimeType": "image/png", "data": DATA}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "shell", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "shell", "response": {"output": "done"}}}]},
        ],
    },
}  # fmt: skip

WHOLE: dict[str, dict[str, Any]] = {
    "anthropic": {"content": [
        {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "ls"}}]},
    "openai-chat": {"choices": [{"message": {
        "content": "I look.", "reasoning_content": "Hm.",
        "tool_calls": [{"id": "c2", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}]}}]},
    "openai-responses": {"output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c2", "name": "Bash", "arguments": '{"command": "ls"}'}]},
    "gemini": {"candidates": [{"content": {"parts": [
        {"text": "Hm.", "thought": True}, {"text": "I look."},
        {"functionCall": {"id": "c2", "name": "Bash", "args": {"command": "ls"}}}]}}]},
}  # fmt: skip

STREAMED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "look."}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "c2", "name": "Bash", "input": {}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"comm'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": 'and": "ls"}'}},
    ],
    "openai-chat": [
        {"choices": [{"delta": {"role": "assistant", "reasoning_content": "Hm."}}]},
        {"choices": [{"delta": {"content": "I "}}]},
        {"choices": [{"delta": {"content": "look."}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c2", "function": {"name": "Bash", "arguments": '{"comm'}}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": 'and": "ls"}'}}]}}]},
        {"choices": [], "usage": {}},
    ],
    "openai-responses": [
        {"type": "response.output_text.delta", "delta": "I "},
        *({"type": "response.output_item.done", "item": item} for item in WHOLE["openai-responses"]["output"]),
        {"type": "response.completed", "response": {}},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "I "}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "look."}]}}]},
        {"candidates": [{"content": {"parts": WHOLE["gemini"]["candidates"][0]["content"]["parts"][2:]}}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("protocol", READERS)
def test_a_request_is_read(protocol: str) -> None:
    assert list(READERS[protocol].request(REQUESTS[protocol])) == [
        Message("system", (Text("Be good."),)),
        Message("user", (Text("Fix it."), PICTURE)),
        Result("c1", (Text("done"),), "shell" if protocol == "gemini" else ""),
    ]


@pytest.mark.parametrize("protocol", READERS)
def test_a_reply_is_read_whole_and_streamed(protocol: str) -> None:
    expected = Reply("I look.", "Hm.", (Call("c2", "Bash", {"command": "ls"}),))
    assert READERS[protocol].reply(WHOLE[protocol]) == expected
    raw = b"".join(b"event: x\r\ndata: " + json.dumps(event).encode() + b"\r\n\r\n" for event in STREAMED[protocol])
    assert READERS[protocol].streamed(sse_events(raw)) == expected


@pytest.mark.parametrize("protocol", READERS)
def test_a_stream_that_was_cut_gives_what_came(protocol: str) -> None:
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in STREAMED[protocol])
    for end in range(0, len(raw), 7):
        told = READERS[protocol].streamed(sse_events(raw[:end]))
        assert "I look.".startswith(told.text)
        assert len(told.calls) <= 1


@pytest.mark.parametrize("protocol", READERS)
@pytest.mark.parametrize("odd", [{}, {"messages": 3, "input": 3, "contents": 3}, {"messages": [None, {"role": "user", "content": [None, 3, {"type": "image"}, {"type": "image_url"}]}]}, {"input": [{"role": "user", "content": [{"type": "input_image"}]}], "contents": [{"parts": [{"inlineData": 3}, {"functionResponse": []}]}]}])  # fmt: skip
def test_nonsense_of_an_agent_is_read_as_nothing_much(protocol: str, odd: dict[str, Any]) -> None:
    list(READERS[protocol].request(odd))
    assert READERS[protocol].reply(odd) == Reply()


def test_an_address_that_holds_no_data_is_kept_as_an_address() -> None:
    assert url_media("https://example.org/a.png") == Media("", b"", "https://example.org/a.png")
    assert url_media(f"data:image/png;base64,{DATA}") == PICTURE


def test_gemini_may_be_written_with_underscores() -> None:
    told = {
        "system_instruction": {"parts": [{"text": "Be good."}]},
        "contents": [
            {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": DATA}}]},
            {"role": "user", "parts": [{"function_response": {"name": "run", "response": {"output": "done"}}}]},
        ],
    }
    assert list(READERS["gemini"].request(told)) == [
        Message("system", (Text("Be good."),)),
        Message("user", (PICTURE,)),
        Result("", (Text("done"),), "run"),
    ]
