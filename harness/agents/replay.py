"""An agent that applies a recorded edit: a real process in the container, no model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.task import Task
from harness.agents.agent import AgentSetupError, Launch, ModelAccess, WithoutModel

SAMPLE = Path(__file__).parent.parent / "sample" / "cases"


@dataclass(frozen=True)
class ReplayAgent(WithoutModel):
    """Applies `edits/CASE/edits/EDIT.patch` (git's diff format, paths relative to the application)."""

    name: str
    edit: str
    edits: Path = SAMPLE

    def describe(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for path in sorted(self.edits.glob(f"*/edits/{self.edit}.patch")):
            digest.update(path.relative_to(self.edits).as_posix().encode() + b"\0" + path.read_bytes())
        return {"kind": "replay", "edit": self.edit, "edits_sha256": digest.hexdigest()}

    def launch(self, task: Task, access: ModelAccess | None = None) -> Launch:
        patch = self.edits / task.case_id / "edits" / f"{self.edit}.patch"
        if not patch.is_file():
            raise AgentSetupError(
                f"agent {self.name} has no recorded edit {self.edit!r} for {task.case_id} ({patch}); "
                "record one, or leave the case out with --only"
            )
        argv = ["git", "apply", "--whitespace=nowarn", "/home/agent/edit.patch"]
        return Launch(argv=argv, env={"GIT_CEILING_DIRECTORIES": "/"}, home_files={"edit.patch": patch})
