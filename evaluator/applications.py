"""The two running applications of a case: built, served in containers of their own, each with its own browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Playwright

from bench.errors import CdbError, InfraError
from evaluator.browser import AppBrowser
from evaluator.build import RESOLVED_LOCK, BuildResult, build
from evaluator.cases import Case
from evaluator.evidence.levels import EvidenceLevel
from evaluator.frozen_store import FrozenStore
from evaluator.judges.judge import Judge, Refuter
from evaluator.records import CaseOutcome
from evaluator.serve import READY_S, ServeFailed, serve
from evaluator.serve_plan import Fitted, ServePlan, UnknownApplication, fitted
from evaluator.serving_record import TAIL_CHARS, AppServing, ServePhase, ServingRecord
from evaluator.sidecar import browser_for
from evaluator.start_replays import StartReplays
from sandboxes.images import image_tag
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
    mirror: Mirror
    built: Path
    """Where built submissions go, CASE/ each."""
    logs: Path
    """Where build logs go, CASE/ each."""
    start_replays: Path
    """Folder of what was seen on start applications, shared by the judgings that are given the same one."""
    refuter: Refuter | None = None
    frozen: FrozenStore | None = None
    """Answers what applications ask of other addresses; without it all of that is refused."""
    evidence: EvidenceLevel = "minimal"
    """How closely both applications are looked at, and how much of that is kept."""


class NotServed(CdbError):
    """The submission could not be built or served: the application's own fault. `outcome` says which."""

    def __init__(self, outcome: CaseOutcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome: CaseOutcome = outcome


class Applications:
    """Submission and start of one case. The start is served when it is first asked for: often nobody needs it,
    because what was seen on it is kept. Valid within `running_applications`' block, in its thread."""

    def __init__(self, submission: AppBrowser, start_seen: StartReplays, serving: _Serving) -> None:
        self.submission = submission
        self.start_seen = start_seen
        self.flags = serving.record.flags
        """How the submission's building and serving differs from the start's (`evaluator.serving_record`)."""
        self._serving = serving
        self._start: AppBrowser | None = None

    @property
    def start(self) -> AppBrowser:
        """The start application's browser. Raises InfraError when it cannot be served."""
        if self._start is None:
            self._start = self._serving.start()
        return self._start


@dataclass(frozen=True)
class _Serving:
    """What it takes to serve an application of this case; closed with the stack."""

    case: Case
    bench: Bench
    driver: Playwright
    stack: ExitStack
    record: ServingRecord

    def start(self) -> AppBrowser:
        assert self.record.start is not None
        try:
            return self.served(self.record.start)
        except ServeFailed as error:
            raise InfraError(f"{self.case.case}: its start application does not serve: {error}") from error

    def served(self, app: AppServing) -> AppBrowser:
        """Serves a built application and opens a browser beside it. Raises ServeFailed."""
        assert app.build is not None
        run, case, began = self.bench.run, self.case.case, time.monotonic()
        phase = ServePhase(outcome="served", deadline_s=READY_S, duration_s=0.0)
        try:
            running = self.stack.enter_context(serve(app.build.plan, app.build.served, run=run, case=case))
            phase.url = running.url
        except ServeFailed as error:
            phase.outcome, phase.code, phase.reason = "serve_failed", error.code, str(error)
            phase.log = error.log[-TAIL_CHARS:]
            raise
        finally:
            phase.duration_s = round(time.monotonic() - began, 3)
            app.serve = phase
            self.note()
        return self.stack.enter_context(
            browser_for(running, driver=self.driver, run=run, case=case, frozen=self.bench.frozen)
        )

    def note(self) -> None:
        self.record.write(self.bench.logs / self.case.case)


@contextmanager
def running_applications(case: Case, bench: Bench, driver: Playwright) -> Iterator[Applications]:
    """Build both, serve the submission, and the start on demand.

    Raises NotServed when the submission's own fault keeps it from running, InfraError for everything else:
    a start application that does not run is trouble of the dataset or the machine, not a verdict.
    """
    if case.submission is None:
        raise NotServed("missing", "there is no submission")
    project = (bench.cases_folder / case.project).resolve()
    submission = (bench.cases_folder / case.submission.folder).resolve()
    if case.serve_plan is None:
        raise InfraError(f"{case.case}: no way to serve its start application: {case.serve_plan_error}")
    logs, record = bench.logs / case.case, ServingRecord(schema="cdb.serving/1")
    with ExitStack() as stack:
        serving = _Serving(case, bench, driver, stack, record)
        try:
            record.start = AppServing(plan=case.serve_plan)
            start_built = record.start.build = _built_start(case, case.serve_plan, project, bench, logs)
            plan, changes = _plan(case.serve_plan, submission)
            record.submission = AppServing(plan=plan, changes=changes)
            lock = start_build_folder(bench.start_builds, case.start_digest) / RESOLVED_LOCK
            built = _build(plan, submission, bench.built / case.case, case, bench, logs / "build", lock)
            record.submission.build = built
        finally:
            serving.note()
        if built.outcome != "ok":
            raise NotServed("build_failed", f"{built.reason}\n{built.log_tail[-2000:]}".rstrip())
        frozen = bench.frozen.digest if bench.frozen else ""
        start_key = f"{start_built.key} {case.start_digest} {image_tag('browser')} {frozen}".rstrip()
        seen = StartReplays(bench.start_replays, start_key)
        try:
            browser = serving.served(record.submission)
        except ServeFailed as error:
            if error.by_host:
                raise InfraError(f"{case.case}: {error}") from error
            serving.start()  # a start that does not serve either is no fault of the submission
            raise NotServed("serve_failed", f"{error}\n{error.log[-2000:]}") from error
        yield Applications(browser, seen, serving)


def _plan(plan: ServePlan, submission: Path) -> Fitted:
    try:
        return fitted(plan, submission)
    except UnknownApplication as error:
        raise NotServed("build_failed", f"no way to serve the submission: {error}") from error
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        # The plan is read from the submission's own files: what they hold is its doing, whatever we stumble over.
        reason = f"its files cannot be read as an application's ({type(error).__name__}: {error})"
        raise NotServed("build_failed", f"no way to serve the submission: {reason}") from error


def start_build_folder(start_builds: Path, start_digest: str) -> Path:
    """Where a start application is built, once for preflight and all judgings: its place is its content's digest."""
    return start_builds / start_digest.removeprefix("sha256:")[:24]


def _built_start(case: Case, plan: ServePlan, project: Path, bench: Bench, logs: Path) -> BuildResult:
    out = start_build_folder(bench.start_builds, case.start_digest)
    built = _build(plan, project, out, case, bench, logs / "build-start")
    if built.outcome != "ok":
        raise InfraError(f"{case.case}: its start application does not build: {built.reason}")
    return built


def _build(
    plan: ServePlan, tree: Path, out: Path, case: Case, bench: Bench, logs: Path, lock: Path | None = None
) -> BuildResult:
    built = build(plan, tree, out, run=bench.run, case=case.case, mirror=bench.mirror, logs=logs, lock=lock)
    if built.outcome == "infra_error":
        raise InfraError(f"{case.case}: {built.reason}")
    return built
