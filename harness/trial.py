"""One trial: one agent on one task in one container, ending in a sealed submission whatever happened."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from git import GitError

from bench.errors import CdbError, InfraError
from bench.submission import SubmissionManifest, describe_entries, seal
from bench.task import VERSION_CONTROL, Task
from harness.agents.agent import PROMPT_FILE, Agent, AgentSetupError, Launch
from harness.patch import write_patch
from harness.prompt import prompt
from sandboxes.sandbox import HOME, WORKSPACE, Exec, Limits, Sandbox, SandboxSpec, TreeTooLarge
from sandboxes.snapshot import manifest_fields, snapshot

SandboxFactory = Callable[[SandboxSpec], AbstractContextManager[Sandbox]]


@dataclass(frozen=True)
class TrialSettings:
    """What is the same for every trial of an entry."""

    run: str
    image: str
    submissions: Path
    attempt: int = 1
    timeout_s: float = 3600.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class TrialResult:
    """A trial's record for the journal; `outcome` is a row of bench.outcomes.TRIAL."""

    case: str
    outcome: str
    reason: str = ""
    digest: str | None = None
    changed_files: int | None = None
    exit_code: int | None = None
    duration_s: float = 0.0

    def record(self) -> dict[str, Any]:
        return {"type": "trial", **self.__dict__}


def run_trial(
    task: Task, agent: Agent, settings: TrialSettings, folder: Path, open_sandbox: SandboxFactory
) -> TrialResult:
    """Solve `task` with `agent` in a fresh container; `folder` gets the trial's own files (logs, patch).

    The workspace is snapshotted and sealed however the agent ended. Trouble of the machine is an `infra_error`
    with its traceback in `folder/error.txt`, never an exception and never a submission.
    """
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    try:
        return _solve(task, agent, settings, folder, open_sandbox)
    except AgentSetupError as error:
        return TrialResult(task.case_id, "setup_error", str(error), duration_s=_since(began))
    except TreeTooLarge as error:
        return TrialResult(task.case_id, "workspace_too_large", str(error), duration_s=_since(began))
    except (CdbError, OSError) as error:
        return _infra(task, folder, error, began)
    except Exception as error:  # noqa: BLE001  (the trial's outermost edge: recorded, never a score)
        return _infra(task, folder, error, began)


def _infra(task: Task, folder: Path, error: Exception, began: float) -> TrialResult:
    (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
    return TrialResult(task.case_id, "infra_error", f"{type(error).__name__}: {error}", duration_s=_since(began))


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)


def _solve(
    task: Task, agent: Agent, settings: TrialSettings, folder: Path, open_sandbox: SandboxFactory
) -> TrialResult:
    launch = agent.launch(task)
    spec = SandboxSpec(
        role="solver",
        image=settings.image,
        run=settings.run,
        case=task.case_id,
        attempt=settings.attempt,
        limits=settings.limits,
    )
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    settings.submissions.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{task.case_id}.", dir=settings.submissions))
    try:
        with open_sandbox(spec) as sandbox:
            prompt_file = _fill(sandbox, task, launch, folder)
            ended = sandbox.exec(
                launch.argv,
                deadline_s=settings.timeout_s,
                env=dict(launch.env),
                stdin=prompt_file if launch.prompt_on_stdin else None,
                stdout=folder / "stdout.log",
                stderr=folder / "stderr.log",
            )
            if ended.exit_code is None and not ended.timed_out:
                return _died(task, ended, settings)
            if not ended.timed_out:
                sandbox.freeze()
            report = snapshot(partial(sandbox.get_tree, WORKSPACE), staged / "tree", task.start_entries)
        outcome, reason = _outcome(ended, settings)
        described = describe_entries(report.entries, task.start_entries)
        patch = _patch(task, staged / "tree", described, folder)
        manifest = SubmissionManifest(
            case=task.case_id,
            agent=agent.name,
            model=agent.model,
            attempt=settings.attempt,
            outcome=outcome,
            reason=reason,
            image=settings.image,
            started_at=started_at,
            duration_s=round(ended.duration_s, 3),
            patch=patch,
            **manifest_fields(report),
            **described,
        )
        seal(staged / "tree", settings.submissions, manifest)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return TrialResult(
        task.case_id,
        outcome,
        reason,
        manifest.digest,
        manifest.changed_files,
        ended.exit_code,
        manifest.duration_s or 0,
    )


def _patch(task: Task, tree: Path, described: dict[str, Any], folder: Path) -> str | None:
    """The patch's name, or None when nothing changed or git failed: a patch is for reading, never worth a trial."""
    if not described["changed_files"]:
        return None
    try:
        write_patch(
            task.project,
            task.start_entries,
            tree,
            described["files"],
            folder / "changes.patch",
            folder / "changes-not-shown.txt",
        )
    except (GitError, OSError) as error:
        (folder / "patch-error.txt").write_text(str(error), encoding="utf-8", errors="backslashreplace")
        return None
    return "changes.patch"


def _fill(sandbox: Sandbox, task: Task, launch: Launch, folder: Path) -> Path:
    """Put the application into the workspace, prompt and the agent's own files into its home."""
    with tempfile.TemporaryDirectory(prefix="cdb-home-") as scratch:
        home = Path(scratch)
        prompt_file = folder / "request.md"
        prompt_file.write_bytes(prompt(task).encode("utf-8", "surrogatepass"))
        shutil.copyfile(prompt_file, home / Path(PROMPT_FILE).name)
        for name, source in launch.home_files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, home / name)
        sandbox.put_tree(home, HOME)
        _put_application(sandbox, task)
    return prompt_file


def _put_application(sandbox: Sandbox, task: Task) -> None:
    """Copy the application in; its history, if it has one, is replaced by a single baseline commit (C18). Histories
    further down (of sub-modules) are left away."""
    sandbox.put_tree(task.project, WORKSPACE, without=frozenset({VERSION_CONTROL}))
    if not os.path.lexists(task.project / VERSION_CONTROL):
        return
    identity = ["-c", "user.name=baseline", "-c", "user.email=baseline@localhost"]
    for argv in (["init", "-q"], ["add", "-A", "-f"], [*identity, "commit", "-q", "-m", "baseline", "--allow-empty"]):
        ended = sandbox.exec(["git", *argv], deadline_s=120)
        if not ended.ok:
            raise InfraError(f"{task.case_id}: `git {argv[0]}` for the baseline commit ended with {ended.exit_code}")


def _died(task: Task, ended: Exec, settings: TrialSettings) -> TrialResult:
    """The container itself died, and the workspace with it. Nothing inside can end it, so either the kernel took it
    for its memory, which is the agent's, or somebody outside did, which is the machine's."""
    if not ended.oom_killed:
        raise InfraError(f"{task.case_id}: its container was ended from outside while the agent ran")
    outcome, reason = _outcome(ended, settings)
    return TrialResult(task.case_id, outcome, f"{reason}; its workspace died with it", duration_s=ended.duration_s)


def _outcome(ended: Exec, settings: TrialSettings) -> tuple[str, str]:
    if ended.timed_out:
        return "agent_timeout", f"stopped after {settings.timeout_s:g} s"
    if ended.oom_killed:
        return "resource_limit", f"memory: over {settings.limits.memory_bytes} bytes"
    if ended.exit_code:
        return "agent_error", f"exit code {ended.exit_code}"
    return "ok", ""
