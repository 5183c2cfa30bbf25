"""`cdb judge`: every case of a cases.json, judged and journalled; resumable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.activity import Activity
from bench.cache import cache_folder
from bench.journal import Journal, of_type, read_journal
from bench.lockfile import hold_identity, versions
from bench.outcomes import CRITERION, wanted
from bench.pool import StopFlag, run_all, stopping_on_signals
from evaluator.applications import Bench
from evaluator.audit_queue import write_audit_queue
from evaluator.browser_image import browser_facts
from evaluator.case import CaseResult, judge_case
from evaluator.cases import Case, Cases, moved, read_cases, what_is_judged, write_cases
from evaluator.evidence.levels import EvidenceLevel
from evaluator.frozen_store import FrozenStore, open_store
from evaluator.judged import judged_so_far
from evaluator.judges.judge import Judge, Refuter
from evaluator.records import CriterionRecord
from evaluator.sidecar import playwright_driver
from sandboxes.docker_sandbox import kill_open_sandboxes
from sandboxes.images import image_tag
from sandboxes.mirror import Mirror

Progress = Callable[[str], None]


@dataclass(frozen=True)
class JudgeSummary:
    """How a judging stands after a call."""

    results: Path
    cases: int
    criteria: int
    unscored: int


def judge_all(
    cases_file: Path,
    results: Path,
    judge: Judge,
    *,
    concurrency: int = 2,
    start_replays: Path | None = None,
    refuter: Refuter | None = None,
    frozen: Path | None = None,
    retry: str | None = None,
    evidence: EvidenceLevel = "minimal",
    progress: Progress = lambda _line: None,
) -> JudgeSummary:
    """Judge every case that has no final record yet.

    `start_replays`: a folder several judgings of one run share, so that a witness runs on a start application once
    for all of them; by default the judging's own. `frozen`: the store that answers what applications ask of other
    addresses (`cdb dataset freeze`); a condition, named by its digest. `retry`: only criteria that infrastructure
    (`infra`) or the judge (`judge`) left without a verdict, or those of this case; None: everything unfinished.
    `evidence`: how closely applications are looked at and how much is kept; judges see it, so it is in the lock.

    Raises UsageError when `results` was begun as another judging or is being written or when the judge's first call
    fails, Interrupted after a signal.
    """
    with ExitStack() as held:
        for one in (judge, refuter):
            if one:
                held.callback(one.close)
        return _judge_all(
            cases_file,
            results,
            judge,
            refuter,
            concurrency,
            start_replays or results / "start",
            frozen,
            retry,
            evidence,
            progress,
        )


def _judge_all(
    cases_file: Path,
    results: Path,
    judge: Judge,
    refuter: Refuter | None,
    concurrency: int,
    start_replays: Path,
    frozen: Path | None,
    retry: str | None,
    evidence: EvidenceLevel,
    progress: Progress,
) -> JudgeSummary:
    cases = read_cases(cases_file)
    if _is_left(cases, results):
        judge.check()
        if refuter:
            refuter.check()
    store = open_store(frozen) if frozen else None
    hold_identity(results, _identity(cases, judge, refuter, store, evidence), may_fill="submissions")
    write_cases(moved(cases, cases_file.parent, results), results / "cases.json")
    cases = read_cases(results / "cases.json")
    with (
        Journal(results / "journal.jsonl") as journal,
        Mirror(log=results / "mirror.jsonl") as mirror,
        stopping_on_signals(partial(_stop, judge, refuter)) as stop,
    ):
        bench = Bench(
            run=results.name,
            cases_folder=results,
            results=results,
            start_builds=cache_folder("builds"),
            judge=judge,
            mirror=mirror,
            built=results / "built",
            logs=results / "evidence",
            start_replays=start_replays,
            refuter=refuter,
            frozen=store,
            evidence=evidence,
        )
        records = read_journal(results / "journal.jsonl").records
        judge.carry(list(of_type(records, "criterion")))
        so_far = judged_so_far(records)
        keep = _Kept(journal, {key: int(record["seq"]) for key, record in so_far.last.items()}, stop)
        left_alone = set(so_far.decided)  # never judged again
        if retry:
            keys = [(case.case, c.criterion_index) for case in cases.cases for c in case.criteria]
            left_alone |= {k for k in keys if not wanted(retry, k[0], so_far.outcome(k), CRITERION)}
        waiting = [case for case in cases.cases if not so_far.is_finished(case, left_alone)]
        if retry:
            waiting = [c for c in waiting if any((c.case, k.criterion_index) not in left_alone for k in c.criteria)]
        journal.append({"type": "run", "step": "judge", "waiting": len(waiting)})
        for result in run_all(
            _case_job(bench, left_alone, progress, Activity(results), keep),
            waiting,
            concurrency=concurrency,
            stop=stop,
        ):
            if not stop.is_set():  # a stopped case lost its containers: what it had not judged is not recorded
                for criterion in result.criteria:
                    keep(criterion)
                journal.append(result.case.model_dump(mode="json"))
        journal.append({"type": "end", "step": "judge"})
        last = judged_so_far(read_journal(results / "journal.jsonl").records).last
        order = [(case.case, c.criterion_index) for case in cases.cases for c in case.criteria]
        write_audit_queue(results, [last[key] for key in order if key in last])
    return _summary(results, cases)


def _stop(judge: Judge, refuter: Refuter | None) -> None:
    """Free every job that waits, for a container or for a model."""
    kill_open_sandboxes()
    judge.stop()
    if refuter:
        refuter.stop()


def _case_job(
    bench: Bench, left_alone: set[tuple[str, int]], progress: Progress, activity: Activity, keep: _Kept
) -> Callable[[Case], CaseResult]:
    def job(case: Case) -> CaseResult:
        done = {index for name, index in left_alone if name == case.case}
        with activity.of(case.case, "judging"), playwright_driver() as driver:
            result = judge_case(case, bench, driver, done, keep)
        verdicts = [record.verdict or record.outcome for record in result.criteria]
        progress(f"{case.case}: {result.case.outcome} [{' '.join(verdicts)}] in {result.case.duration_s:.1f} s")
        return result

    return job


class _Kept:
    """Writes each criterion's record once, as soon as it is there: from the threads of the cases, each its own keys.

    `before`: the line of each criterion that has a record already, which a new one supersedes. Nothing is taken any
    more after a stop: an application that was killed looks like one that does not work."""

    def __init__(self, journal: Journal, before: dict[tuple[str, int], int], stop: StopFlag) -> None:
        self._journal = journal
        self._before = before
        self._stop = stop
        self._kept: set[tuple[str, int]] = set()

    def __call__(self, record: CriterionRecord) -> None:
        key = (record.case, record.criterion_index)
        if key in self._kept or self._stop.is_set():
            return
        payload = record.model_dump(mode="json")
        if key in self._before:
            payload["supersedes"] = self._before[key]
        self._journal.append(payload)
        self._kept.add(key)


def _summary(results: Path, cases: Cases) -> JudgeSummary:
    criteria = sum(len(case.criteria) or 1 for case in cases.cases)  # without a readable rubric: one, unscored
    scored = len(judged_so_far(read_journal(results / "journal.jsonl").records).decided)
    return JudgeSummary(results, len(cases.cases), criteria, criteria - scored)


def _is_left(cases: Cases, results: Path) -> bool:
    """Whether there is anything to judge that a model may be asked about."""
    path = results / "journal.jsonl"
    decided = judged_so_far(read_journal(path).records).decided if path.is_file() else set()
    return any((c.case, t.criterion_index) not in decided for c in cases.cases if c.submission for t in c.criteria)


def _digests_sha256(cases: Cases) -> str:
    """Over what the judges are told of the attachments."""
    told = [[case.case, one.path, one.digest_sha256] for case in cases.cases for one in case.attachments]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _identity(
    cases: Cases, judge: Judge, refuter: Refuter | None, frozen: FrozenStore | None, evidence: EvidenceLevel
) -> dict[str, Any]:
    told = {"refuter": refuter.describe()} if refuter else {}
    return {
        **told,
        "step": "judge",
        **what_is_judged(cases),
        "digests_sha256": _digests_sha256(cases),
        "judge": {"name": judge.name, "model": judge.model, **judge.describe()},
        "images": {name: image_tag(name) for name in ("base", "browser")},
        "browser": browser_facts(),
        "evidence": evidence,
        "conditions": {"egress": "frozen", "frozen": frozen.digest} if frozen else {"egress": "none"},
        "versions": versions(),
    }
