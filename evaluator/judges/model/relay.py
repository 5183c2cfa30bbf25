"""A back end without a model: each request is written as files, each answer read from a file.

Any person or program can stand in for the model. `FOLDER/LABEL/NNNN/` holds `request.json` (messages, tools,
pictures by file name), `request.md` (the same for people) and `pictures/`; whoever answers writes
`answer.json` beside them, by rename: {"text": "…", "calls": [{"tool": "NAME", "input": {…}}]}.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from bench.atomic import write_bytes, write_json
from bench.errors import DataError, UsageError
from bench.strict_json import parse_json
from evaluator.judges.model.chat import ChatFailed, Message, Reply, ToolCall, ToolSpec, count_pictures
from evaluator.records import Strict, Usage

POLL_S = 0.2


class RelayCall(Strict):
    """One tool call of an answer."""

    tool: str
    input: dict[str, Any] = Field(default_factory=dict)


class RelayAnswer(Strict):
    """`answer.json`. `by`: who answered, for the record."""

    text: str = ""
    calls: list[RelayCall] = Field(default_factory=list)
    by: str | None = None


class RelayChat:
    """Requests go below `folder`; an answer is waited for at most `deadline_s`. Sends pictures as files."""

    caches_by_mark = False
    takes: frozenset[str] = frozenset()

    def __init__(self, folder: Path, *, vision: bool = True, deadline_s: float = 24 * 3600.0) -> None:
        self._folder = folder
        self.vision = vision
        self._stopped = threading.Event()
        self._deadline_s = deadline_s

    def describe(self) -> dict[str, Any]:
        return {"kind": "relay", "vision": self.vision}

    def check(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_json(self._folder / "relay.json", {"schema": "cdb.relay/1"})
        except OSError as error:
            raise UsageError(f"the relay's folder {self._folder} cannot be written: {error.strerror}") from error

    def price(self) -> None:
        """Whoever answers has a price of their own."""

    def stop(self) -> None:
        self._stopped.set()

    def end(self, label: str) -> Usage:
        """Nothing is held between two requests."""
        return Usage()

    def close(self) -> None:
        """Nothing is held."""

    def reply(self, label: str, messages: list[Message], tools: list[ToolSpec]) -> Reply:
        folder = self._next(label)
        self._write(folder, messages, tools)
        began = time.monotonic()
        answer = self._wait(folder)
        calls = tuple(
            ToolCall(f"call_{folder.name}_{number}", call.tool, json.dumps(call.input, ensure_ascii=False))
            for number, call in enumerate(answer.calls)
        )
        usage = Usage(
            calls=1,
            cost_usd=None,
            pictures=count_pictures(messages),
            waited_s=round(time.monotonic() - began, 3),
            models=[answer.by] if answer.by else [],
        )
        return Reply(answer.text, calls, usage)

    def _next(self, label: str) -> Path:
        """A new folder for this exchange: 0001, 0002 … below the conversation's."""
        conversation = self._folder / label
        conversation.mkdir(parents=True, exist_ok=True)
        taken = [int(path.name) for path in conversation.iterdir() if path.name.isdigit()]
        folder = conversation / f"{max(taken, default=0) + 1:04d}"
        folder.mkdir()
        return folder

    def _write(self, folder: Path, messages: list[Message], tools: list[ToolSpec]) -> None:
        pictures: list[str] = []
        plain = [_without_pictures(message, folder, pictures) for message in messages]
        write_bytes(folder / "request.md", _for_people(plain, tools).encode("utf-8", "backslashreplace"))
        told = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
        write_json(folder / "request.json", {"schema": "cdb.relay/1", "messages": plain, "tools": told})

    def _wait(self, folder: Path) -> RelayAnswer:
        """The answer, once it is there and whole. One that cannot be read is refused in `answer.error.txt`, and a
        changed one waited for. Raises ChatFailed when the deadline has passed."""
        path, refused = folder / "answer.json", 0.0
        ends = time.monotonic() + self._deadline_s
        while time.monotonic() < ends:
            if path.is_file() and (changed := path.stat().st_mtime) != refused:
                try:
                    return RelayAnswer.model_validate(parse_json(path.read_bytes(), str(path)))
                except (DataError, ValidationError) as error:
                    refused = changed
                    write_bytes(
                        folder / "answer.error.txt", f"{error}\nChange answer.json; it is read again.\n".encode()
                    )
            if self._stopped.wait(POLL_S):
                raise ChatFailed("the run was stopped")
        raise ChatFailed(f"nobody answered {folder / 'request.json'} within {self._deadline_s:g} s")


def _without_pictures(message: Message, folder: Path, pictures: list[str]) -> Message:
    """The message with each picture written to a file and named in its place."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = []
    for part in content:
        if part.get("type") != "image_url":
            parts.append({key: value for key, value in part.items() if key != "cache_control"})
            continue
        head, _, data = part["image_url"]["url"].partition(",")
        name = f"pictures/{len(pictures) + 1:02d}.{'png' if 'png' in head else 'jpg'}"
        write_bytes(folder / name, base64.b64decode(data))
        pictures.append(name)
        parts.append({"type": "picture", "file": name})
    return {**message, "content": parts}


def _for_people(messages: list[Message], tools: list[ToolSpec]) -> str:
    lines = []
    for message in messages:
        lines.append(f"# {message['role']}\n")
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            lines.append(part["text"] if part["type"] == "text" else f"![{part['file']}]({part['file']})")
        lines += [
            f"calls {c['function']['name']}: {c['function']['arguments']}" for c in message.get("tool_calls", [])
        ]
        lines.append("")
    lines.append("# tools\n")
    lines += [f"- **{tool.name}**: {tool.description}" for tool in tools]
    lines.append('\nAnswer in `answer.json`: {"text": "", "calls": [{"tool": "NAME", "input": {}}]}')
    return "\n".join(lines) + "\n"
