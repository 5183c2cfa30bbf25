"""How long it takes to build, serve and look at an application, and to replay a witness on it. No model."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bench.cache import cache_folder
from bench.errors import InfraError
from evaluator.applications import Applications, Bench, running_applications
from evaluator.case import judge_case
from evaluator.cases import Case, read_cases
from evaluator.judges.recorded import RecordedJudge
from evaluator.recon import look
from evaluator.replay import run_witness
from evaluator.sidecar import playwright_driver
from sandboxes.mirror import Mirror

STATIC, VITE = "clinic-booking", "expense-report"
JUDGED = (STATIC, "plant-shop")
RUNS = 3
TURNS = 2


def measure() -> dict[str, float]:
    """On the gold submissions of the sample release, each figure's median of 3.

    `static_s`, `vite_s`: a static and a Vite application (warm registry cache) built, served and seen, with its start
    application. `replay_s`: a witness on an application that is up. `scale_2`: how many times as many static cases
    are done in a time two by two as one by one, whole cases with the recorded judge and every replay, as `cdb judge`
    does them; `scale_2_look`: the same of what `static_s` covers. `rss_mb`: this process at its highest;
    `driver_rss_mb`: its Playwright's node processes.
    """
    with tempfile.TemporaryDirectory(prefix="cdb-measure-") as scratch, Mirror(log=None) as mirror:
        folder = Path(scratch)
        cases = {case.case: case for case in read_cases(_prepared(folder)).cases}
        lanes = [_bench(folder, folder / f"lane-{lane}", mirror) for lane in range(2)]
        replays: list[float] = []
        drivers: list[float] = []

        def visit(case: Case, lane: int = 0, work: Callable[[Applications], None] = lambda _up: None) -> float:
            began, bench = time.monotonic(), _fresh(lanes[lane], case)
            with playwright_driver() as driver, running_applications(case, bench, driver) as up:
                look(up, bench.results, bench.results / case.case, [facts.path for facts in case.attachments])
                spent = time.monotonic() - began
                work(up)
                drivers.append(_node_mb())
            return spent

        def judge(case: Case, lane: int) -> None:
            with playwright_driver() as driver:
                judged = judge_case(case, _fresh(lanes[lane], case), driver)
            if any(criterion.verdict != "PASS" for criterion in judged.criteria):
                raise InfraError(f"{case.case} was not judged as its gold submission is: {judged}")

        visit(cases[VITE])  # fills the registry cache
        vite = [visit(cases[VITE]) for _ in range(RUNS)]
        static = [visit(cases[STATIC]) for _ in range(RUNS)]
        visit(cases[STATIC], work=lambda up: replays.extend(_replays(up, folder)))
        others = [case for name, case in cases.items() if name != VITE]
        return {
            "static_s": round(statistics.median(static), 2),
            "vite_s": round(statistics.median(vite), 2),
            "replay_s": round(statistics.median(replays), 3),
            "scale_2": round(_scale([cases[name] for name in JUDGED], judge), 2),
            "scale_2_look": round(_scale(others, visit), 2),
            "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
            "driver_rss_mb": round(max(drivers), 1),
        }


def _prepared(folder: Path) -> Path:
    """The sample release extracted, solved by the recorded gold agent, and prepared; the path of cases.json."""
    release, runs, work, prepared = (folder / name for name in ("release", "runs", "work", "evaluation"))
    # By a process of its own, like the verbs: what it takes to write parquet files is no evaluator's memory.
    subprocess.run(
        [sys.executable, "-m", "evaluator.sample_release", str(release)], check=True, stdout=subprocess.DEVNULL
    )
    for verb in (
        ["dataset", "extract", str(release), "--out", str(work)],
        ["solve", "--dataset", str(work / "solver-inputs"), "--agent", "replay-gold", "--out", str(runs)],
        ["prepare", "--dataset", str(work / "evaluation-inputs"), "--out", str(prepared),
         "--submissions", str(runs / "gold__none__1" / "submissions")],
    ):  # fmt: skip
        subprocess.run([sys.executable, "-m", "cdb", *verb], check=True, stdout=subprocess.DEVNULL)
    return prepared / "cases.json"


def _bench(folder: Path, own: Path, mirror: Mirror) -> Bench:
    """`own`: where what is made of the cases goes."""
    return Bench(
        run="measure",
        cases_folder=folder / "evaluation",
        results=own / "results",
        start_builds=cache_folder("builds"),
        judge=RecordedJudge(),
        mirror=mirror,
        built=own / "built",
        logs=own / "results" / "evidence",
        start_replays=own / "start",
    )


def _fresh(lane: Bench, case: Case) -> Bench:
    """The lane's bench with nothing of the case kept, and nothing seen on its start application."""
    for seen in (lane.results, lane.results / "evidence", lane.built, lane.start_replays):
        shutil.rmtree(seen / case.case, ignore_errors=True)
    return replace(lane, start_replays=lane.start_replays / case.case)


def _replays(up: Applications, folder: Path) -> list[float]:
    """Seconds of each of the case's witnesses on the submission."""
    return [
        run_witness(
            up.submission, witness, app="submission", purpose="repeat", frames_dir=None, results_root=folder
        ).duration_s
        for witness in RecordedJudge().witnesses(STATIC).values()
    ]


def _scale(cases: Sequence[Case], work: Callable[[Case, int], object]) -> float:
    """How much more two lanes do in a time than one; each goes through all cases, the second the other way round.

    One lane and two are measured in turn, because a machine's speed drifts.
    """

    def through(lane: int) -> None:
        for case in reversed(cases) if lane else cases:
            work(case, lane)

    spent: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(TURNS):
        for lanes, times in spent.items():
            began = time.monotonic()
            with ThreadPoolExecutor(lanes) as pool:
                list(pool.map(through, range(lanes)))  # raises what the work raised
            times.append(time.monotonic() - began)
    return 2 * sum(spent[1]) / sum(spent[2])


def _node_mb() -> float:
    """The highest resident memory in MB of the node processes below this one, added up."""
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            if status["Name"].strip().startswith("node"):
                total += float(status["VmHWM"].split()[0]) / 1024
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
    return total
