"""Any command line as an agent, from a few lines of YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.task import Task
from harness.agents.agent import PROMPT_FILE, Launch
from sandboxes.sandbox import HOME, WORKSPACE

PLACEHOLDERS = {"{prompt_file}": PROMPT_FILE, "{workspace}": WORKSPACE, "{home}": HOME}


@dataclass(frozen=True)
class CommandAgent:
    """Runs `argv` in the workspace. The request is never part of the command line: it travels as a file.

    `argv` may hold the placeholders {prompt_file}, {workspace} and {home}; `stdin: prompt` also gives the
    prompt on standard input, otherwise standard input is empty.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    stdin: str = "none"
    model: str | None = None

    def describe(self) -> dict[str, Any]:
        return {"kind": "command", "argv": list(self.argv), "env": self.env, "stdin": self.stdin}

    def launch(self, task: Task) -> Launch:
        argv = [_filled(part) for part in self.argv]
        return Launch(argv=argv, env=self.env, prompt_on_stdin=self.stdin == "prompt")


def _filled(part: str) -> str:
    for placeholder, value in PLACEHOLDERS.items():
        part = part.replace(placeholder, value)
    return part
