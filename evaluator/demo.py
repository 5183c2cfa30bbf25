"""`cdb demo`: the whole way on the sample release, each step by the command a user would type.

Solving runs in child processes that are given the solver inputs and nothing else; all of it ends before the first
judging begins.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from bench.errors import CdbError
from bench.pool import stopping_on_signals
from evaluator.sample_release import make_sample_release

AGENTS = ("gold", "partial", "stub")
METRICS = ("strict", "graded", "full")

Progress = Callable[[str], None]


class StepFailed(CdbError):
    """A step of the demo ended with an exit code other than 0, which becomes the demo's own."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class DemoResult:
    """Where the report is and what each recorded agent scored, in percent (`witnessed` column)."""

    report: Path
    agents: dict[str, dict[str, Any]]
    wall_s: float

    def as_json(self) -> dict[str, Any]:
        return {"report": str(self.report), "agents": self.agents, "wall_s": self.wall_s}

    def lines(self) -> list[str]:
        rows = [f"{'agent':<10}{'strict':>8}{'graded':>8}{'full':>8}  coverage"]
        for name, numbers in self.agents.items():
            cells = "".join(f"{numbers[metric]:>8.1f}" for metric in METRICS)
            rows.append(f"{name:<10}{cells}  {numbers['coverage']}")
        return [*rows, "", f"report: {self.report}", f"took {self.wall_s:.0f} s"]


def run_demo(out: Path | None, *, concurrency: int, progress: Progress) -> DemoResult:
    """Run everything below `out` (a fresh folder). Raises CdbError naming the step that failed and its log."""
    began = time.monotonic()
    folder = out or Path("runs") / f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    if folder.exists() and any(folder.iterdir()):
        raise CdbError(f"{folder} is not empty; choose another --out")
    steps = _Steps(folder, progress)
    release = make_sample_release(folder / "release")
    steps.run(Step("verify the release", ["dataset", "verify", str(release)]))
    steps.run(Step("extract it", ["dataset", "extract", str(release), "--out", str(folder / "work")]))
    shared = -(-concurrency // 2)  # what two or more that run together may each do at a time
    entries = {agent: _Entry(agent, folder) for agent in AGENTS}
    first, *others = entries.values()
    steps.run(*(entry.solve(shared) for entry in entries.values()))
    steps.run(*(entry.prepare() for entry in entries.values()))
    steps.run(first.judge(concurrency))  # sees every start application for all of them
    steps.run(first.score(), *(entry.judge(shared) for entry in others))
    steps.run(*(entry.score() for entry in others))
    report = folder / "report" / "index.html"
    results = [str(entry.results) for entry in entries.values()]
    steps.run(Step("write the report", ["report", *results, "--out", str(report), "--title", "Sample release"]))
    agents = {agent: entry.scores() for agent, entry in entries.items()}
    return DemoResult(report.resolve(), agents, round(time.monotonic() - began, 1))


@dataclass(frozen=True)
class Step:
    """A verb with its arguments, and what it is called."""

    what: str
    verb: Sequence[str]


@dataclass(frozen=True)
class _Entry:
    """One recorded agent's way through the demo, each step with the options a user would give."""

    agent: str
    folder: Path

    @property
    def results(self) -> Path:
        return self.folder / "results" / self.agent

    @property
    def _cases(self) -> list[str]:
        return ["--cases", str(self.folder / "evaluation" / self.agent / "cases.json")]

    def solve(self, concurrency: int) -> Step:
        inputs, out = str(self.folder / "work/solver-inputs"), str(self.folder / "runs")
        which = ["--agent", f"replay-{self.agent}", "--out", out, "--concurrency", str(concurrency)]
        return Step(f"solve with the recorded agent {self.agent}", ["solve", "--dataset", inputs, *which])

    def prepare(self) -> Step:
        submissions = self.folder / "runs" / f"{self.agent}__none__1" / "submissions"
        inputs, out = self.folder / "work/evaluation-inputs", self.folder / "evaluation" / self.agent
        which = ["--dataset", str(inputs), "--submissions", str(submissions), "--out", str(out)]
        return Step(f"prepare {self.agent}", ["prepare", *which])

    def judge(self, concurrency: int) -> Step:
        out = ["--out", str(self.results), "--start-replays", str(self.folder / "start")]
        how = ["--model", "recorded", "--concurrency", str(concurrency)]
        return Step(f"judge {self.agent}", ["judge", *self._cases, *out, *how])

    def score(self) -> Step:
        journal, out = self.results / "journal.jsonl", self.results / "scores.json"
        return Step(f"score {self.agent}", ["score", *self._cases, "--results", str(journal), "--out", str(out)])

    def scores(self) -> dict[str, Any]:
        found = json.loads((self.results / "scores.json").read_text(encoding="utf-8"))
        means = {metric: found["columns"][found["headline"]][metric]["mean"] for metric in METRICS}
        coverage = found["coverage"]
        return {**means, "coverage": f"{coverage['tasks_scored']}/{coverage['tasks']}"}


@dataclass(frozen=True)
class _Steps:
    """Runs verbs as child processes, their output to a log, their progress passed on line by line."""

    folder: Path
    progress: Progress

    def run(self, *steps: Step) -> None:
        """Run these together. Raises StepFailed for the first that fails, after ending the others."""
        self.progress("— " + "; ".join(step.what for step in steps))
        began = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "demo.log").open("a", encoding="utf-8") as log, ThreadPoolExecutor(len(steps)) as readers:
            running: list[subprocess.Popen[str]] = []

            def end_all() -> None:
                for process in running:
                    process.terminate()

            with stopping_on_signals(end_all) as stop:
                try:
                    running += (_begin(step) for step in steps)
                    named = len(steps) > 1
                    told = [
                        readers.submit(self._pass_on, *both, log, named) for both in zip(steps, running, strict=True)
                    ]
                    failed = next((f.result() for f in as_completed(told) if f.result()), None)
                except BaseException:
                    end_all()
                    raise
                if failed:
                    end_all()
            stop.raise_if_set()
        if failed:
            raise failed
        self.progress(f"  took {time.monotonic() - began:.1f} s")

    def _pass_on(self, step: Step, process: subprocess.Popen[str], log: TextIO, named: bool) -> StepFailed | None:
        """Pass a step's output on until it ends; how it failed, if it did. `named`: each line says whose it is."""
        last = ""
        assert process.stdout is not None
        for line in process.stdout:
            said = (f"{step.what}: " if named else "") + line.rstrip()
            log.write(said + "\n")
            log.flush()
            self.progress("  " + said)
            last = line.strip()
        if not (code := process.wait()):
            return None
        where = f"the whole log: {self.folder / 'demo.log'}"
        return StepFailed(code, f"`cdb {' '.join(step.verb)}` ended with {code}: {last}; {where}")


def _begin(step: Step) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cdb", *step.verb], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="backslashreplace",
    )  # fmt: skip
