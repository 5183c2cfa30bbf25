"""Anthropic's Messages protocol, read."""

from __future__ import annotations

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
    if system := tuple(_parts(body.get("system"))):
        yield Message("system", system)
    for message in objects(body.get("messages")):
        if message.get("role") == "assistant":
            continue
        said = []
        for block in _blocks(message.get("content")):
            if block.get("type") == "tool_result":
                yield Result(string(block.get("tool_use_id")), tuple(_parts(block.get("content"))))
            else:
                said += list(_parts([block]))
        if said:
            yield Message("system" if message.get("role") == "system" else "user", tuple(said))


def reply(body: dict[str, Any]) -> Reply:
    return _reply(objects(body.get("content")))


def streamed(events: Iterable[dict[str, Any]]) -> Reply:
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        index = event.get("index")
        if not isinstance(index, int):
            continue
        if event.get("type") == "content_block_start":
            blocks[index] = {**obj(event.get("content_block")), "json": ""}
        elif event.get("type") == "content_block_delta" and index in blocks:
            delta, block = obj(event.get("delta")), blocks[index]
            block["text"] = string(block.get("text")) + string(delta.get("text"))
            block["thinking"] = string(block.get("thinking")) + string(delta.get("thinking"))
            block["json"] += string(delta.get("partial_json"))
    for block in blocks.values():
        if block["json"]:
            block["input"] = arguments(block["json"])
    return _reply([blocks[index] for index in sorted(blocks)])


def _reply(blocks: list[dict[str, Any]]) -> Reply:
    return Reply(
        text="".join(string(block.get("text")) for block in blocks if block.get("type") == "text"),
        reasoning="".join(string(block.get("thinking")) for block in blocks if block.get("type") == "thinking"),
        calls=tuple(
            Call(string(block.get("id")), string(block.get("name")), arguments(block.get("input") or {}))
            for block in blocks
            if block.get("type") == "tool_use"
        ),
    )


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _parts(content: Any) -> Iterator[Part]:
    for block in _blocks(content):
        source = obj(block.get("source"))
        if block.get("type") == "text":
            yield Text(string(block.get("text")))
        elif source.get("type") == "base64":
            yield data_media(source.get("media_type"), source.get("data"))
        elif source:
            yield Media(string(source.get("media_type")), b"", string(source.get("url")))
