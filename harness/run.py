"""A solve run: one entry (agent × model × attempt) over a dataset's tasks, resumable, one journal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.activity import Activity
from bench.errors import UsageError
from bench.journal import Journal, of_type, read_journal
from bench.lockfile import hold_identity, versions
from bench.media.settings import Settings as DigestSettings
from bench.media.settings import settings_of
from bench.outcomes import TRIAL, wanted
from bench.pool import StopFlag, run_all, stopping_on_signals
from bench.submission import check_seal, read_manifest
from bench.task import Dataset, Task
from bench.usage import cost_usd
from harness.account import account_left
from harness.agents.agent import Agent
from harness.digests import hashes, identity, with_digests
from harness.line import ModelSettings
from harness.model_check import ModelCheck, check_model
from harness.models import Conditions
from harness.trial import SandboxFactory, TrialResult, TrialSettings, run_trial
from sandboxes.egress.client import Egress
from sandboxes.sandbox import Limits

MAX_TRIES = 3
"""How often a trial that infrastructure failed is tried in one call."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SolveSettings:
    """What one call of solve is told. `submissions` None puts them into the entry's own folder."""

    out: Path
    image: str
    submissions: Path | None = None
    attempt: int = 1
    timeout_s: float = 3600.0
    limits: Limits = field(default_factory=Limits)
    concurrency: int = 2
    keep_failed: bool = False
    conditions: Conditions = field(default_factory=Conditions)
    models: ModelSettings | None = None
    egress: Egress | None = None
    model_check: bool = False
    """Ask the model for one word first, so that a misspelt one is found before any trial."""
    model_identity: dict[str, Any] = field(default_factory=dict)
    """What the lock keeps of upstream and budget."""
    await_engine: Callable[[Callable[[], bool]], object] = lambda _give_up: None
    """Waits before a trial that infrastructure failed is tried again, so that a restart of the engine is survived."""
    run_usd: float | None = None
    spent_usd: float = 0.0
    """The run's cap, and what its other entries have spent of it; a trial is not begun once it is reached."""
    retry: str | None = None
    """Only what infrastructure failed (`infra`), nothing (`judge`), or this case; None: everything unfinished."""


@dataclass(frozen=True)
class SolveSummary:
    """How an entry stands after a call: its folders and the outcome of every task in scope."""

    entry: Path
    submissions: Path
    outcomes: dict[str, str]

    @property
    def complete(self) -> bool:
        return all(TRIAL[outcome].counts != "unscored" for outcome in self.outcomes.values())


def entry_name(agent: Agent, attempt: int) -> str:
    """`claude-code__opus__1`: agent, model (`none` without one) and attempt, safe as a folder name."""
    return "__".join(
        re.sub(r"[^A-Za-z0-9._-]+", "-", part) for part in (agent.name, agent.model or "none", str(attempt))
    )


def solve(
    dataset: Dataset,
    agent: Agent,
    settings: SolveSettings,
    sandbox_factory: SandboxFactory,
    progress: Progress,
    on_stop: Callable[[], None] = lambda: None,
) -> SolveSummary:
    """Solve every task that has no finished trial yet. `on_stop` frees what trials wait for when the run must stop.

    Raises UsageError when the entry was begun under another identity or another process writes it, Interrupted
    after SIGINT or SIGTERM (finished trials are kept, running containers are killed).
    """
    digesting = settings_of() if settings.conditions.media == "digest" else None
    if digesting:
        dataset = with_digests(dataset, digesting, progress)
    entry = settings.out / entry_name(agent, settings.attempt)
    submissions = settings.submissions or entry / "submissions"
    lock = _identity(dataset, agent, settings, digesting)
    if (
        entry.exists()
    ):  # another identity is refused before anything is paid for; a wrong model leaves no entry behind
        hold_identity(entry, lock)
    checked = _checked(agent, settings, progress) if _waiting(dataset, settings, entry, submissions) else None
    hold_identity(entry, lock)
    with Journal(entry / "journal.jsonl") as journal, stopping_on_signals(on_stop) as stop:
        done = finished(entry, submissions)
        last = last_trials(entry)
        waiting = _waiting(dataset, settings, entry, submissions)
        journal.append({"type": "run", "step": "solve", "waiting": len(waiting), "done": len(done)})
        if checked:
            journal.append(checked.record())
        activity = Activity(entry)
        trial = _trial_job(agent, settings, entry, submissions, sandbox_factory, journal, stop, progress, activity)
        for result in run_all(trial, waiting, concurrency=settings.concurrency, stop=stop):
            done[result.case] = result.outcome
        journal.append({"type": "end", "step": "solve", "outcomes": done})
    ordered = {t.case_id: done.get(t.case_id) or last.get(t.case_id, "not_started") for t in dataset.tasks}
    return SolveSummary(entry, submissions, ordered)


