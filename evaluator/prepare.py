"""`cdb prepare`: read the rubrics, check every seal, find plans, learn how each start application is served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.errors import CdbError, DataError
from bench.journal import of_type, read_journal
from bench.media.digest import keep_digest
from bench.media.settings import settings_of
from bench.strict_json import read_json
from bench.submission import MADE_ELSEWHERE, check_seal, read_manifest, who_made
from bench.task import Task, open_dataset
from bench.tree import file_sha256
from evaluator.attachments import kind_of, primary_kind
from evaluator.cases import (
    AttachmentFacts,
    Case,
    Cases,
    CriterionText,
    SubmissionFacts,
    TrialFacts,
    relative,
    write_cases,
)
from evaluator.made_elsewhere import seal_made_elsewhere, told
from evaluator.plans import plan_case, plans_digest
from evaluator.records import CasePlan
from evaluator.rubric import Criterion, read_rubrics
from evaluator.serve_file import plan_of
from evaluator.serve_plan import ServePlan
from evaluator.submissions_folder import check_folder

Progress = Callable[[str], None]
RESEALED = "resealed"
"""Flag of a submission in an entry of ours that is not what its trial sealed."""


def prepare(
    dataset_root: Path,
    submissions: Path,
    out: Path,
    *,
    plans: Path | None = None,
    only: tuple[str, ...] = (),
    progress: Progress = lambda _line: None,
) -> Cases:
    """Write `out/cases.json` for every case in scope, submitted or not.

    Raises UsageError for a wrong folder, DataError for a broken seal or rubric (naming the file).
    """
    dataset = open_dataset(dataset_root, only)
    damaged: dict[str, str] = {}
    rubrics = read_rubrics(dataset, damaged)
    for case, why in damaged.items():  # one damaged rubric must not stop the other cases (C123)
        progress(f"{case}: stays unscored, its rubric cannot be read: {why}")
    check_folder(submissions, dataset, progress)
    entry = _entry(submissions)
    trials = _trials(submissions, [task.case_id for task in dataset.tasks])
    out.mkdir(parents=True, exist_ok=True)
    cases, case_plans = [], []
    for task in dataset.tasks:
        criteria, rubric_error = rubrics.get(task.case_id, ()), damaged.get(task.case_id, "")
        plan, planned = (
            (CasePlan(case=task.case_id, criteria=[]), False)
            if rubric_error
            else plan_case(task.case_id, criteria, plans)
        )
        case_plans.append(plan)
        made = _case(task, criteria, plan, planned, submissions, trials.get(task.case_id), entry, out, progress)
        cases.append(made.model_copy(update={"rubric_error": rubric_error}))
    if any(case.submission and RESEALED in case.submission.flags for case in cases):
        entry = {**entry, "reportable": False}
    found = Cases(
        dataset={
            "name": dataset.name,
            "digest": dataset.digest,
            "tasks": len(cases),
            "criteria": sum(len(case.criteria) for case in cases),
        },
        scope=dataset.scope,
        entry=entry,
        solve=_solve_settings(submissions),
        plans_sha256=plans_digest(case_plans),
        cases=cases,
    )
    write_cases(found, out / "cases.json")
    return found


def _case(
    task: Task,
    criteria: tuple[Criterion, ...],
    plan: CasePlan,
    planned: bool,
    submissions: Path,
    trial: TrialFacts | None,
    entry: dict[str, Any],
    out: Path,
    progress: Progress,
) -> Case:
    serve_plan, plan_error = _serve_plan(task)
    submission = _submission(task, submissions, trial, entry, out, progress)
    return Case(
        case=task.case_id,
        request="\n\n".join(task.queries),
        attachment=primary_kind(task.attachments),
        attachments=[_attachment(task, name, out, progress) for name in task.attachments],
        annotation=relative(task.project / task.annotations[0], out) if task.annotations else None,
        project=relative(task.project, out),
        start_digest=task.start_digest,
        serve_plan=serve_plan,
        serve_plan_error=plan_error,
        criteria=[
            CriterionText(criterion_index=c.criterion_index, rubric_id=c.rubric_id, criterion=c.text)
            for c in criteria
        ],
        plan=plan.criteria,
        planned=planned,
        submission=submission,
        trial=None if submission else trial,
    )


def _serve_plan(task: Task) -> tuple[ServePlan | None, str]:
    try:
        return plan_of(task.project), ""
    except CdbError as error:
        return None, str(error)


def _attachment(task: Task, name: str, out: Path, progress: Progress) -> AttachmentFacts:
    """Facts and digest, the latter copied from the cache into `out/digests/CASE/`, so that `out` stands alone."""
    path = task.project / name
    progress(f"{task.case_id}: digest of {name}")
    kept = out / "digests" / task.case_id / name
    digest_sha256 = keep_digest(path, settings_of(), kept)
    return AttachmentFacts(
        path=name,
        kind=kind_of(name),
        bytes=path.stat().st_size,
        sha256=file_sha256(path),
        digest=relative(kept, out),
        digest_sha256=digest_sha256,
    )


def _submission(
    task: Task, submissions: Path, trial: TrialFacts | None, entry: dict[str, Any], out: Path, progress: Progress
) -> SubmissionFacts | None:
    folder = submissions / task.case_id
    manifest = read_manifest(submissions, task.case_id)
    if manifest is None:
        if not folder.is_dir():
            return None
        where, manifest = seal_made_elsewhere(folder, task, out, {} if trial else entry)
        copied = "" if where == folder else f", as a copy in {where}: {told(manifest)}"
        progress(f"{task.case_id}: no seal beside it, so it is sealed now as made elsewhere{copied}")
        folder = where
    check_seal(folder.parent, manifest)
    changed = 0 if manifest.digest == task.start_digest else max(1, manifest.changed_files or 1)
    flags = [] if manifest.outcome in ("ok", MADE_ELSEWHERE) else [manifest.outcome]
    flags += manifest.flags
    if trial and trial.outcome != "not_started" and trial.digest != manifest.digest:
        progress(f"{task.case_id}: not what its trial left; it is a submission of unknown origin now")
        flags.append(RESEALED)
    return SubmissionFacts(
        folder=relative(folder, out),
        digest=manifest.digest,
        changed_files=changed,
        outcome=manifest.outcome,
        flags=flags,
    )


def _entry(submissions: Path) -> dict[str, Any]:
    """Who made the submissions: our own run's lock, `entry.json`, or nobody we know."""
    lock = submissions.parent / "lock.json"
    if lock.is_file() and not (submissions / "entry.json").is_file():
        content = read_json(lock)
        if not isinstance(content, dict) or not isinstance(content.get("entry"), dict):
            raise DataError(
                f"{lock} has no `entry`; is it a lock of ours? Move it away, or name the maker in entry.json"
            )
        return {**content["entry"], "reportable": True}
    who = who_made(submissions)
    if not who.get("agent"):
        return {"agent": "unknown", "model": None, "harness": None, "attempt": 1, "reportable": False}
    return {"model": None, "harness": None, "attempt": 1, **who, "reportable": True}


