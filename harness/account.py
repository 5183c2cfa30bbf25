"""What is known of a trial once its agent has ended: the gateway's sums and the agent's own word and log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.errors import CdbError
from bench.redact import Redactor
from bench.strict_json import read_json
from bench.task import Task
from harness.agents.agent import Agent, Output, Reported
from harness.agents.media import kind_of
from harness.ending import Decision, Facts, decide
from harness.line import Line
from harness.trajectory.write import agent_info, write_trajectory
from harness.watch import Why
from sandboxes.gateway.records import SUMMARY, TrialSummary, read_calls
from sandboxes.sandbox import HOME, MIB, Sandbox, TreePolicy, TreeTooLarge

OWN_LOGS = "agent"
"""Folder beside a trial's logs with the agent's own account of the run."""
_TOLD = (
    "calls", "requests", "tokens", "cost_usd", "cost_known_usd", "waited_s", "models_asked", "models_sent",
    "models_answered", "statuses", "refused", "media", "exhausted",
)  # fmt: skip
"""What the journal keeps of a gateway's sums."""
_LOG_POLICY = TreePolicy(max_bytes=256 * MIB, max_files=5000)


@dataclass(frozen=True)
class Account:
    """Both accounts of one trial."""

    agent: Agent
    folder: Path
    reported: Reported
    summary: TrialSummary | None

    def decide(
        self, task: Task, outcome: str, reason: str, stopped: Why, exit_code: int | None, changed: bool
    ) -> Decision:
        """The trial's outcome, from `outcome` by clock and container and everything else that is known."""
        facts = Facts(
            outcome=outcome,
            reason=reason,
            stopped=stopped,
            exit_code=exit_code,
            changed=changed,
            reported=self.reported,
            summary=self.summary,
            model=self.agent.model,
            asked=frozenset(call.model_asked for call in read_calls(self.folder) if call.model_asked),
            shows=sum(kind_of(name) == "image" for name in (*task.annotations, *task.attachments)),
            stderr=_end(self.folder / "stderr.log"),
        )
        return decide(facts)

    def usage(self) -> dict[str, Any]:
        """For the submission's manifest: tokens and money by the gateway's count; empty without a model."""
        if self.summary is None:
            return {}
        told = self.summary.model_dump(mode="json")
        return {
            name: told[name]
            for name in ("calls", "tokens", "cost_usd", "models_asked", "models_sent", "models_answered", "media")
        }

    def record(self) -> dict[str, Any]:
        """For the journal: the sums, and what the agent says as `reported_*`. Empty for an agent without a model
        that says nothing."""
        said = {f"reported_{name}": value for name, value in asdict(self.reported).items() if value not in (None, "")}
        if self.summary is None:
            return said
        told = self.summary.model_dump(mode="json")
        return {name: told[name] for name in _TOLD} | said


def account_left(folder: Path) -> dict[str, Any]:
    """For the journal, of a trial that ended before its account was taken: what its gateway added up.

    Where only single calls are on record what they cost together is not known, which is None and never 0."""
    path = folder / SUMMARY
    if path.is_file():
        summary = read_json(path)
        return {name: told for name, told in summary.items() if name in _TOLD} if summary.get("calls") else {}
    return {"cost_usd": None} if read_calls(folder) else {}


def copy_logs(sandbox: Sandbox, agent: Agent, folder: Path) -> None:
    """Copy the agent's own logs out of its frozen container, to `folder/agent/`."""
    for name in agent.own_logs:
        _copy_log(sandbox, name, folder / OWN_LOGS)


def take_account(agent: Agent, line: Line, folder: Path) -> Account:
    """What gateway and agent say, once the line is closed and the logs are there."""
    output = Output(folder / "stdout.log", folder / "stderr.log", folder / OWN_LOGS)
    return Account(agent, folder, agent.reported(output), line.summary())


def tell(agent: Agent, folder: Path, session: str, redactor: Redactor) -> None:
    """Write the trial's trajectory. It is for reading: one that cannot be made is worth no trial, and says why."""
    if agent.protocol is None:
        return
    prompt = (folder / "request.md").read_text(encoding="utf-8", errors="replace")
    try:
        write_trajectory(folder, agent_info(agent), session, prompt, redactor)
    except (CdbError, OSError, ValueError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"
        (folder / "trajectory-error.txt").write_text(said, encoding="utf-8", errors="backslashreplace")


def _copy_log(sandbox: Sandbox, name: str, own: Path) -> None:
    """A log is for reading: one that is missing, or too large to keep, is worth no trial."""
    target = own / name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        sandbox.get_tree(f"{HOME}/{name}", target, _LOG_POLICY)
    except (FileNotFoundError, NotADirectoryError):
        return
    except TreeTooLarge as error:
        (target.parent / f"{target.name}.left-out.json").write_text(json.dumps(str(error)), encoding="utf-8")


def _end(path: Path, limit: int = 2000) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - limit))
        return stream.read().decode("utf-8", "replace")
