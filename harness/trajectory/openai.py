"""OpenAI's two protocols, chat completions and responses, read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.trajectory.said import (
    Call,
    Message,
    Part,
    Reply,
    Result,
    Text,
    arguments,
    data_media,
    obj,
    objects,
    string,
    url_media,
)

_OF_THE_MODEL = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")


def chat_request(body: dict[str, Any]) -> Iterator[Message | Result]:
    for message in objects(body.get("messages")):
        role, parts = message.get("role"), tuple(_parts(message.get("content")))
        if role == "tool":
            yield Result(string(message.get("tool_call_id")), parts)
        elif role != "assistant" and parts:
            yield Message("user" if role == "user" else "system", parts)


def chat_reply(body: dict[str, Any]) -> Reply:
    choices = objects(body.get("choices"))
    message = obj(choices[0].get("message")) if choices else {}
    return Reply(
        string(message.get("content")),
        string(message.get("reasoning_content") or message.get("reasoning")),
        tuple(_chat_call(call) for call in objects(message.get("tool_calls"))),
    )


def chat_streamed(events: Iterable[dict[str, Any]]) -> Reply:
    text, reasoning = "", ""
    calls: dict[Any, dict[str, str]] = {}
    for event in events:
        for choice in objects(event.get("choices"))[:1]:
            delta = obj(choice.get("delta"))
            text += string(delta.get("content"))
            reasoning += string(delta.get("reasoning_content") or delta.get("reasoning"))
            for part in objects(delta.get("tool_calls")):
                call = calls.setdefault(part.get("index", 0), {"id": "", "name": "", "arguments": ""})
                function = obj(part.get("function"))
                call["id"] = call["id"] or string(part.get("id"))
                call["name"] += string(function.get("name"))
                call["arguments"] += string(function.get("arguments"))
    made = tuple(Call(call["id"], call["name"], arguments(call["arguments"])) for call in calls.values())
    return Reply(text, reasoning, made)


def _chat_call(call: dict[str, Any]) -> Call:
    function = obj(call.get("function"))
    return Call(string(call.get("id")), string(function.get("name")), arguments(function.get("arguments") or {}))


def responses_request(body: dict[str, Any]) -> Iterator[Message | Result]:
    if instructions := string(body.get("instructions")):
        yield Message("system", (Text(instructions),))
    told = body.get("input")
    items = [{"role": "user", "content": told}] if isinstance(told, str) else objects(told)
    for item in items:
        kind = string(item.get("type"))
        if kind.endswith("_output"):
            yield Result(string(item.get("call_id")), tuple(_parts(item.get("output"))))
        elif kind not in _OF_THE_MODEL and item.get("role") not in (None, "assistant"):
            parts = tuple(_parts(item.get("content")))
            if parts:
                yield Message("user" if item["role"] == "user" else "system", parts)


def responses_reply(body: dict[str, Any]) -> Reply:
    return _items(objects(body.get("output")))


def responses_streamed(events: Iterable[dict[str, Any]]) -> Reply:
    done = [obj(event.get("item")) for event in events if event.get("type") == "response.output_item.done"]
    return _items(done)


def _items(items: list[dict[str, Any]]) -> Reply:
    text, reasoning, calls = "", "", []
    for item in items:
        match item.get("type"):
            case "message":
                text += "".join(string(part.get("text")) for part in objects(item.get("content")))
            case "reasoning":
                shown = [*objects(item.get("summary")), *objects(item.get("content"))]
                reasoning += "".join(string(part.get("text")) for part in shown)
            case "function_call":
                told = arguments(item.get("arguments") or {})
                calls.append(Call(string(item.get("call_id")), string(item.get("name")), told))
            case "custom_tool_call":
                calls.append(
                    Call(string(item.get("call_id")), string(item.get("name")), {"input": item.get("input")})
                )
            case "local_shell_call":
                calls.append(Call(string(item.get("call_id")), "local_shell", obj(item.get("action"))))
    return Reply(text, reasoning, tuple(calls))


def _parts(content: Any) -> Iterator[Part]:
    if isinstance(content, str):
        yield Text(content)
    for part in objects(content):
        match part.get("type"):
            case "text" | "input_text" | "output_text":
                yield Text(string(part.get("text")))
            case "image_url":
                yield url_media(obj(part.get("image_url")).get("url"))
            case "input_image":
                yield url_media(part.get("image_url"))
            case "input_audio":
                audio = obj(part.get("input_audio"))
                yield data_media(f"audio/{audio.get('format', 'wav')}", audio.get("data"))
            case "file" | "input_file":
                yield url_media((obj(part.get("file")) or part).get("file_data"))
