"""The seam between a trial and whatever solves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from bench.errors import CdbError
from bench.task import Task

PROMPT_FILE = "/home/agent/request.md"
"""Where the complete prompt lies in every container, whatever else an agent is given."""

WireProtocol = Literal["anthropic", "openai-chat", "openai-responses", "gemini"]
MediaKind = Literal["image", "audio", "video", "document"]


class AgentSetupError(CdbError):
    """The agent cannot be started on this task; names the agent, the task and the remedy."""


@dataclass(frozen=True)
class ModelAccess:
    """How an agent reaches its model from inside the container: all of it is of use in this trial only."""

    model: str
    base_url: str
    """Without a path, `http://127.0.0.1:8080`."""
    token: str
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The usual variables of the agent's protocol."""
    hosted_tools: bool = False
    """Whether the provider's own web search and the like may be used."""


@dataclass(frozen=True)
class Launch:
    """What to start. `home_files` maps a path relative to the container's home to a file of ours, or its content."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    home_files: Mapping[str, Path | bytes] = field(default_factory=dict)
    stdin: bytes | None = None
    """All of standard input; None is an empty one."""
    passed: Mapping[str, int] = field(default_factory=dict)
    """How many files of each kind are handed to the model itself, not just named in the prompt."""


@dataclass(frozen=True)
class Reported:
    """What the agent said of its own end. Kept as `reported_*`, decides nothing that the gateway knows better.

    `ok` None: it never says. One that always closes with a word and did not this time has `ok` False.
    """

    ok: bool | None = None
    reason: str = ""
    turns: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Output:
    """What an agent left behind: its two streams (bounded) and files of its own, as they were copied out."""

    stdout: Path
    stderr: Path
    own: Path
    """Folder with the files that `own_logs` names and that were there."""


class Agent(Protocol):
    """An agent is asked who it is, what it needs, what to start for a task, and how it says that it ended."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...

    @property
    def protocol(self) -> WireProtocol | None:
        """How it speaks to its model; None for an agent that has none."""

    @property
    def pack(self) -> str | None:
        """The installed command line it needs, by its recipe's name."""

    @property
    def modalities(self) -> frozenset[MediaKind]:
        """Kinds of files that it hands to its model itself."""

    @property
    def own_logs(self) -> tuple[str, ...]:
        """Files and folders of its own account of the run, relative to the container's home."""

    def describe(self) -> dict[str, Any]:
        """Everything that can change a result, for the run's lock: kind, settings, versions."""

    def launch(self, task: Task, access: ModelAccess | None = None) -> Launch:
        """The process that solves `task`. Raises AgentSetupError."""

    def reported(self, output: Output) -> Reported:
        """What it said of its end; never raises for what an agent wrote."""


class WithoutModel:
    """Answers for agents that have no model and no command line of their own."""

    @property
    def model(self) -> str | None:
        return None

    @property
    def protocol(self) -> WireProtocol | None:
        return None

    @property
    def pack(self) -> str | None:
        return None

    @property
    def modalities(self) -> frozenset[MediaKind]:
        return frozenset()

    @property
    def own_logs(self) -> tuple[str, ...]:
        return ()

    def reported(self, output: Output) -> Reported:
        return Reported()
