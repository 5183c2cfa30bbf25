"""`cdb run`: every entry solved, then every entry evaluated; killed anywhere, the same command goes on.

Nothing of its own decides what is done: each step runs again unless what it has written shows that it is complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.atomic import write_bytes, write_json
from bench.errors import UsageError
from bench.journal import read_journal, take_lock
from bench.lockfile import hold_identity
from bench.pool import StopFlag, stopping_on_signals
from bench.task import Dataset
from evaluator.cases import read_cases
from evaluator.judged import judged_so_far
from harness.run import finished
from runner import steps
from runner.child import StepFailed, run_step
from runner.config import JudgePart, RunConfig
from runner.entries import Entry, entries, judge_name
from runner.models import check_models
from runner.scope import choose
from runner.standing import LOCK, PlannedEntry, RunPlan, standing
from runner.tally import Tally
from runner.watch import View, view, watched

LOCK_WAIT_S = 60.0
"""How long a step left over from a killed run may take to end."""
NOTHING_LEFT_USD = 1e-6
"""The cap of a judging when the run's money is gone: its first call is refused, and its criteria say `budget`."""
Progress = Callable[[str], None]


@dataclass
class RunResult:
    """What a run came to. `scores`: results folder → the answer of `cdb score`."""

    folder: Path
    complete: bool = True
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    comparisons: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Judge → the answer of `cdb compare`: verdicts of different judges are never compared."""
    report: Path | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "run": str(self.folder), "complete": self.complete, "scores": self.scores,
            "comparisons": self.comparisons, "report": str(self.report) if self.report else None,
        }  # fmt: skip


def conduct(config: RunConfig, source: Path, retry: str | None = None) -> RunResult:
    """Run everything that is not finished. For the main thread: signals stop it and its step.

    `source`: the run's file, of which a copy is kept beside what comes of it.

    Raises UsageError when the folder holds another run or another process runs it, StepFailed for a step that
    cannot go on, Interrupted after a signal.
    """
    folder = config.folder
    folder.mkdir(parents=True, exist_ok=True)
    guard = take_lock(folder / LOCK)
    try:
        with view() as shown, stopping_on_signals(lambda: None) as stop:
            return _conduct(config, source, retry, shown, stop)
    finally:
        guard.close()


def _conduct(config: RunConfig, source: Path, retry: str | None, shown: View, stop: StopFlag) -> RunResult:
    folder = config.folder
    run = _Run(config, retry, shown.event, stop)
    _fetch(config, run)
    dataset, only = choose(config.dataset)
    if retry not in (None, "infra", "judge") and retry not in {task.case_id for task in dataset.tasks}:
        raise UsageError(f"--retry {retry!r}: give infra, judge, or a case of this run")
    made = entries(config)
    hold_identity(folder, _identity(config, dataset))
    write_bytes(folder / "config.yaml", source.read_bytes())
    _plan(config, made, dataset).write(folder)
    with watched(folder, shown):
        return run.everything(made, dataset, only)


@dataclass(frozen=True)
class _Run:
    """One call of `cdb run`."""

    config: RunConfig
    retry: str | None
    say: Progress
    stop: StopFlag
    """Set by a signal that arrives between two steps; during one the step is told and Interrupted raised."""

    @property
    def log(self) -> Path:
        return self.config.folder / "run.log"

    def step(self, title: str, argv: list[str]) -> tuple[dict[str, Any], bool]:
        self.stop.raise_if_set()
        self.say(f"— {title}")
        return run_step(argv, self.log, self.say)

    def everything(self, made: list[Entry], dataset: Dataset, only: list[str]) -> RunResult:
        result = RunResult(self.config.folder)
        unsolved = [entry for entry in made if not _is_solved(entry, dataset)]
        unjudged = [place for place in self._places(made) if not _is_judged(place[2])]
        if self.config.preflight and (unsolved or unjudged):
            self._preflight()
        if self.config.preflight and any(entry.model for entry in unsolved):
            self.say("— preflight: every model is asked for one word")
            check_models(self.config, unsolved, self.say)
            title = "preflight: every start application, before anything is paid for"
            self.step(title, steps.preflight(self.config, only))
        for entry in unsolved:
            self._await_lock(entry.folder / "journal.lock")
            argv = steps.solve(self.config, entry, only, self.retry) + self._cap(entry)
            _, complete = self.step(f"solve: {entry.name}", argv)
            result.complete &= complete
        for entry, judge, results in self._places(made):
            self._evaluate(entry, judge, results, only, result, resolved=entry in unsolved)
        self._conclude(made, result)
        return result

    def _await_lock(self, path: Path) -> None:
        """Wait for a step that a killed run left behind: it ends by itself, its containers with it."""
        until, told = time.monotonic() + LOCK_WAIT_S, False
        while path.exists():
            self.stop.raise_if_set()
            try:
                take_lock(path).close()
                return
            except UsageError as error:
                if time.monotonic() > until:
                    raise
                if not told:
                    self.say(f"waiting: {error}")
                told = True
                time.sleep(0.2)

    def _preflight(self) -> None:
        """Refuse to begin on a machine that lacks something; what dead runs left is removed, not complained of."""
        try:
            self.step("preflight: what this machine can do", ["doctor"])
        except StepFailed as error:
            missing = [check for check in error.answer.get("checks", []) if not check["ok"]]
            faults = [check for check in missing if check["name"] != "leftovers"]
            if not missing or faults:
                lines = [f"{check['name']}: {check['detail']}; {check['remedy']}" for check in faults]
                raise StepFailed(1, "\n  ".join(["this machine is not ready:", *(lines or [str(error)])])) from error
            self.step("remove what dead runs left", ["clean"])

    def _cap(self, entry: Entry) -> list[str]:
        """The run's cap and what everything but this entry's solving has spent of it."""
        cap = self.config.budget.run_usd
        return ["--run-usd", f"{cap!r}", "--spent-usd", f"{self._spent_without(entry.folder)!r}"] if cap else []

    def _judge_cap(self, judge: JudgePart, results: Path) -> list[str]:
        """What a judging may spend in all, earlier calls of it included: what all else left of the run's cap."""
        if not self.config.budget.run_usd or judge.model == "recorded":
            return []
        left = self.config.budget.run_usd - self._spent_without(results)
        return ["--run-usd", f"{max(round(left, 6), NOTHING_LEFT_USD)!r}"]

    def _spent_without(self, step: Path) -> float:
        """What all steps but this one have spent: it counts what its own journal tells by itself."""
        own = Tally(step / "journal.jsonl").read_on().usd
        return max(0.0, round(self._spent() - (own or 0.0), 6))

    def _spent(self) -> float:
        spent = standing(self.config.folder).usd
        if spent is None:
            raise UsageError(
                "budget.run_usd cannot be held: what was spent so far is not known (a model without a price); "
                "add its price to the gateway's file, or take the cap away"
            )
        return spent

    def _places(self, made: list[Entry]) -> list[tuple[Entry, JudgePart, Path]]:
        judges = self.config.judges
        return [(entry, judge, entry.results(judge, len(judges) == 1)) for judge in judges for entry in made]

    def _evaluate(
        self, entry: Entry, judge: JudgePart, results: Path, only: list[str], result: RunResult, *, resolved: bool
    ) -> None:
        if resolved or not _is_judged(results):
            self._await_lock(results / "journal.lock")
            self.step(f"prepare: {entry.name}", steps.prepare(self.config, entry, only))
            title = f"judge: {entry.name} with {judge_name(judge)}"
            argv = steps.judge(self.config, entry, judge, results, self.retry)
            _, whole = self.step(title, argv + self._judge_cap(judge, results))
            if not whole and self.retry is None:  # infrastructure alone is tried again by itself, and once
                again = steps.judge(self.config, entry, judge, results, "infra")
                again += self._judge_cap(judge, results)
                self.step(f"{title}, what infrastructure failed once more", again)
        _, clean = self.step(f"leak audit: {entry.name}", steps.leaks(results))
        found, complete = self.step(f"score: {entry.name}", steps.score(results))
        result.complete &= complete and (clean or self.config.leak_audit == "record")
        told = {
            metric: found["columns"][self.config.column][metric]["mean"] for metric in ("strict", "graded", "full")
        }
        result.scores[str(results)] = {**told, "label": found["label"], "coverage": found["coverage"]}

    def _conclude(self, made: list[Entry], result: RunResult) -> None:
        """Comparison and report over everything, however complete it is."""
        folders = list(result.scores)
        for judge in self.config.judges:
            own = [str(results) for _, who, results in self._places(made) if who is judge]
            found, _ = self.step("compare", ["compare", *own, "--column", self.config.column])
            result.comparisons[judge_name(judge)] = found
            mark = f"-{judge_name(judge)}" if len(self.config.judges) > 1 else ""
            write_json(self.config.folder / f"comparison{mark}.json", found)
        report = self.config.folder / "report" / "index.html"
        title = self.config.title or self.config.name
        self.step("report", ["report", *folders, "--out", str(report), "--title", title])
        result.report = report


