"""The agent that does nothing: what an untouched application scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.task import Task
from harness.agents.agent import Launch, ModelAccess, WithoutModel


@dataclass(frozen=True)
class NoopAgent(WithoutModel):
    """Starts a process that ends at once."""

    name: str = "noop"

    def describe(self) -> dict[str, Any]:
        return {"kind": "noop"}

    def launch(self, task: Task, access: ModelAccess | None = None) -> Launch:
        return Launch(argv=["true"])
