"""The two running applications of a case: built, served in containers of their own, each with its own browser."""

from __future__ import annotations

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
from evaluator.serve import ServeFailed, serve
from evaluator.serve_plan import ServePlan, fits, learn_plan
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
    start_built: BuildResult

    def start(self) -> AppBrowser:
        try:
            return self.served(self.start_built)
        except ServeFailed as error:
            raise InfraError(f"{self.case.case}: its start application does not serve: {error}") from error

    def served(self, built: BuildResult) -> AppBrowser:
        run, case = self.bench.run, self.case.case
        app = self.stack.enter_context(serve(built.plan, built.served, run=run, case=case))
        return self.stack.enter_context(
            browser_for(app, driver=self.driver, run=run, case=case, frozen=self.bench.frozen)
        )


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
    logs = bench.logs / case.case
    with ExitStack() as stack:
        start_built = _built_start(case, case.serve_plan, project, bench, logs)
        plan = case.serve_plan if fits(case.serve_plan, submission) is None else _learned(submission)
        lock = start_build_folder(bench.start_builds, case.start_digest) / RESOLVED_LOCK
        built = _build(plan, submission, bench.built / case.case, case, bench, logs / "build", lock)
        if built.outcome != "ok":
            raise NotServed("build_failed", built.reason)
        serving = _Serving(case, bench, driver, stack, start_built)
        frozen = bench.frozen.digest if bench.frozen else ""
        start_key = f"{start_built.key} {case.start_digest} {image_tag('browser')} {frozen}".rstrip()
        seen = StartReplays(bench.start_replays, start_key)
        try:
            browser = serving.served(built)
        except ServeFailed as error:
            serving.start()  # a start that does not serve either is no fault of the submission
            raise NotServed("serve_failed", f"{error}\n{error.log[-2000:]}") from error
        yield Applications(browser, seen, serving)


def _learned(submission: Path) -> ServePlan:
    try:
        return learn_plan(submission)
    except CdbError as error:
        raise NotServed("build_failed", f"no way to serve the submission: {error}") from error


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
