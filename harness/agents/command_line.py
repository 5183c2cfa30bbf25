"""What the adapters of published command lines share: who they are, and the installed program they start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import AgentSetupError, Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from sandboxes.packs.store import need_pack


@dataclass(frozen=True)
class CommandLineAgent:
    """A pinned command line with a model behind the trial's gateway. Adapters fill in the four class variables,
    `_launch` and `reported`."""

    model: str | None = None

    name: ClassVar[str]
    protocol: ClassVar[WireProtocol]
    modalities: ClassVar[frozenset[MediaKind]] = frozenset()
    own_logs: ClassVar[tuple[str, ...]] = ()

    @property
    def pack(self) -> str:
        return self.name

    @property
    def program(self) -> str:
        return need_pack(self.pack).program

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.name,
            "protocol": self.protocol,
            "modalities": sorted(self.modalities),
            "pack": need_pack(self.pack).describe(),
        }

    def launch(self, task: Task, access: ModelAccess | None = None) -> Launch:
        if access is None:
            raise AgentSetupError(f"{self.name} needs a model: name one with --model")
        return self._launch(task, access)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        raise NotImplementedError

    def reported(self, output: Output) -> Reported:
        raise NotImplementedError
