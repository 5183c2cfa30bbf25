"""Messages of the conversation as the command line takes them: Anthropic content in, MCP content for tool results."""

from __future__ import annotations

from typing import Any

from evaluator.judges.model.chat import Message


def retold(messages: list[Message]) -> list[dict[str, Any]]:
    """A conversation as one user message: its opening, and what was said since in words.

    Only for a session that has to begin anew; one that goes on knows its own calls."""
    blocks = []
    for message in messages:
        for call in message.get("tool_calls") or []:
            blocks.append(_text(f"(You called {call['function']['name']} with {call['function']['arguments']})"))
        blocks += said(message, prefix={"assistant": "(You said) ", "tool": "(Its result) "}.get(message["role"], ""))
    return blocks


def said(message: Message, prefix: str = "") -> list[dict[str, Any]]:
    """One message's words and pictures as Anthropic content blocks."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return [_text(prefix + content)] if content else []
    return [_block(part) for part in content]


def as_mcp(block: dict[str, Any]) -> dict[str, Any]:
    """An Anthropic content block as MCP has it."""
    if block["type"] == "text":
        return block
    return {"type": "image", "data": block["source"]["data"], "mimeType": block["source"]["media_type"]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return _text(part["text"])
    picture = part["type"] == "image_url"
    head, _, data = (part["image_url"]["url"] if picture else part["file"]["file_data"]).partition(",")
    media_type = head.removeprefix("data:").partition(";")[0]
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image" if picture else "document", "source": source}