def _fetch(config: RunConfig, run: _Run) -> None:
    """Extract the release where the file names one and nothing was extracted yet."""
    part = config.dataset
    if (part.root / "solver-inputs" / "cases").is_dir() or part.release is None:
        return
    release = part.release
    if release == "sample":
        from evaluator.sample_release import make_sample_release

        release = str(make_sample_release(part.root / "release"))
    run.step("extract the release", ["dataset", "extract", release, "--out", str(part.root)])


def _is_solved(entry: Entry, dataset: Dataset) -> bool:
    return {task.case_id for task in dataset.tasks} <= finished(entry.folder, entry.submissions).keys()


def _is_judged(results: Path) -> bool:
    if not (results / "cases.json").is_file() or not (results / "journal.jsonl").is_file():
        return False
    so_far = judged_so_far(read_journal(results / "journal.jsonl").records)
    decided = so_far.decided
    return all(so_far.is_finished(case, decided) for case in read_cases(results / "cases.json").cases)


def _identity(config: RunConfig, dataset: Dataset) -> dict[str, Any]:
    """What may not change under a run: everything but concurrency, its folder, its words and its checks."""
    may_change = {"concurrency", "out", "title", "preflight", "column", "leak_audit"}
    told = config.model_dump(mode="json", exclude=may_change)
    told["dataset"].pop("root")
    told["budget"].pop("run_usd")  # raising it is how a run that reached it goes on
    told["judges"] = [{k: v for k, v in judge.items() if k != "case_timeout_s"} for judge in told["judges"]]
    return {"step": "run", "config": told, "dataset": {"name": dataset.name, "digest": dataset.digest}}


def _plan(config: RunConfig, made: list[Entry], dataset: Dataset) -> RunPlan:
    alone = len(config.judges) == 1
    planned = [
        PlannedEntry(e.name, [str(e.results(j, alone).relative_to(config.folder)) for j in config.judges])
        for e in made
    ]
    limits = {"trial": config.budget.timeout_s, "judging": max(judge.case_timeout_s for judge in config.judges)}
    return RunPlan(config.name, planned, [task.case_id for task in dataset.tasks], config.column, limits)
