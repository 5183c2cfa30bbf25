"""The four protocols: reading what a request offers, and writing a reply as one document or as stream events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fakes.model_server.scenario import Call, Offered, Part, Text, Usage

Json = dict[str, Any]
CREATED = 1_760_000_000
"""The same request always gets the same bytes."""


class Reply(NamedTuple):
    """What is to be written. `model` is the name answered; `pieces` how many deltas a text is cut into."""

    model: str
    parts: list[Part]
    usage: Usage
    pieces: int


class Protocol(NamedTuple):
    """`document` is the whole answer; `events` yields (SSE event name or empty, data); `error` an error's body."""

    offered: Callable[[Json], list[Offered]]
    assistant_messages: Callable[[Json], int]
    document: Callable[[Reply], Json]
    events: Callable[[Reply], Iterator[tuple[str, str]]]
    error: Callable[[int, str], Json]


def cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


def _data(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---- Anthropic Messages -----------------------------------------------------------------------------------


def _anthropic_usage(usage: Usage, output: int) -> Json:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": output,
    }


def _anthropic_document(reply: Reply) -> Json:
    content = [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "tool_use", "id": part.id.replace("call_", "toolu_"), "name": part.name, "input": part.input}
        for part in reply.parts
    ]
    reason = "tool_use" if any(isinstance(part, Call) for part in reply.parts) else "end_turn"
    return {
        "id": "msg_fake", "type": "message", "role": "assistant", "model": reply.model, "content": content,
        "stop_reason": reason, "stop_sequence": None, "usage": _anthropic_usage(reply.usage, reply.usage.output),
    }  # fmt: skip


def _anthropic_events(reply: Reply) -> Iterator[tuple[str, str]]:
    whole = _anthropic_document(reply)
    start = whole | {"content": [], "stop_reason": None, "usage": _anthropic_usage(reply.usage, 1)}

    def event(kind: str, **more: Any) -> tuple[str, str]:
        return kind, _data({"type": kind, **more})

    yield event("message_start", message=start)
    yield event("ping")
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            deltas = [{"type": "text_delta", "text": piece} for piece in cut(block["text"], reply.pieces)]
        else:
            yield event("content_block_start", index=index, content_block=block | {"input": {}})
            pieces = cut(_data(block["input"]), reply.pieces)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=reason, usage={"output_tokens": reply.usage.output})
    yield event("message_stop")


ANTHROPIC = Protocol(
    offered=lambda body: [
        Offered(t["name"], t.get("input_schema", {})) for t in body.get("tools", []) if "name" in t
    ],
    assistant_messages=lambda body: sum(m.get("role") == "assistant" for m in body.get("messages", [])),
    document=_anthropic_document,
    events=_anthropic_events,
    error=lambda status, message: {"type": "error", "error": {"type": _kind(status), "message": message}},
)


def _kind(status: int) -> str:
    return {
        400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
        429: "rate_limit_error", 529: "overloaded_error",
    }.get(status, "api_error")  # fmt: skip


# ---- OpenAI chat completions --------------------------------------------------------------------------------


def _chat_usage(usage: Usage) -> Json:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _chat_calls(reply: Reply) -> list[Json]:
    calls = [part for part in reply.parts if isinstance(part, Call)]
    return [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.input)}}
        for c in calls
    ]


def _chat_text(reply: Reply) -> str:
    return "".join(part.text for part in reply.parts if isinstance(part, Text))


def _chat_head(reply: Reply, kind: str) -> Json:
    return {"id": "chatcmpl-fake", "object": kind, "created": CREATED, "model": reply.model}


