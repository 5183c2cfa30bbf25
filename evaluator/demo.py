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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
    steps.run("verify the release", ["dataset", "verify", str(release)])
    steps.run("extract it", ["dataset", "extract", str(release), "--out", str(folder / "work")])
    for agent in AGENTS:
        steps.run(
            f"solve with the recorded agent {agent}",
            ["solve", "--dataset", str(folder / "work/solver-inputs"), "--agent", f"replay-{agent}",
             "--out", str(folder / "runs"), "--concurrency", str(concurrency)],
        )  # fmt: skip
    agents = {agent: _evaluate(agent, folder, steps, concurrency) for agent in AGENTS}
    report = folder / "report" / "index.html"
    results = [str(folder / "results" / agent) for agent in AGENTS]
    steps.run("write the report", ["report", *results, "--out", str(report), "--title", "Sample release"])
    return DemoResult(report.resolve(), agents, round(time.monotonic() - began, 1))


def _evaluate(agent: str, folder: Path, steps: _Steps, concurrency: int) -> dict[str, Any]:
    submissions = folder / "runs" / f"{agent}__none__1" / "submissions"
    prepared, results = folder / "evaluation" / agent, folder / "results" / agent
    inputs = folder / "work/evaluation-inputs"
    steps.run(
        f"prepare {agent}",
        ["prepare", "--dataset", str(inputs), "--submissions", str(submissions), "--out", str(prepared)],
    )
    cases = ["--cases", str(prepared / "cases.json")]
    steps.run(
        f"judge {agent}",
        [
            "judge",
            *cases,
            "--out",
            str(results),
            "--model",
            "recorded",
            "--concurrency",
            str(concurrency),
            "--start-replays",
            str(folder / "start"),
        ],
    )
    scores = results / "scores.json"
    steps.run(f"score {agent}", ["score", *cases, "--results", str(results / "journal.jsonl"), "--out", str(scores)])
    found = json.loads(scores.read_text(encoding="utf-8"))
    means = {metric: found["columns"][found["headline"]][metric]["mean"] for metric in METRICS}
    coverage = found["coverage"]
    return {**means, "coverage": f"{coverage['tasks_scored']}/{coverage['tasks']}"}


@dataclass(frozen=True)
class _Steps:
    """Runs verbs as child processes, their output to a log, their progress passed on."""

    folder: Path
    progress: Progress

    def run(self, what: str, verb: Sequence[str]) -> None:
        self.progress(f"— {what}")
        began = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "cdb", *verb], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="backslashreplace",
        )  # fmt: skip
        last = ""
        assert process.stdout is not None
        with (
            stopping_on_signals(process.terminate) as stop,
            (self.folder / "demo.log").open("a", encoding="utf-8") as log,
        ):
            for line in process.stdout:
                log.write(line)
                log.flush()
                self.progress("  " + line.rstrip())
                last = line.strip()
            process.wait()
        stop.raise_if_set()
        if code := process.wait():
            raise StepFailed(
                code, f"`cdb {' '.join(verb)}` ended with {code}: {last}; the whole log: {self.folder / 'demo.log'}"
            )
        self.progress(f"  took {time.monotonic() - began:.1f} s")
