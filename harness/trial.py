"""One trial: one agent on one task in one container, ending in a sealed submission whatever happened."""

from __future__ import annotations

import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from git import GitError

from bench.errors import CdbError, InfraError, UsageError
from bench.outcomes import TRIAL
from bench.redact import Redactor
from bench.submission import SubmissionManifest, describe_entries, seal
from bench.task import Task
from harness.account import copy_logs, take_account, tell
from harness.agents.agent import Agent, AgentSetupError, Launch
from harness.digests import hashes
from harness.ending import Decision
from harness.fill import fill
from harness.line import Line, ModelSettings, open_line
from harness.patch import write_patch
from harness.transcript import redact_logs
from harness.watch import Watch
from harness.way_out import WayOut, open_way_out
from sandboxes.egress.client import Egress
from sandboxes.sandbox import WORKSPACE, Exec, Limits, Sandbox, SandboxSpec, TreeTooLarge
from sandboxes.snapshot import manifest_fields, snapshot

_WATCHED = ("/bin/bash", "-c", '"$@"; exit $?', "agent")
"""Runs the agent as a child, so that an agent that kills every process of its user ends as one that was killed
(Linux spares the caller of `kill -9 -1`, which would then report success)."""
_NAMES_IN_JOURNAL = 50

MAX_WAITED_S = 7200.0
"""Rate limits may hold a trial back for so long in all, beyond its own time."""

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
    keep_failed: bool = False
    """Leave the container of a trial that did not end ok."""
    models: ModelSettings | None = None
    egress: Egress | None = None
    """The way out; None is no network at all."""
    packages: bool = False
    """Whether npm and pip find their registries, by the read-only mirror."""
    report: Callable[[str], None] = lambda _line: None
    """Told what a person who waits should know: an agent that is silent."""


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
    names_asked: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    account: dict[str, Any] = field(default_factory=dict)
    """What gateway and agent say: calls, tokens, cost, waiting, `reported_*` (docs/records.md)."""

    digests: dict[str, str] = field(default_factory=dict)
    """attachment → hash of the digest the agent was given of it; empty where it was given the files alone."""
    egress: dict[str, Any] = field(default_factory=dict)
    """What was asked of the network, where there was one (docs/records.md)."""
    packages: dict[str, Any] = field(default_factory=dict)
    """Which packages were asked for, where there were registries (docs/records.md)."""

    def record(self) -> dict[str, Any]:
        told = {"type": "trial", **self.__dict__}
        return {key: value for key, value in told.items() if value or key not in ("egress", "packages")}


