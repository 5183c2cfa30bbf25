"""One exchange with a model, whatever stands behind it: messages and tools in, words and tool calls out.

Messages are in the shape of the OpenAI chat API, which litellm turns into every provider's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from evaluator.judges.model.settings import Price
from evaluator.records import Usage

Message = dict[str, Any]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]

    def as_function(self) -> dict[str, Any]:
        said = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": said}


@dataclass(frozen=True)
class ToolCall:
    """`arguments` is JSON text as the model wrote it; nobody has checked it yet."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Reply:
    """What a model said. `cut`: it ran into its output limit, so the last call may be torn.

    `own`: what this provider wants to see again in the next request (thinking blocks, signatures)."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: Usage = field(default_factory=Usage)
    cut: bool = False
    own: Message = field(default_factory=dict)

    def as_message(self) -> Message:
        """The reply as the next request shows it to the model."""
        message: Message = {"role": "assistant", "content": self.text or None, **self.own}
        if self.calls and "tool_calls" not in self.own:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        return message


class TooLong(Exception):
    """The conversation does not fit the model's context."""


class ChatFailed(Exception):
    """No reply: the provider refused, or stayed away for longer than our patience. The message says which."""


class Chat(Protocol):
    """A model behind some transport. May be used from several threads."""

    @property
    def vision(self) -> bool:
        """Whether pictures may be sent."""

    @property
    def takes(self) -> frozenset[str]:
        """Kinds of attachments that may be sent as they are: `pdf`, `audio`, `video`."""

    @property
    def caches_by_mark(self) -> bool:
        """Whether the end of a shared prefix has to be marked for the provider to cache it."""

    def describe(self) -> dict[str, Any]:
        """What can change an answer, for the lock."""

    def check(self) -> None:
        """One cheap call before anything else is spent. Raises UsageError with what to mend."""

    def price(self) -> Price | None:
        """What its tokens cost; None when nobody knows."""

    def stop(self) -> None:
        """Give up every wait at once; calls under way and later ones fail."""

    def reply(self, label: str, messages: list[Message], tools: list[ToolSpec]) -> Reply:
        """The next words of the conversation called `label`. Raises TooLong, ChatFailed or InfraError."""

    def end(self, label: str) -> Usage:
        """The conversation is over: give back what it held. Returns what it cost and no reply has told."""

    def close(self) -> None:
        """No conversation follows: give back everything."""


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def picture_part(jpeg_or_png: bytes, media_type: str) -> dict[str, Any]:
    import base64

    data = base64.b64encode(jpeg_or_png).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}


def count_pictures(messages: list[Message]) -> int:
    return sum(
        part.get("type") == "image_url"
        for message in messages
        if isinstance(message.get("content"), list)
        for part in message["content"]
    )
