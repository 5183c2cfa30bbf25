"""What the trials of agents are made of: pictures, scripts, and everything that one trial leaves."""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fakes.model_server import run, say

from bench.submission import SubmissionManifest
from bench.task import Task, read_task
from harness.agents.agent import Agent
from harness.agents.catalogue import COMMAND_LINES
from harness.trial import TrialResult
from sandboxes.gateway.policy import Caps
from sandboxes.gateway.records import CallRecord, read_calls
from sandboxes.packs.recipe import RECIPES
from sandboxes.packs.store import find_pack

KEY = "sk-ant-the-operators-real-key-0123456789"
MODEL = "claude-fake-9"
FOUR = ("claude-code", "codex", "gemini-cli", "mini-swe-agent")
ALL = tuple(COMMAND_LINES) if os.environ.get("CDB_ALL_AGENTS") else FOUR
OTHERS = tuple(name for name in ALL if name not in FOUR)
Test = TypeVar("Test", bound=Callable[..., None])
FINISH = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def png(width: int = 64, height: int = 48) -> bytes:
    """A picture no two pixels of which are alike, so that its bytes are found nowhere by chance."""
    rows = b"".join(
        b"\0" + bytes(channel for x in range(width) for channel in (x * 3 % 256, y * 5 % 256, (x * y) % 256))
        for y in range(height)
    )

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PICTURE = png()
PHOTO = png(50, 70)


@dataclass(frozen=True)
class Play:
    """One trial of an agent (a name, or one that is made already) against a scripted model."""

    agent: str | Agent
    scenario: dict[str, Any]
    request: str = "Please change it."
    timeout_s: float = 120
    caps: Caps = Caps(usd=10, tokens=10_000_000, requests=100)  # noqa: RUF009  (frozen)
    grace_s: float = 5.0
    key_required: str = KEY
    waits: bool = False
    """It does nothing for most of its time, and is played beside the others."""
    case: Callable[[Path], Task] | None = None
    """Makes the task in a folder; None: a page with an annotation and a photo."""

    @property
    def pack(self) -> str:
        """The installed command line it needs."""
        return self.agent if isinstance(self.agent, str) else str(self.agent.pack)


def played(make: Callable[..., Play]) -> Callable[[Test], Test]:
    """Marks a test of what a trial left (fixture `seen`). `make` gets those of the test's parameters that it names.

    Tests with the same `make` and parameters share one trial, and all trials of a session run several at a time: most
    of a trial is waiting.
    """

    def mark(test: Test) -> Test:
        test.play = make  # type: ignore[attr-defined]
        return test

    return mark


def make_task(folder: Path, request: str = "Please change it.") -> Task:
    """A one-page application with an annotation and a photo."""
    case = folder / "cases" / "one"
    files = {
        "index.html": b"<h1>Hi</h1>\n",
        "_annotations/page, marked.png": PICTURE,
        "_attachments/photo \u00e9.png": PHOTO,
    }
    for name, content in files.items():
        (case / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (case / "project" / name).write_bytes(content)
    (case / "user_queries.json").write_text(json.dumps([{"text": request}]))
    return read_task(case)


@dataclass
class Seen:
    """Everything one trial left."""

    result: TrialResult
    manifest: SubmissionManifest | None
    submissions: Path
    folder: Path
    requests: list[dict[str, Any]]
    """What the model server got."""
    said: list[str] = field(default_factory=list)

    @property
    def tree(self) -> Path:
        return self.submissions / "one"

    @property
    def calls(self) -> list[CallRecord]:
        return read_calls(self.folder)

    @property
    def prompts(self) -> list[str]:
        """Bodies of the model calls, decoded as JSON and written again without escapes."""
        return [
            json.dumps(json.loads(request["body"]), ensure_ascii=False)
            for request in self.requests
            if request["method"] == "POST"
            and request["body"].startswith("{")
            and "countTokens" not in request["path"]
        ]


def need(name: str) -> None:
    """Fails for one of the four that the suite stands on, skips another that is not installed."""
    recipe = RECIPES[name]
    if find_pack(recipe) is None:
        message = f"{name} is not installed: cdb agents install {name} (scripts/test does it)"
        if recipe.python:
            message = f"{name} is not installed: it needs {recipe.interpreter}, which the solver image has not"
        pytest.fail(message) if name in FOUR else pytest.skip(message)


def script(name: str, *commands: str, last: str = "All done.") -> list[list[dict[str, Any]]]:
    """Turns in which a model runs `commands`, one a turn, and ends as this agent ends."""
    if name == "aider":
        blocks = "\n".join(
            f"{target}\n```\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n```\n"
            for text, target in (command.removeprefix("echo ").split(" > ") for command in commands)
        )
        examples = 30  # of its own, which count as earlier turns
        return [[say(blocks + last)]] * examples
    end = [run(FINISH)] if name == "mini-swe-agent" else [say(last)]
    return [*([run(command)] for command in commands), end]


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()
