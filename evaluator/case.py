"""One case: look at start and submission, judge every criterion; or decide it as a whole where nothing runs."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Playwright

from bench.errors import InfraError
from bench.outcomes import TRIAL
from bench.submission import check_seal, read_manifest
from bench.tree import digest, list_tree
from evaluator.adjudicate import decide_whole
from evaluator.advocate import with_advocate
from evaluator.applications import Bench, NotServed, running_applications
from evaluator.cases import Case
from evaluator.criterion import CriterionBroken, about, judge_criterion
from evaluator.evidence.levels import records_visits
from evaluator.evidence.store import keep_evidence, keep_pair
from evaluator.judges.judge import Exhibits
from evaluator.probes.facts import Ground
from evaluator.recon import look
from evaluator.records import CaseOutcome, CaseRecord, CriterionPlan, CriterionRecord
from evaluator.stage import Stage


@dataclass(frozen=True)
class CaseResult:
    """A case's records, criteria first, ready for the journal."""

    criteria: list[CriterionRecord]
    case: CaseRecord


Keep = Callable[[CriterionRecord], None]
"""Takes a criterion's record as soon as it is made: a paid verdict must outlive whatever ends its case."""


def judge_case(
    case: Case, bench: Bench, driver: Playwright, done: Set[int] = frozenset(), keep: Keep = lambda _record: None
) -> CaseResult:
    """Judge one case, but for the criteria in `done` (indexes), which have their verdicts.

    Trouble of the machine becomes an unscored `infra_error`, never an exception; what was judged before it stands.
    """
    began = time.monotonic()
    finished: list[CriterionRecord] = []

    def finish(record: CriterionRecord) -> None:
        finished.append(record)
        keep(record)

    try:
        result = _judge(case, bench, driver, done, finish)
        result = CaseResult(finished or result.criteria, result.case)
    except NotServed as error:
        result = _whole(case, error.outcome, str(error))
    except InfraError as error:
        result = _unscored(case, str(error), finished)
    except Exception as error:  # noqa: BLE001  (the case's outermost edge: recorded, never a score)
        note = bench.results / "evidence" / case.case / "error.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(traceback.format_exc(), encoding="utf-8")
        result = _unscored(case, f"{type(error).__name__}: {error}", finished)
    kept = keep_evidence(bench.results, case.case, bench.evidence)
    took = round(time.monotonic() - began, 3)
    record = result.case.model_copy(update={"duration_s": took, "evidence_sha256": kept})
    return CaseResult([c for c in result.criteria if c.criterion_index not in done], record)


