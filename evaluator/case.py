"""One case: build and serve start and submission, look at both, judge every criterion."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Playwright

from bench.errors import CdbError, InfraError
from bench.outcomes import TRIAL
from bench.submission import check_seal, read_manifest
from evaluator.adjudicate import decide_whole
from evaluator.browser import AppBrowser
from evaluator.build import BuildResult, build
from evaluator.cases import Case
from evaluator.criterion import Applications, Stage, judge_criterion
from evaluator.judges.judge import Judge
from evaluator.recon import look
from evaluator.records import CaseOutcome, CaseRecord, CriterionPlan, CriterionRecord
from evaluator.serve import ServeFailed, serve
from evaluator.serve_plan import ServePlan, fits, learn_plan
from evaluator.sidecar import browser_for
from sandboxes.mirror import Mirror


@dataclass(frozen=True)
class Bench:
    """What every case of a judging shares. `cases_folder`: what the paths in cases.json are relative to."""

    run: str
    cases_folder: Path
    results: Path
    start_builds: Path
    """Built start applications, shared by all judgings: trusted, keyed by content."""
    judge: Judge
    mirror: Mirror | None


@dataclass(frozen=True)
class CaseResult:
    """A case's records, criteria first, ready for the journal."""

    criteria: list[CriterionRecord]
    case: CaseRecord


class NotServed(CdbError):
    """The submission could not be built or served: the application's own fault. `outcome` says which."""

    def __init__(self, outcome: CaseOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome: CaseOutcome = outcome


def judge_case(case: Case, bench: Bench, driver: Playwright) -> CaseResult:
    """Judge one case. Trouble of the machine becomes an unscored `infra_error`, never an exception."""
    began = time.monotonic()
    try:
        result = _judge(case, bench, driver)
    except NotServed as error:
        result = _whole(case, error.outcome, str(error))
    except InfraError as error:
        result = _unscored(case, str(error))
    except Exception as error:  # noqa: BLE001  (the case's outermost edge: recorded, never a score)
        note = bench.results / "evidence" / case.case / "error.txt"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(traceback.format_exc(), encoding="utf-8")
        result = _unscored(case, f"{type(error).__name__}: {error}")
    record = result.case.model_copy(update={"duration_s": round(time.monotonic() - began, 3)})
    return CaseResult(result.criteria, record)


def _judge(case: Case, bench: Bench, driver: Playwright) -> CaseResult:
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
    criteria: list[CriterionRecord] = []
    with running_applications(case, bench, driver) as applications:
        shots = look(applications, bench.results, bench.results / "evidence" / case.case)
        for criterion, plan in zip(case.criteria, case.plan, strict=True):
            if unchanged and plan.kind != "preservation":
                criteria.append(_decided_whole(case, plan, "unchanged", "nothing was changed"))
                continue
            evidence = bench.results / "evidence" / case.case / f"{criterion.criterion_index:02d}"
            stage = Stage(applications, bench.results, evidence)
            criteria.append(judge_criterion(case, criterion, plan, bench.judge, stage))
    record = CaseRecord(
        case=case.case,
        outcome="unchanged" if unchanged else "ok",
        submission_digest=case.submission.digest,
        changed_files=case.submission.changed_files,
        shots=shots,
        flags=list(case.submission.flags),
    )
    return CaseResult(criteria, record)


@contextmanager
def running_applications(case: Case, bench: Bench, driver: Playwright) -> Iterator[Applications]:
    """Start and submission, built and served in containers of their own, each with its own browser.

    Raises NotServed when the submission's own fault keeps it from running, InfraError for everything else:
    a start application that does not run is trouble of the dataset or the machine, not a verdict.
    """
    if case.submission is None:
        raise NotServed("missing", "there is no submission")
    project = (bench.cases_folder / case.project).resolve()
    submission = (bench.cases_folder / case.submission.folder).resolve()
    plan = _start_plan(case)
    logs = bench.results / "evidence" / case.case
    with ExitStack() as stack:
        start_built = _built_start(case, plan, project, bench, logs)
        submission_plan = plan if fits(plan, submission) is None else _learned(submission)
        built = _build(submission_plan, submission, bench.results / "built" / case.case, case, bench, logs / "build")
        if built.outcome != "ok":
            raise NotServed("build_failed", built.reason)
        start_browser = stack.enter_context(_served(plan, start_built.served, case, bench, driver, "start"))
        try:
            submission_browser = stack.enter_context(
                _served(submission_plan, built.served, case, bench, driver, "submission")
            )
        except ServeFailed as error:
            raise NotServed("serve_failed", str(error)) from error
        yield Applications(submission=submission_browser, start=start_browser)


@contextmanager
def _served(
    plan: ServePlan, built: Path, case: Case, bench: Bench, driver: Playwright, which: str
) -> Iterator[AppBrowser]:
    with (
        serve(plan, built, run=bench.run, case=f"{case.case}") as served,
        browser_for(served, driver=driver, run=bench.run, case=case.case) as browser,
    ):
        yield browser


def _start_plan(case: Case) -> ServePlan:
    if case.serve_plan is None:
        raise InfraError(f"{case.case}: no way to serve its start application: {case.serve_plan_error}")
    return case.serve_plan


def _learned(submission: Path) -> ServePlan:
    try:
        return learn_plan(submission)
    except CdbError as error:
        raise NotServed("build_failed", f"no way to serve the submission: {error}") from error


def _built_start(case: Case, plan: ServePlan, project: Path, bench: Bench, logs: Path) -> BuildResult:
    out = bench.start_builds / case.start_digest.removeprefix("sha256:")[:24]
    built = _build(plan, project, out, case, bench, logs / "build-start")
    if built.outcome != "ok":
        raise InfraError(f"{case.case}: its start application does not build: {built.reason}")
    return built


def _build(plan: ServePlan, tree: Path, out: Path, case: Case, bench: Bench, logs: Path) -> BuildResult:
    built = build(plan, tree, out, run=bench.run, case=case.case, mirror=bench.mirror, logs=logs)
    if built.outcome == "infra_error":
        raise InfraError(f"{case.case}: {built.reason}")
    return built


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
    text = next(c for c in case.criteria if c.criterion_index == plan.criterion_index)
    return CriterionRecord(
        case=case.case,
        criterion_index=text.criterion_index,
        rubric_id=text.rubric_id,
        criterion=text.criterion,
        kind=plan.kind,
        outcome="ok",
        reason=reason,
        verdict="FAIL",
        columns=decide_whole("FAIL", rule),
    )


def _unscored(case: Case, reason: str) -> CaseResult:
    criteria = []
    for plan in case.plan:
        text = next(c for c in case.criteria if c.criterion_index == plan.criterion_index)
        criteria.append(
            CriterionRecord(
                case=case.case,
                criterion_index=text.criterion_index,
                rubric_id=text.rubric_id,
                criterion=text.criterion,
                kind=plan.kind,
                outcome="infra_error",
                reason=reason,
                verdict=None,
            )
        )
    return CaseResult(criteria, CaseRecord(case=case.case, outcome="infra_error", reason=reason))
