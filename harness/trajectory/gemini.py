"""Gemini's generateContent, read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from harness.trajectory.said import (
    Call,
    Media,
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
)


def request(body: dict[str, Any]) -> Iterator[Message | Result]:
    system = obj(body.get("systemInstruction") or body.get("system_instruction"))
    if parts := tuple(_parts(objects(system.get("parts")))):
        yield Message("system", parts)
    for content in objects(body.get("contents")):
        if content.get("role") == "model":
            continue
        told = objects(content.get("parts"))
        for part in told:
            if response := obj(part.get("functionResponse") or part.get("function_response")):
                yield _result(response)
        if parts := tuple(_parts(told)):
            yield Message("user", parts)


def reply(body: dict[str, Any]) -> Reply:
    return streamed([body])


def streamed(events: Iterable[dict[str, Any]]) -> Reply:
    text, reasoning, calls = "", "", []
    for event in events:
        for candidate in objects(event.get("candidates"))[:1]:
            for part in objects(obj(candidate.get("content")).get("parts")):
                if call := obj(part.get("functionCall")):
                    calls.append(Call(string(call.get("id")), string(call.get("name")), arguments(call.get("args"))))
                elif part.get("thought"):
                    reasoning += string(part.get("text"))
                else:
                    text += string(part.get("text"))
    return Reply(text, reasoning, tuple(calls))


def _result(response: dict[str, Any]) -> Result:
    told = response.get("response")
    output = obj(told).get("output")
    text = output if isinstance(output, str) else json.dumps(told, ensure_ascii=False)
    media = tuple(_parts(objects(response.get("parts"))))
    return Result(string(response.get("id")), (Text(text), *media), string(response.get("name")))


def _parts(parts: list[dict[str, Any]]) -> Iterator[Part]:
    for part in parts:
        inline = obj(part.get("inlineData") or part.get("inline_data"))
        file = obj(part.get("fileData") or part.get("file_data"))
        if inline:
            yield data_media(inline.get("mimeType") or inline.get("mime_type"), inline.get("data"))
        elif file:
            yield Media(string(file.get("mimeType")), b"", string(file.get("fileUri")))
        elif text := string(part.get("text")):
            yield Text(text)