def _waiting(dataset: Dataset, settings: SolveSettings, entry: Path, submissions: Path) -> list[Task]:
    """The tasks that this call has to try."""
    done, last = finished(entry, submissions), last_trials(entry)
    return [
        task
        for task in dataset.tasks
        if task.case_id not in done and wanted(settings.retry, task.case_id, last.get(task.case_id, ""), TRIAL)
    ]


def _checked(agent: Agent, settings: SolveSettings, progress: Progress) -> ModelCheck | None:
    if not settings.model_check or settings.models is None:
        return None
    found = check_model(agent, settings.models)
    if found.note:
        progress(f"{agent.name}: model {found.model}: {found.note}")
    return found


def _trial_job(
    agent: Agent,
    settings: SolveSettings,
    entry: Path,
    submissions: Path,
    open_sandbox: SandboxFactory,
    journal: Journal,
    stop: StopFlag,
    progress: Progress,
    activity: Activity,
) -> Callable[[Task], TrialResult]:
    trial_settings = TrialSettings(
        run=entry.parent.name or "run",
        image=settings.image,
        submissions=submissions,
        attempt=settings.attempt,
        timeout_s=settings.timeout_s,
        limits=settings.limits,
        keep_failed=settings.keep_failed,
        models=settings.models,
        egress=settings.egress,
        packages=settings.conditions.packages == "mirror",
        report=lambda line: progress(f"{agent.name}: {line}"),
    )

    def job(task: Task) -> TrialResult:
        if read_manifest(submissions, task.case_id) is not None:
            return _adopted(task, agent, submissions, journal)
        _record_lost_tries(task, entry, journal)
        if reason := _cap_reached(entry, settings):
            result = TrialResult(task.case_id, "not_started", reason)
            journal.append({**result.record(), "try": 0, "logs": ""})
            progress(f"{agent.name}: {task.case_id} not_started ({reason})")
            return result
        for number in range(1, MAX_TRIES + 1):
            folder = _next_try(entry / "trials" / task.case_id)
            with activity.of(task.case_id, "trial"):
                result = run_trial(task, agent, trial_settings, folder, open_sandbox)
            if not result.account:
                result = replace(result, account=account_left(folder))
            if stop.is_set() and result.digest is None:
                result = replace(result, outcome="cancelled", reason="the run was stopped")
            journal.append({**result.record(), "try": int(folder.name), "logs": str(folder.relative_to(entry))})
            note = f" ({result.reason})" if result.reason else ""
            progress(f"{agent.name}: {task.case_id} {result.outcome}{note} in {result.duration_s:.1f} s")
            if not TRIAL[result.outcome].retry or stop.is_set() or number == MAX_TRIES:
                return result
            settings.await_engine(stop.is_set)
        raise AssertionError("unreachable: the last try returns")

    return job


