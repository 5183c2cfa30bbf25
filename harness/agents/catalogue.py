"""Finding an agent by name or file and reading its YAML strictly."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

import configs
from bench.errors import UsageError
from bench.yaml_file import read_yaml
from harness.agents.agent import Agent, WireProtocol
from harness.agents.aider import Aider
from harness.agents.claude_code import ClaudeCode
from harness.agents.codex import Codex
from harness.agents.command import CommandAgent
from harness.agents.gemini_cli import GeminiCli
from harness.agents.mini_swe_agent import MiniSweAgent
from harness.agents.noop import NoopAgent
from harness.agents.opencode import OpenCode
from harness.agents.openhands import OpenHands
from harness.agents.pi import Pi
from harness.agents.qwen_code import QwenCode
from harness.agents.reference import ReferenceAgent
from harness.agents.replay import SAMPLE, ReplayAgent

SHIPPED = Path(configs.__file__).parent / "agents"
COMMAND_LINES: dict[str, Callable[[str | None], Agent]] = {
    adapter.name: adapter
    for adapter in (
        ClaudeCode,
        Codex,
        GeminiCli,
        OpenCode,
        QwenCode,
        Pi,
        MiniSweAgent,
        Aider,
        OpenHands,
        ReferenceAgent,
    )
}
"""Published command lines, each with an adapter of its own; called with the model's name."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = ""


class NoopSettings(_Settings):
    kind: Literal["noop"]


class ReplaySettings(_Settings):
    kind: Literal["replay"]
    edit: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    edits: Path | None = None


class CommandSettings(_Settings):
    kind: Literal["command"]
    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    stdin: Literal["none", "prompt"] = "none"
    protocol: WireProtocol | None = None
    pack: str | None = None
    logs: list[str] = Field(default_factory=list)


class ReferenceSettings(_Settings):
    kind: Literal["reference"]
    protocol: Literal["openai-chat", "anthropic", "gemini"] = "openai-chat"


AnySettings = NoopSettings | ReplaySettings | CommandSettings | ReferenceSettings
Settings = Annotated[AnySettings, Field(discriminator="kind")]
_ADAPTER: TypeAdapter[AnySettings] = TypeAdapter(Settings)


def find_agent(name_or_file: str, model: str | None = None) -> Agent:
    """The agent a shipped name or a YAML file stands for.

    Raises UsageError for an unknown name (with the nearest ones) or a setting that does not exist.
    """
    if name_or_file in COMMAND_LINES:
        return COMMAND_LINES[name_or_file](model)
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml"):
        path = SHIPPED / f"{name_or_file}.yaml"
    if not path.is_file():
        known = shipped_agents()
        near = difflib.get_close_matches(name_or_file, known, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known)}"
        raise UsageError(f"no agent {name_or_file!r}; {hint} A path to a YAML file works too (docs/agents.md)")
    return _made(_read(path), path.parent, model)


def shipped_agents() -> list[str]:
    """Names of the agents that come with the package."""
    return sorted([*COMMAND_LINES, *(path.stem for path in SHIPPED.glob("*.yaml"))])


def _read(path: Path) -> AnySettings:
    try:
        return _ADAPTER.validate_python(read_yaml(path))
    except ValidationError as error:
        raise UsageError(f"{path}: {_explained(error)}") from error


def _explained(error: ValidationError) -> str:
    lines = []
    for fault in error.errors():
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        lines.append(f"{where}: {fault['msg']}{_suggestion(fault)}")
    return "; ".join(lines)


def _suggestion(fault: Any) -> str:
    if fault["type"] != "extra_forbidden":
        return ""
    known = {field for kind in get_args(AnySettings) for field in kind.model_fields}
    near = difflib.get_close_matches(str(fault["loc"][-1]), sorted(known), n=1)
    return f" (did you mean {near[0]}?)" if near else f" (known: {', '.join(sorted(known))})"


def _made(settings: AnySettings, folder: Path, model: str | None) -> Agent:
    match settings:
        case NoopSettings():
            return NoopAgent(settings.name)
        case ReplaySettings():
            edits = (folder / settings.edits).resolve() if settings.edits else SAMPLE
            return ReplayAgent(settings.name, settings.edit, edits)
        case ReferenceSettings():
            return ReferenceAgent(model, settings.protocol)
        case CommandSettings():
            return CommandAgent(
                settings.name,
                tuple(settings.argv),
                settings.env,
                settings.stdin,
                model,
                settings.protocol,
                settings.pack,
                tuple(settings.logs),
            )