def run_trial(
    task: Task, agent: Agent, settings: TrialSettings, folder: Path, open_sandbox: SandboxFactory
) -> TrialResult:
    """Solve `task` with `agent` in a fresh container; `folder` gets the trial's own files (logs, patch).

    The workspace is snapshotted and sealed however the agent ended. Trouble of the machine is an `infra_error`
    with its traceback in `folder/error.txt`, never an exception and never a submission. Raises UsageError for a
    setting with which no trial of the run can work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return replace(_tried(task, agent, settings, folder, open_sandbox), digests=hashes(task))


def _tried(
    task: Task, agent: Agent, settings: TrialSettings, folder: Path, open_sandbox: SandboxFactory
) -> TrialResult:
    began = time.monotonic()
    try:
        with open_way_out(settings.egress, settings.packages, folder) as way:
            result = _solve(task, agent, settings, folder, open_sandbox, way)
            way.close()
        flags = tuple(dict.fromkeys((*result.flags, *way.flags)))
        return replace(result, flags=flags, egress=way.record(), packages=way.packages_asked)
    except UsageError:
        raise  # a setting with which no trial can work ends the run
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
    task: Task, agent: Agent, settings: TrialSettings, folder: Path, open_sandbox: SandboxFactory, way: WayOut
) -> TrialResult:
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    settings.submissions.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{task.case_id}.", dir=settings.submissions))
    label = "/".join((settings.run, agent.name, task.case_id, folder.name))
    try:
        with open_line(agent, settings.models, folder, label) as line:
            launch = agent.launch(task, line.access)
            spec = SandboxSpec(
                role="solver",
                image=settings.image,
                run=settings.run,
                case=task.case_id,
                attempt=settings.attempt,
                limits=settings.limits,
                mounts=[*line.mounts, *way.mounts],
            )
            with open_sandbox(spec) as sandbox, _kept_on_error(sandbox, settings):
                fill(sandbox, task, launch, folder)
                line.connect(sandbox)
                way.connect(sandbox)
                launch = replace(launch, env={**launch.env, **way.env})
                ended, watch = _run(sandbox, launch, line, settings, folder, task)
                names = _names_asked(sandbox, folder)
                if ended.exit_code is None and not ended.timed_out:
                    return _died(task, ended, settings)
                if not ended.timed_out:
                    sandbox.freeze()
                copy_logs(sandbox, agent, folder)
                report = snapshot(partial(sandbox.get_tree, WORKSPACE), staged / "tree", task.start_entries)
                line.close()  # not before: the engine copies out of a container only while all its mounts are there
                way.close()
                described = describe_entries(report.entries, task.start_entries)
                account = take_account(agent, line, folder)
                redactor = Redactor(settings.models.secrets if settings.models else ())
                tell(agent, folder, label, redactor)
                redact_logs(folder, redactor)
                by_clock = _outcome(ended, settings)
                decision = account.decide(
                    task, *by_clock, watch.why, ended.exit_code, bool(described["changed_files"])
                )
                flags = (*decision.flags, *way.flags)
                decision = replace(decision, reason=redactor.text(decision.reason), flags=flags)
                if settings.keep_failed and decision.outcome != "ok":
                    sandbox.keep()
        said = redactor.value(account.record())
        patch = _patch(task, staged / "tree", described, folder)
        if not TRIAL[decision.outcome].submission:
            return _kept_unsealed(task, staged / "tree", folder, decision, said, ended, names)
        manifest = SubmissionManifest(
            case=task.case_id,
            agent=agent.name,
            model=agent.model,
            attempt=settings.attempt,
            outcome=decision.outcome,
            reason=decision.reason,
            flags=list(decision.flags),
            image=settings.image,
            started_at=started_at,
            duration_s=round(ended.duration_s, 3),
            patch=patch,
            usage=account.usage(),
            **manifest_fields(report),
            **described,
        )
        seal(staged / "tree", settings.submissions, manifest)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return TrialResult(
        task.case_id,
        decision.outcome,
        decision.reason,
        manifest.digest,
        manifest.changed_files,
        ended.exit_code,
        manifest.duration_s or 0,
        names,
        decision.flags,
        said,
    )


def _run(
    sandbox: Sandbox, launch: Launch, line: Line, settings: TrialSettings, folder: Path, task: Task
) -> tuple[Exec, Watch]:
    """Run the agent under its watch. Standard input is a file, so that it ends (C32) whatever its size (C34)."""
    stdout, stderr = folder / "stdout.log", folder / "stderr.log"
    watch = Watch(
        settings.timeout_s,
        line,
        (stdout, stderr),
        lambda said: settings.report(f"{task.case_id}: {said}"),
        budget_grace_s=settings.models.budget_grace_s if settings.models else 0.0,
    )
    with tempfile.NamedTemporaryFile(prefix="cdb-stdin-") as stdin:
        stdin.write(launch.stdin or b"")
        stdin.flush()
        ended = sandbox.exec(
            [*_WATCHED, *launch.argv],
            deadline_s=settings.timeout_s + (MAX_WAITED_S if line.access else 0.0),
            env=dict(launch.env),
            stdin=Path(stdin.name) if launch.stdin is not None else None,
            stdout=stdout,
            stderr=stderr,
            stop=watch,
        )
    return ended, watch


def _kept_unsealed(
    task: Task,
    tree: Path,
    folder: Path,
    decision: Decision,
    account: dict[str, Any],
    ended: Exec,
    names: tuple[str, ...],
) -> TrialResult:
    """Trouble that is not the agent's seals no submission; what it had done so far is kept beside the logs."""
    tree.rename(folder / "workspace")
    return TrialResult(
        task.case_id,
        decision.outcome,
        decision.reason,
        exit_code=ended.exit_code,
        duration_s=round(ended.duration_s, 3),
        names_asked=names,
        flags=decision.flags,
        account=account,
    )


@contextmanager
def _kept_on_error(sandbox: Sandbox, settings: TrialSettings) -> Iterator[None]:
    try:
        yield
    except Exception:
        if settings.keep_failed:
            sandbox.keep()
        raise


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


def _died(task: Task, ended: Exec, settings: TrialSettings) -> TrialResult:
    """The container itself died, and the workspace with it. Nothing inside can end it, so either the kernel took it
    for its memory, which is the agent's, or somebody outside did, which is the machine's."""
    if not ended.oom_killed:
        raise InfraError(f"{task.case_id}: its container was ended from outside while the agent ran")
    outcome, reason = _outcome(ended, settings)
    return TrialResult(task.case_id, outcome, f"{reason}; its workspace died with it", duration_s=ended.duration_s)


def _outcome(ended: Exec, settings: TrialSettings) -> tuple[str, str]:
    limits = "; ".join(map(str, ended.limits))
    if ended.timed_out:
        return "agent_timeout", "; ".join(filter(None, (f"stopped after {settings.timeout_s:g} s", limits)))
    if ended.wrecked:
        return "sandbox_broken", ended.wrecked
    if limits:
        return "resource_limit", limits
    if ended.exit_code:
        return "agent_error", f"exit code {ended.exit_code}"
    return "ok", ""


def _names_asked(sandbox: Sandbox, folder: Path) -> tuple[str, ...]:
    """Names the agent looked up, all in `folder/names-asked.txt`, the first ones for the journal."""
    names = sandbox.names_asked()
    if names:
        (folder / "names-asked.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    return names[:_NAMES_IN_JOURNAL]
