"""Any command line as an agent, from a few lines of YAML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.task import Task
from harness.agents.agent import (
    PROMPT_FILE,
    AgentSetupError,
    Launch,
    MediaKind,
    ModelAccess,
    Output,
    Reported,
    WireProtocol,
)
from harness.prompt import prompt
from sandboxes.sandbox import HOME, WORKSPACE

PLACEHOLDERS = {"{prompt_file}": PROMPT_FILE, "{workspace}": WORKSPACE, "{home}": HOME}
_OF_THE_MODEL = ("{model}", "{base_url}", "{token}")


@dataclass(frozen=True)
class CommandAgent:
    """Runs `argv` in the workspace. The request is never part of the command line: it travels as a file.

    `argv` and the values of `env` may hold the placeholders {prompt_file}, {workspace} and {home}, and with a
    `protocol` {model}, {base_url} (without a path) and {token}; the usual variables of the protocol are set then.
    `stdin: prompt` also gives the prompt on standard input, otherwise standard input is empty. `pack` names an
    installed command line that is to be there, at /opt/agents/PACK.
    """

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    stdin: str = "none"
    model: str | None = None
    protocol: WireProtocol | None = None
    pack: str | None = None
    logs: tuple[str, ...] = ()

    @property
    def modalities(self) -> frozenset[MediaKind]:
        return frozenset()

    @property
    def own_logs(self) -> tuple[str, ...]:
        return self.logs

    def describe(self) -> dict[str, Any]:
        told: dict[str, Any] = {"kind": "command", "argv": list(self.argv), "env": self.env, "stdin": self.stdin}
        return (
            told | ({"protocol": self.protocol} if self.protocol else {}) | ({"pack": self.pack} if self.pack else {})
        )

    def launch(self, task: Task, access: ModelAccess | None = None) -> Launch:
        if access is None and any(
            word in part for part in (*self.argv, *self.env.values()) for word in _OF_THE_MODEL
        ):
            raise AgentSetupError(
                f"agent {self.name} uses one of {', '.join(_OF_THE_MODEL)} but declares no `protocol`; "
                "add one, for example `protocol: openai-chat`, and name a model with --model"
            )
        values = dict(PLACEHOLDERS)
        if access:
            values |= zip(_OF_THE_MODEL, (access.model, access.base_url, access.token), strict=True)
        return Launch(
            argv=[_filled(part, values) for part in self.argv],
            env={
                **(access.env if access else {}),
                **{name: _filled(value, values) for name, value in self.env.items()},
            },
            stdin=prompt(task).encode("utf-8", "surrogatepass") if self.stdin == "prompt" else None,
        )

    def reported(self, output: Output) -> Reported:
        return Reported()


def _filled(part: str, values: dict[str, str]) -> str:
    for placeholder, value in values.items():
        part = part.replace(placeholder, value)
    return part
