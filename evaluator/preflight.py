"""`cdb dataset preflight`: every start application built, served and opened once, before anything is paid for.

The same containers, plans and cache as in a judging: what is built here is not built again there, and the versions
that npm had to resolve are kept for every entry. No rubric is needed. The report is written after each case, and the
same command goes on with what is not `ok` yet.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Error as PlaywrightError
from pydantic import Field, ValidationError

from bench.atomic import write_bytes
from bench.cache import cache_folder
from bench.errors import CdbError, InfraError, UsageError
from bench.pool import run_all, stopping_on_signals
from bench.task import Dataset, Task, open_dataset
from evaluator.applications import start_build_folder
from evaluator.browser import AppBrowser, AppPage, PageHung
from evaluator.build import RESOLVED_LOCK, BuildResult, build
from evaluator.frozen_store import FrozenStore, open_store
from evaluator.records import Strict
from evaluator.serve import ServeFailed, serve
from evaluator.serve_file import plan_of
from evaluator.serve_plan import ServePlan
from evaluator.sidecar import browser_for, playwright_driver
from sandboxes.docker_sandbox import kill_open_sandboxes
from sandboxes.images import image_tag
from sandboxes.mirror import Mirror

Status = Literal["ok", "unknown_application", "build_failed", "serve_failed", "not_opened", "blank", "infra_error"]
Progress = Callable[[str], None]
RUN = "preflight"
CONTENT_S = 10.0
VISIT_S = 60.0
TAIL_CHARS = 2_000
CONTENT = """() => {
    const shown = [...document.querySelectorAll('img,svg,canvas,video,audio,iframe,object,input,button')]
        .filter((node) => { const box = node.getBoundingClientRect(); return box.width * box.height > 0; });
    return [document.body ? document.body.innerText.trim().length : 0, shown.length];
}"""


class CaseCheck(Strict):
    """What became of one start application."""

    case: str
    status: Status
    incomplete: bool
    """A judging could not score this case, and its result would be incomplete."""
    reason: str = ""
    code: str = ""
    """Stable name of a build's or serving's fault (`build_timeout`, `serve_exited`, …)."""
    log_tail: str = ""
    flags: list[str] = Field(default_factory=list)
    title: str = ""
    text_chars: int = 0
    console_errors: list[str] = Field(default_factory=list)
    refused_requests: list[str] = Field(default_factory=list)
    """Addresses outside the application that it asked for and did not get: `cdb dataset freeze` records them."""
    picture: str | None = None
    """Screenshot, relative to the report."""
    resolved_lock: bool = False
    """npm had to resolve versions; what it came to is kept in the build cache for every entry."""
    build_reused: bool = False
    build_s: float = 0.0
    duration_s: float = 0.0
    key: str
    """Digest of application, serve plan, images and frozen resources: an `ok` is taken over under the same key."""


class PreflightReport(Strict):
    """The file that is written: `cdb.preflight/1`."""

    schema_: Literal["cdb.preflight/1"] = Field("cdb.preflight/1", alias="schema")
    dataset: str
    cases: list[CaseCheck]

    @property
    def ok(self) -> bool:
        return all(case.status == "ok" for case in self.cases)

    def lines(self) -> list[str]:
        found = [_line(case) for case in self.cases if case.status != "ok"]
        good = sum(case.status == "ok" for case in self.cases)
        missing = [case.case for case in self.cases if case.incomplete]
        note = [f"a result of these tasks would be incomplete: {', '.join(missing)}"] if missing else []
        outside = sorted({case.case for case in self.cases if case.refused_requests})
        freeze = [f"ask for addresses elsewhere (`cdb dataset freeze`): {', '.join(outside)}"] if outside else []
        return [*found, *note, *freeze, f"{good} of {len(self.cases)} start applications are ok"]


@dataclass(frozen=True)
class _Shared:
    """What all cases of one call share."""

    mirror: Mirror
    start_builds: Path
    frozen: FrozenStore | None
    logs: Path
    report: Path


def preflight(
    root: Path,
    out: Path,
    *,
    only: tuple[str, ...] = (),
    concurrency: int = 2,
    frozen: Path | None = None,
    progress: Progress = lambda _line: None,
) -> PreflightReport:
    """Check the start application of every task below an extracted root; write the report to `out`.

    Build logs and screenshots go to `OUT.logs/CASE/`. Raises UsageError for a wrong folder or a report that another
    process is writing, Interrupted after a signal (what was done is in the report).
    """
    dataset = open_dataset(root, only)
    out.parent.mkdir(parents=True, exist_ok=True)
    with _only_writer(out), Mirror() as mirror, stopping_on_signals(kill_open_sandboxes) as stop:
        store = open_store(frozen) if frozen else None
        shared = _Shared(mirror, cache_folder("builds"), store, out.with_name(f"{out.name}.logs"), out)
        done = _kept(out)
        for found in run_all(_job(shared, done), dataset.tasks, concurrency=concurrency, stop=stop):
            if stop.is_set():
                continue  # its containers were taken away: it is checked again
            done[found.case] = found
            _write(out, dataset, done)
            progress(f"{found.case}: {found.status} in {found.duration_s:.1f} s")
    return _write(out, dataset, done)


def _job(shared: _Shared, done: dict[str, CaseCheck]) -> Callable[[Task], CaseCheck]:
    def job(task: Task) -> CaseCheck:
        began = time.monotonic()
        try:
            check = _check(task, shared, done.get(task.case_id))
        except CdbError as error:
            check = CaseCheck(case=task.case_id, status="infra_error", incomplete=True, reason=str(error), key="")
        except Exception as error:  # noqa: BLE001  (the case's outermost edge: reported with its traceback)
            reason = f"{type(error).__name__}: {error}"
            check = CaseCheck(
                case=task.case_id, status="infra_error", incomplete=True, reason=reason, key="",
                log_tail=traceback.format_exc()[-TAIL_CHARS:],
            )  # fmt: skip
        return check.model_copy(update={"duration_s": round(time.monotonic() - began, 3)})

    return job


def _check(task: Task, shared: _Shared, before: CaseCheck | None) -> CaseCheck:
    try:
        plan = plan_of(task.project)
    except CdbError as error:
        return _bad(task, "unknown_application", str(error), "")
    key = _key(task, plan, shared.frozen)
    out = start_build_folder(shared.start_builds, task.start_digest)
    logs = shared.logs / task.case_id
    built = build(plan, task.project, out, run=RUN, case=task.case_id, mirror=shared.mirror, logs=logs / "build")
    if built.outcome != "ok":
        status: Status = "infra_error" if built.outcome == "infra_error" else "build_failed"
        return _bad(task, status, built.reason, key, code=built.code, log_tail=built.log_tail, flags=built.flags)
    is_static = plan.kind == "static"
    if before and before.status == "ok" and before.key == key and (is_static or built.reused):
        return before
    facts = {
        "flags": built.flags,
        "resolved_lock": not is_static and (out / RESOLVED_LOCK).is_file(),
        "build_reused": built.reused,
        "build_s": 0.0 if built.reused else built.duration_s,
    }
    try:
        return _served(task, built, shared, logs, key).model_copy(update=facts)
    except ServeFailed as error:
        return _bad(task, "serve_failed", str(error), key, code=error.code, log_tail=error.log, **facts)


def _served(task: Task, built: BuildResult, shared: _Shared, logs: Path, key: str) -> CaseCheck:
    with (
        playwright_driver() as driver,
        serve(built.plan, built.served, run=RUN, case=task.case_id) as app,
        browser_for(app, driver=driver, run=RUN, case=task.case_id, frozen=shared.frozen) as browser,
    ):
        check = look_once(browser, task.case_id, logs / "page.jpg", key)
        if check.status == "not_opened":
            check.log_tail = app.logs()[-TAIL_CHARS:]
            if not browser.answers():
                raise InfraError(f"{task.case_id}: the browser itself does not answer: {check.reason}")
        if check.picture:
            check.picture = (logs / "page.jpg").relative_to(shared.report.parent).as_posix()
        return check


def look_once(browser: AppBrowser, case: str, picture: Path, key: str) -> CaseCheck:
    """Open the application as a user would, wait for something to be seen, write a screenshot to `picture`."""
    check = CaseCheck(case=case, status="ok", incomplete=False, key=key)
    with browser.open() as visit:
        try:
            with visit.within(VISIT_S):
                status = visit.goto("/")
                seen = _await_content(visit)
                check.title = visit.page.title()[:200]
                picture.parent.mkdir(parents=True, exist_ok=True)
                visit.screenshot(picture)
                check.picture = str(picture)
        except (PlaywrightError, PageHung) as error:
            reason = error.message if isinstance(error, PlaywrightError) else str(error)
            check.status, check.incomplete, check.reason = "not_opened", True, reason.splitlines()[0][:500]
            status, seen = None, (0, 0)
        check.console_errors, check.refused_requests = list(visit.faults), list(visit.refused)
    check.text_chars = seen[0]
    if status is not None and status >= 400:
        check.status, check.incomplete, check.reason = "not_opened", True, f"it answers {status} to a visit"
    elif check.status == "ok" and not any(seen):
        check.status = "blank"
        check.reason = f"the page opens and shows nothing within {CONTENT_S:.0f} s"
        if check.console_errors:
            check.reason += f"; console: {check.console_errors[0]}"
    return check


def _await_content(visit: AppPage) -> tuple[int, int]:
    """Characters of text and visible elements of the page, as soon as there are any."""
    until = time.monotonic() + CONTENT_S
    while True:
        chars, elements = visit.page.evaluate(CONTENT)
        if chars or elements or time.monotonic() > until:
            return int(chars), int(elements)
        visit.page.wait_for_timeout(100)


def _bad(task: Task, status: Status, reason: str, key: str, **facts: object) -> CaseCheck:
    if "log_tail" in facts:
        facts["log_tail"] = str(facts["log_tail"])[-TAIL_CHARS:]
    return CaseCheck.model_validate(
        {"case": task.case_id, "status": status, "incomplete": True, "reason": reason, "key": key, **facts}
    )


def _key(task: Task, plan: ServePlan, frozen: FrozenStore | None) -> str:
    parts = [
        task.start_digest,
        plan.model_dump(mode="json"),
        image_tag("base"),
        image_tag("browser"),
        frozen and frozen.digest,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def _kept(out: Path) -> dict[str, CaseCheck]:
    if not out.is_file():
        return {}
    try:
        report = PreflightReport.model_validate_json(out.read_bytes())
    except ValidationError as error:
        raise UsageError(
            f"{out} is no preflight report ({error.errors()[0]['msg']}); choose another --out"
        ) from error
    return {case.case: case for case in report.cases}


def _write(out: Path, dataset: Dataset, done: dict[str, CaseCheck]) -> PreflightReport:
    """Write everything known so far, in the dataset's order; returns the part that is in scope."""
    everything = [done[case] for case in dataset.declared if case in done]
    report = PreflightReport(schema="cdb.preflight/1", dataset=dataset.name, cases=everything)
    write_bytes(out, report.model_dump_json(indent=2, by_alias=True).encode() + b"\n")
    chosen = {task.case_id for task in dataset.tasks}
    return report.model_copy(update={"cases": [case for case in everything if case.case in chosen]})


@contextmanager
def _only_writer(out: Path) -> Iterator[None]:
    with out.with_name(f".{out.name}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"another process is writing {out}; wait for it, or choose another --out") from error
        yield


def _line(case: CaseCheck) -> str:
    first = case.reason.splitlines()[0] if case.reason else ""
    tail = "".join(f"\n    {line}" for line in case.log_tail.splitlines()[-8:])
    return f"{case.case}: {case.status} {case.code}: {first}{tail}"