def _judge(case: Case, bench: Bench, driver: Playwright, done: Set[int], finish: Keep) -> CaseResult:
    """The case's record; the criteria's go to `finish`, but for those that the case as a whole decides."""
    if case.rubric_error:
        return _unscored(case, f"the rubric cannot be read: {case.rubric_error}")
    if case.submission is None:
        if case.trial and TRIAL[case.trial.outcome].counts == "unscored":
            return _unscored(case, f"the trial ended as {case.trial.outcome}: {case.trial.reason}")
        return _whole(case, "missing", case.trial.reason if case.trial else "no submission")
    folder = bench.cases_folder / case.submission.folder
    manifest = read_manifest(folder.parent, case.case)
    if manifest is None:
        raise InfraError(f"{case.case}: the seal beside {folder} is gone; run `cdb prepare` again")
    check_seal(folder.parent, manifest)
    if manifest.digest != case.submission.digest:
        raise InfraError(f"{case.case}: the submission was sealed anew since `cdb prepare`; run it again")
    unchanged = case.submission.changed_files == 0
    with running_applications(case, bench, driver) as applications:
        attachments = [attachment.path for attachment in case.attachments]
        seen = look(applications, bench.results, bench.results / "evidence" / case.case, attachments, bench.evidence)
        exhibits = Exhibits(
            case=case,
            submission=folder,
            start=bench.cases_folder / case.project,
            running=applications,
            folder=bench.results / "evidence" / case.case,
            shots={name: bench.results / path for name, path in seen.shots.items()},
            digests=_digests(case, bench),
        )
        judge = bench.judge.in_case(exhibits)
        refuter = bench.refuter.in_case(exhibits) if bench.refuter else None
        for criterion, plan in zip(case.criteria, case.plan, strict=True):
            if criterion.criterion_index in done:
                continue
            if unchanged and plan.kind != "preservation":
                finish(_decided_whole(case, plan, "unchanged", "nothing was changed"))
                continue
            if plan.kind == "media" and seen.unplayable:
                finish(_cannot_play(case, plan, seen.unplayable))
                continue
            evidence = bench.results / "evidence" / case.case / f"{criterion.criterion_index:02d}"
            shutil.rmtree(evidence, ignore_errors=True)  # of an attempt that was never journalled
            stage = Stage(
                applications,
                bench.results,
                evidence,
                records_visits=records_visits(bench.evidence),
                ground=Ground(applications, exhibits.submission, exhibits.start, evidence / "probe"),
            )
            try:
                judged = judge_criterion(case, criterion, plan, judge, stage, refuter)
            except CriterionBroken as error:
                finish(error.record)
                raise
            judged = with_advocate(judged, case, criterion, plan, judge, stage)
            keep_pair(bench.results, evidence, judged.start_frame, judged.submission_frame, bench.evidence)
            kept = digest(list_tree(evidence)) if evidence.is_dir() else None
            finish(judged.model_copy(update={"evidence_digest": kept}))
    record = CaseRecord(
        case=case.case,
        outcome="unchanged" if unchanged else "ok",
        submission_digest=case.submission.digest,
        changed_files=case.submission.changed_files,
        shots=seen.shots,
        flags=[
            *case.submission.flags,
            *applications.flags,
            *(["new_hosts"] if seen.new_hosts else []),
            *(["flows_lost"] if seen.flows_lost else []),
        ],
    )
    return CaseResult([], record)


def _digests(case: Case, bench: Bench) -> dict[str, Path]:
    """Where each attachment's digest lies. Raises InfraError for one that is not what `cdb prepare` made."""
    found = {}
    for attachment in case.attachments:
        if attachment.digest is None:
            continue
        folder = bench.cases_folder / attachment.digest
        if not folder.is_dir() or digest(list_tree(folder)) != attachment.digest_sha256:
            raise InfraError(f"{case.case}: the digest in {folder} is gone or was changed; run `cdb prepare` again")
        found[attachment.path] = folder
    return found


def _whole(case: Case, outcome: CaseOutcome, reason: str) -> CaseResult:
    """Every criterion FAIL by one rule of the case, without asking or running anything."""
    criteria = [_decided_whole(case, plan, outcome, reason) for plan in case.plan]
    submission = case.submission
    return CaseResult(
        criteria,
        CaseRecord(
            case=case.case,
            outcome=outcome,
            reason=reason,
            submission_digest=submission.digest if submission else None,
            changed_files=submission.changed_files if submission else None,
        ),
    )


def _decided_whole(case: Case, plan: CriterionPlan, rule: str, reason: str) -> CriterionRecord:
    return CriterionRecord(
        **about(case, plan), outcome="ok", reason=reason, verdict="FAIL", columns=decide_whole("FAIL", rule)
    )


def _cannot_play(case: Case, plan: CriterionPlan, unplayable: dict[str, str]) -> CriterionRecord:
    """A criterion about media on a machine that cannot play the task's own: no verdict can be had here."""
    listed = "; ".join(f"{path} ({why})" for path, why in unplayable.items())
    reason = f"this machine's browser cannot play or show {listed}"
    return CriterionRecord(**about(case, plan), outcome="infra_error", reason=reason, verdict=None)


def _unscored(case: Case, reason: str, finished: Sequence[CriterionRecord] = ()) -> CaseResult:
    judged = {record.criterion_index for record in finished}
    criteria = [
        *finished,
        *(
            CriterionRecord(**about(case, plan), outcome="infra_error", reason=reason, verdict=None)
            for plan in case.plan
            if plan.criterion_index not in judged
        ),
    ]
    return CaseResult(criteria, CaseRecord(case=case.case, outcome="infra_error", reason=reason))
