"""Pictures, sound, film and documents in a request: how many, how large, and whether any is to be fetched.

A part that names a web address makes the provider fetch it, which is a way out of the sandbox like any other.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from sandboxes.gateway.json_text import Document
from sandboxes.gateway.policy import Protocol

_CONTENT: dict[Protocol, tuple[str, ...]] = {
    "anthropic": ("messages", "system"),
    "openai-chat": ("messages",),
    "openai-responses": ("input",),
    "gemini": ("contents", "systemInstruction", "system_instruction"),
}
_NOT_CONTENT = frozenset({"args", "arguments", "input_schema", "parameters", "cache_control"})
"""Below these stand words of the model or schemas, which may look like content."""
_KINDS = {
    "image": "image", "image_url": "image", "input_image": "image", "document": "document", "file": "document",
    "input_file": "document", "input_audio": "audio", "audio": "audio", "video_url": "video", "video": "video",
}  # fmt: skip
_DATA_KEYS = ("data", "url", "image_url", "file_data", "video_url", "file_url", "fileUri", "file_uri", "uri")


class Media(NamedTuple):
    """`fetched`: addresses that the provider would get by itself."""

    counts: Counter[str]
    size_bytes: int
    fetched: list[str]


def find_media(document: Document, protocol: Protocol) -> Media:
    """Walk through what the request says to the model."""
    found = Media(Counter(), 0, [])
    sizes: list[int] = []
    stack: list[Any] = [document.get(key) for key in _CONTENT[protocol]]
    while stack:
        at = stack.pop()
        if isinstance(at, list):
            stack.extend(at)
        elif isinstance(at, dict):
            kind = _kind(at)
            if kind:
                found.counts[kind] += 1
                _look_at(at, sizes, found.fetched)
            tool_use = at.get("type") in ("tool_use", "server_tool_use")  # may be of any type
            stack.extend(
                value for key, value in at.items()
                if isinstance(value, dict | list) and key not in _NOT_CONTENT and not (tool_use and key == "input")
            )  # fmt: skip
    return found._replace(size_bytes=sum(sizes))


def _kind(at: dict[str, Any]) -> str:
    for key in ("inlineData", "inline_data", "fileData", "file_data"):
        part = at.get(key)
        if isinstance(part, dict):
            mime = str(part.get("mimeType") or part.get("mime_type") or "")
            top = mime.partition("/")[0]
            return top if top in {"image", "audio", "video"} else "document"
    kind = at.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return ""
    carries = ("source", "image_url", "file", "input_audio", "video_url", "file_data", "file_url", "file_id", "audio")
    return _KINDS[kind] if any(key in at for key in carries) else ""


def _look_at(part: dict[str, Any], sizes: list[int], fetched: list[str]) -> None:
    """Every string of the part, two levels down: data that is here, or an address."""
    level: list[Any] = [part]
    for _ in range(3):
        deeper: list[Any] = []
        for at in level:
            for key, value in at.items():
                if isinstance(value, dict):
                    deeper.append(value)
                elif isinstance(value, str) and key in _DATA_KEYS:
                    head = value[:12].strip().lower()
                    if head.startswith(("http:", "https:", "ftp:", "gs:", "//")):
                        fetched.append(value[:300])
                    else:
                        sizes.append(len(value))
        level = deeper
