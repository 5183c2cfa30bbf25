"""What the trials of agents are made of: pictures, scripts, and everything that one trial leaves."""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import run, say

from bench.submission import SubmissionManifest
from harness.agents.catalogue import COMMAND_LINES
from harness.trial import TrialResult
from sandboxes.gateway.records import CallRecord, read_calls
from sandboxes.packs.recipe import RECIPES
from sandboxes.packs.store import find_pack

KEY = "sk-ant-the-operators-real-key-0123456789"
MODEL = "claude-fake-9"
FOUR = ("claude-code", "codex", "gemini-cli", "mini-swe-agent")
ALL = tuple(COMMAND_LINES) if os.environ.get("CDB_ALL_AGENTS") else FOUR
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
    if find_pack(RECIPES[name]) is None:
        message = f"{name} is not installed: cdb agents install {name} (scripts/test does it)"
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