def _record_lost_tries(task: Task, entry: Path, journal: Journal) -> None:
    """A record for each try of a killed run that called a model and was never written down: it was paid for."""
    told = {record.get("logs") for record in of_type(read_journal(journal.path).records, "trial")}
    for folder in sorted((entry / "trials" / task.case_id).glob("[0-9]*")):
        logs = str(folder.relative_to(entry))
        if logs not in told and (account := account_left(folder)):
            lost = TrialResult(task.case_id, "cancelled", "the run was killed", account=account)
            journal.append({**lost.record(), "try": int(folder.name), "logs": logs})


def _cap_reached(entry: Path, settings: SolveSettings) -> str:
    """Why no further trial may begin; "" when one may. A cost that is not known holds no cap, so it ends the run."""
    if not settings.run_usd:
        return ""
    own = cost_usd(of_type(read_journal(entry / "journal.jsonl").records, "trial"))
    if own is None:
        return f"the run's cap of {settings.run_usd:g} USD cannot be held: the cost of a trial is not known"
    spent = settings.spent_usd + own
    return f"the run's cap of {settings.run_usd:g} USD is reached ({spent:.2f})" if spent >= settings.run_usd else ""


def _adopted(task: Task, agent: Agent, submissions: Path, journal: Journal) -> TrialResult:
    """The result of a seal whose journal line was lost with a killed run. Raises UsageError for someone else's."""
    manifest = read_manifest(submissions, task.case_id)
    assert manifest is not None
    if manifest.agent != agent.name or manifest.model != agent.model or manifest.start_digest != task.start_digest:
        raise UsageError(
            f"{submissions / task.case_id} was sealed already, by {manifest.agent}; choose another --submissions"
        )
    check_seal(submissions, manifest)
    result = TrialResult(
        task.case_id,
        manifest.outcome,
        manifest.reason,
        manifest.digest,
        manifest.changed_files,
        duration_s=manifest.duration_s or 0.0,
        flags=tuple(manifest.flags),
        account=dict(manifest.usage),
        digests=hashes(task),
    )
    journal.append({**result.record(), "try": 0, "logs": "", "adopted": True})
    return result


def _identity(
    dataset: Dataset, agent: Agent, settings: SolveSettings, digesting: DigestSettings | None
) -> dict[str, Any]:
    return {
        "step": "solve",
        "entry": {"agent": agent.name, "model": agent.model, "harness": "cdb", "attempt": settings.attempt},
        "agent": agent.describe(),
        "dataset": {"name": dataset.name, "digest": dataset.digest, "tasks": len(dataset.tasks)},
        "scope": dataset.scope,
        "image": settings.image,
        "limits": asdict(settings.limits),
        "timeout_s": settings.timeout_s,
        "conditions": {
            **settings.conditions.describe(),
            **({"digest": identity(dataset, digesting)} if digesting else {}),
        },
        **({"model": settings.model_identity} if settings.model_identity else {}),
        "versions": versions(),
    }


def last_trials(entry: Path) -> dict[str, str]:
    """The outcome of each case's last trial."""
    records = of_type(read_journal(entry / "journal.jsonl").records, "trial")
    return {str(record["case"]): str(record["outcome"]) for record in records}


def finished(entry: Path, submissions: Path) -> dict[str, str]:
    """Outcome of every case whose last trial needs no more work: final, and sealed where a seal is due."""
    done: dict[str, str] = {}
    for record in of_type(read_journal(entry / "journal.jsonl").records, "trial"):
        case, outcome = str(record["case"]), str(record["outcome"])
        row = TRIAL[outcome]
        sealed = record.get("digest") is None or read_manifest(submissions, case) is not None
        if row.counts != "unscored" and sealed:
            done[case] = outcome
    return done


def _next_try(folder: Path) -> Path:
    """A fresh folder `folder/N`: every try is kept."""
    number = 1
    while (folder / str(number)).exists():
        number += 1
    fresh = folder / str(number)
    fresh.mkdir(parents=True)
    return fresh