def _chat_document(reply: Reply) -> Json:
    calls, text = _chat_calls(reply), _chat_text(reply)
    message: Json = {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return _chat_head(reply, "chat.completion") | {"choices": [choice], "usage": _chat_usage(reply.usage)}


def _chat_events(reply: Reply) -> Iterator[tuple[str, str]]:
    head = _chat_head(reply, "chat.completion.chunk")

    def chunk(delta: Json, reason: str | None = None) -> tuple[str, str]:
        return "", _data(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield chunk({"role": "assistant", "content": ""})
    text, calls = _chat_text(reply), _chat_calls(reply)
    for piece in cut(text, reply.pieces) if text else []:
        yield chunk({"content": piece})
    for index, call in enumerate(calls):
        opened = call | {"function": call["function"] | {"arguments": ""}}
        yield chunk({"tool_calls": [{"index": index, **opened}]})
        for piece in cut(call["function"]["arguments"], reply.pieces):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if calls else "stop")
    yield "usage", _data(head | {"choices": [], "usage": _chat_usage(reply.usage)})
    yield "", "[DONE]"


def _functions(body: Json) -> list[Offered]:
    found = []
    for tool in body.get("tools", []):
        told = tool.get("function", tool)
        if tool.get("type") == "namespace":
            found += _functions(tool)
        elif "name" in told:
            found.append(Offered(told["name"], told.get("parameters") or {}))
    return found


CHAT = Protocol(
    offered=_functions,
    assistant_messages=lambda body: sum(m.get("role") == "assistant" for m in body.get("messages", [])),
    document=_chat_document,
    events=_chat_events,
    error=lambda status, message: {"error": {"message": message, "type": _kind(status), "code": str(status)}},
)


# ---- OpenAI Responses ---------------------------------------------------------------------------------------


def _responses_item(number: int, part: Part) -> Json:
    if isinstance(part, Text):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    return {
        "type": "function_call", "id": f"fc_{number}", "call_id": part.id, "name": part.name,
        "arguments": json.dumps(part.input), "status": "completed",
    }  # fmt: skip


def _responses_document(reply: Reply) -> Json:
    usage = reply.usage
    total = usage.input + usage.cache_read + usage.cache_write
    return {
        "id": "resp_fake", "object": "response", "created_at": CREATED, "status": "completed",
        "model": reply.model, "output": [_responses_item(n, part) for n, part in enumerate(reply.parts)],
        "usage": {
            "input_tokens": total, "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": total + usage.output,
        },
    }  # fmt: skip


def _responses_events(reply: Reply) -> Iterator[tuple[str, str]]:
    whole = _responses_document(reply)
    number = 0

    def event(kind: str, **more: Any) -> tuple[str, str]:
        nonlocal number
        number += 1
        return kind, _data({"type": kind, "sequence_number": number, **more})

    started = whole | {"status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    for index, item in enumerate(whole["output"]):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            yield event(
                "response.output_item.added", output_index=index, item=item | {"content": [], "status": "in_progress"}
            )
            part = {"type": "output_text", "text": "", "annotations": []}
            yield event("response.content_part.added", content_index=0, part=part, **place)
            for piece in cut(text, reply.pieces):
                yield event("response.output_text.delta", content_index=0, delta=piece, **place)
            yield event("response.output_text.done", content_index=0, text=text, **place)
            yield event("response.content_part.done", content_index=0, part=part | {"text": text}, **place)
        else:
            yield event(
                "response.output_item.added",
                output_index=index,
                item=item | {"arguments": "", "status": "in_progress"},
            )
            for piece in cut(item["arguments"], reply.pieces):
                yield event("response.function_call_arguments.delta", delta=piece, **place)
            yield event("response.function_call_arguments.done", arguments=item["arguments"], **place)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


def _responses_turns(body: Json) -> int:
    items = body.get("input", [])
    return sum(item.get("role") == "assistant" for item in items) if isinstance(items, list) else 0


RESPONSES = Protocol(_functions, _responses_turns, _responses_document, _responses_events, CHAT.error)


# ---- Gemini -------------------------------------------------------------------------------------------------


def _gemini_usage(usage: Usage) -> Json:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "promptTokenCount": prompt, "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": prompt + usage.output, "cachedContentTokenCount": usage.cache_read,
        "thoughtsTokenCount": usage.reasoning,
    }  # fmt: skip


def _gemini_chunk(reply: Reply, parts: list[Json], *, last: bool) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = _gemini_usage(reply.usage if last else reply.usage._replace(output=reply.usage.reasoning + 1))
    head = {"modelVersion": reply.model, "responseId": "fake", "usageMetadata": usage}
    return {"candidates": [candidate | ({"finishReason": "STOP"} if last else {})], **head}


def _gemini_call(call: Call) -> Json:
    return {"functionCall": {"id": call.id, "name": call.name, "args": call.input}}


def _gemini_document(reply: Reply) -> Json:
    parts = [{"text": part.text} if isinstance(part, Text) else _gemini_call(part) for part in reply.parts]
    return _gemini_chunk(reply, parts, last=True)


def _gemini_events(reply: Reply) -> Iterator[tuple[str, str]]:
    parts: list[Json] = []
    for part in reply.parts:
        if isinstance(part, Text):
            parts += [{"text": piece} for piece in cut(part.text, reply.pieces)]
        else:
            parts.append(_gemini_call(part))
    for number, part in enumerate(parts):
        yield "", _data(_gemini_chunk(reply, [part], last=number == len(parts) - 1))


def _gemini_offered(body: Json) -> list[Offered]:
    found = []
    for tool in body.get("tools", []):
        for told in tool.get("functionDeclarations") or tool.get("function_declarations", []):
            found.append(Offered(told["name"], told.get("parametersJsonSchema") or told.get("parameters") or {}))
    return found


def _gemini_error(status: int, message: str) -> Json:
    return {
        "error": {"code": status, "message": message, "status": "RESOURCE_EXHAUSTED" if status == 429 else "ERROR"}
    }


GEMINI = Protocol(
    offered=_gemini_offered,
    assistant_messages=lambda body: sum(c.get("role") == "model" for c in body.get("contents", [])),
    document=_gemini_document,
    events=_gemini_events,
    error=_gemini_error,
)
