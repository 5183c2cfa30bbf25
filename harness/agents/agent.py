"""The seam between a trial and whatever solves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.errors import CdbError
from bench.task import Task

PROMPT_FILE = "/home/agent/request.md"
"""Where the complete prompt lies in every container, whatever else an agent is given."""


class AgentSetupError(CdbError):
    """The agent cannot be started on this task; names the agent, the task and the remedy."""


@dataclass(frozen=True)
class Launch:
    """What to start. `home_files` maps a path relative to the container's home to a file of ours."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    home_files: Mapping[str, Path] = field(default_factory=dict)
    prompt_on_stdin: bool = False


class Agent(Protocol):
    """An agent is asked two things: who it is, and what to start for a task."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...

    def describe(self) -> dict[str, Any]:
        """Everything that can change a result, for the run's lock: kind, settings, versions."""

    def launch(self, task: Task) -> Launch:
        """The process that solves `task`. Raises AgentSetupError."""
