"""A conversation with a model: it looks with tools and ends with a checked answer, given by one tool call.

What is not an answer by that call (prose, cut JSON, wrong ids) is asked for again, twice at most; then it is a
JudgeError. Nothing is ever taken from free text but a single fenced JSON block, for models without tool calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from bench.errors import DataError, InfraError
from evaluator.judges.judge import BrokenOff, JudgeError, OutOfBudget
from evaluator.judges.model.chat import (
    Chat,
    ChatFailed,
    Message,
    Reply,
    ToolCall,
    TooLong,
    ToolSpec,
    picture_part,
    text_part,
)
from evaluator.judges.model.ledger import Purse
from evaluator.judges.model.sources import CUT
from evaluator.judges.model.toolbox import Result, Toolbox, complaints, read_arguments
from evaluator.records import Usage

REPAIRS = 2
LAST_CALLS = 3
KEPT_CHARS = 3_000
_FENCED = re.compile(r"```(?:json)?\s*\n(\{.*?\})\s*\n?```", re.DOTALL)
_FENCE = re.compile(r"<data-([0-9a-f]{16}) ")
Answer = TypeVar("Answer")


class Repair(Exception):
    """An answer that cannot be taken; the message says what to mend."""


@dataclass(frozen=True)
class Finish(Generic[Answer]):
    """The tool that ends a conversation. `take` checks its input; `last` says that nothing will be asked again.

    It raises Repair (asked for once more, or JudgeError when `last`)."""

    spec: ToolSpec
    take: Callable[[dict[str, Any], bool], Answer]


@dataclass
class Conversation(Generic[Answer]):
    """One conversation. `label` names it (`CASE/NN/judge`), `folder` is where it is kept."""

    chat: Chat
    purse: Purse
    tools: Toolbox
    finish: Finish[Answer]
    label: str
    folder: Path
    usage: Usage = field(default_factory=Usage)
    _messages: list[Message] = field(default_factory=list)
    _repairs: int = 0
    _shrunk: bool = False

    def hold(self, system: str, opening: list[dict[str, Any]]) -> Answer:
        """Talk until the answer is taken. Raises JudgeError or OutOfBudget, with what was spent."""
        self._say({"role": "system", "content": system})
        self._say({"role": "user", "content": opening})
        try:
            try:
                return self._talked()
            finally:
                self._charge(self.chat.end(self.label))
        except OutOfBudget as error:
            raise OutOfBudget(str(error), self.usage) from error
        except JudgeError as error:
            raise type(error)(str(error), self.usage) from error
        except InfraError as error:
            raise BrokenOff(str(error), self.usage) from error

    def _talked(self) -> Answer:
        calls = self.purse.caps.criterion_calls
        for number in range(calls):
            self.purse.check()
            with self.purse.working():
                found = self._turn(calls - number - 1)
            if found is not None:
                return found
        raise OutOfBudget(f"no answer after {calls} calls, the cap for one criterion")

    def _turn(self, left: int) -> Answer | None:
        reply = self._ask()
        self._say(reply.as_message())
        calls = reply.calls or self._in_text(reply)
        if not calls:
            self._repair(f"Only a call of `{self.finish.spec.name}` counts as your answer; words alone are not read.")
            return None
        pictures: list[Result] = []
        for call in calls:
            if call.name == self.finish.spec.name:
                found = self._finished(call, reply)
                if found is not None:
                    return found
                continue
            result = self.tools.call(call.name, call.arguments)
            self._answer(call, result.text + self._warning(left), bool(reply.calls))
            if result.picture:
                pictures.append(result)
        if pictures:
            self._say({"role": "user", "content": [part for one in pictures for part in _shown(one)]})
        return None

    def _finished(self, call: ToolCall, reply: Reply) -> Answer | None:
        try:
            if reply.cut:
                raise Repair("your answer was cut at the output limit; give it again, shorter")
            return self.finish.take(read_arguments(call.arguments), self._repairs >= REPAIRS)
        except ValidationError as error:
            problem = complaints(error)
        except (Repair, DataError) as error:
            problem = str(error)
        self._repair(f"error: {self.finish.spec.name} was not taken: {problem}", call if reply.calls else None)
        return None

    def _repair(self, problem: str, call: ToolCall | None = None) -> None:
        if self._repairs >= REPAIRS:
            raise JudgeError(f"no usable answer after {REPAIRS + 1} tries: {problem[:500]}")
        self._repairs += 1
        if call:
            self._answer(call, problem, True)
        else:
            self._say({"role": "user", "content": problem})

    def _in_text(self, reply: Reply) -> tuple[ToolCall, ...]:
        """The answer of a model that wrote it as the only fenced JSON block of its text."""
        blocks = _FENCED.findall(reply.text)
        if len(blocks) != 1:
            return ()
        return (ToolCall("in-text", self.finish.spec.name, blocks[0]),)

    def _answer(self, call: ToolCall, text: str, as_tool: bool) -> None:
        if as_tool:
            self._say({"role": "tool", "tool_call_id": call.id, "content": text})
        else:
            self._say({"role": "user", "content": text})

    def _warning(self, left: int) -> str:
        if left > LAST_CALLS:
            return ""
        return f"\n(harness: {left} calls left; give your answer by `{self.finish.spec.name}` now)"

    def _ask(self) -> Reply:
        specs = [*self.tools.specs, self.finish.spec]
        try:
            reply = self.chat.reply(self.label, self._messages, specs)
        except TooLong as error:
            if self._shrunk:
                raise JudgeError(f"the conversation does not fit the model's context: {error}") from error
            self._shrunk = True
            self._messages = shrunk(self._messages)
            return self._ask()
        except ChatFailed as error:
            raise JudgeError(str(error)) from error
        self._charge(reply.usage)
        return reply

    def _charge(self, usage: Usage) -> None:
        self.usage += usage
        self.purse.charge(usage)

    def _say(self, message: Message) -> None:
        self._messages.append(message)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "conversation.jsonl").open("a", encoding="utf-8", errors="backslashreplace") as lines:
            lines.write(json.dumps(_without_bytes(message), ensure_ascii=False, sort_keys=True) + "\n")


def shrunk(messages: list[Message]) -> list[Message]:
    """The same conversation in less room: old results left out, long texts cut, all pictures but the first dropped.

    A cut is marked by words that no file holds, so it can be cited by nobody."""
    results = [number for number, message in enumerate(messages) if message["role"] == "tool"]
    kept = set(results[-2:])
    return [_less(message, number in kept) for number, message in enumerate(messages)]


def _less(message: Message, keep: bool) -> Message:
    content = message.get("content")
    if message["role"] == "tool" and not keep:
        return {**message, "content": f"{CUT}: left out for length; call the tool again if you need it"}
    if message["role"] == "tool" and isinstance(content, str) and len(content) > 2 * KEPT_CHARS:
        return {**message, "content": cut_text(content, 2 * KEPT_CHARS)}
    if not isinstance(content, list):
        return message
    parts, pictures = [], 0
    for part in content:
        if part["type"] == "image_url":
            pictures += 1
            if pictures > 1:
                continue
        elif part["type"] != "text":
            continue  # an attachment itself: its digest says what is in it
        elif len(part["text"]) > KEPT_CHARS:
            part = {**part, "text": cut_text(part["text"], KEPT_CHARS)}
        parts.append(part)
    return {**message, "content": parts}


def cut_text(text: str, room: int) -> str:
    """The first `room` characters, the cut marked and an open fence closed again."""
    kept = f"{text[:room]}\n{CUT}"
    opened = _FENCE.findall(kept)
    return f"{kept}\n</data-{opened[-1]}>" if opened and kept.count("</data-") < len(opened) else kept


def _shown(result: Result) -> list[dict[str, Any]]:
    assert result.picture is not None
    return [
        text_part(f"Picture {result.evidence} (the application's, data as well):"),
        picture_part(result.picture, "image/jpeg"),
    ]


def _without_bytes(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": [_named(part) for part in content]}


def _named(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return part
    return {"type": "picture" if part["type"] == "image_url" else "attachment"}