def _solve_settings(submissions: Path) -> dict[str, Any]:
    """What the solve run's lock says of conditions and limits, for an entry of ours."""
    lock = submissions.parent / "lock.json"
    if not lock.is_file() or (submissions / "entry.json").is_file():
        return {}
    content = read_json(lock)
    kept = ("agent", "conditions", "limits", "timeout_s", "image", "versions")
    found = {key: content[key] for key in kept if key in content}
    return {**found, "caps": content["model"].get("caps")} if isinstance(content.get("model"), dict) else found


def _trials(submissions: Path, cases: list[str]) -> dict[str, TrialFacts]:
    """The last trial record of each case, when the submissions lie in an entry of ours.

    A case that a solve run has not come to is `not_started`, so unscored: that nothing is there says nothing yet.
    """
    journal = submissions.parent / "journal.jsonl"
    if not journal.is_file():
        return {}
    records = read_journal(journal).records
    not_begun = TrialFacts(outcome="not_started", reason="the solve run has not come to this case yet")
    begun = any(record.get("step") == "solve" for record in of_type(records, "run"))
    return (dict.fromkeys(cases, not_begun) if begun else {}) | {
        str(r["case"]): TrialFacts(outcome=str(r["outcome"]), reason=str(r.get("reason", "")), digest=r.get("digest"))
        for r in of_type(records, "trial")
    }
