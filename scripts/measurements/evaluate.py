"""How long it takes to build, serve and look at an application, and to replay a witness on it. No model."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from bench.cache import cache_folder
from evaluator.applications import Applications, Bench, running_applications
from evaluator.cases import Case, read_cases
from evaluator.judges.recorded import RecordedJudge
from evaluator.recon import look
from evaluator.replay import run_witness
from evaluator.sidecar import playwright_driver
from sandboxes.mirror import Mirror

STATIC, VITE = "clinic-booking", "expense-report"
RUNS = 3


def measure() -> dict[str, float]:
    """On the gold submissions of the sample release, each figure's median of 3.

    `static_s`, `vite_s`: a static and a Vite application (warm registry cache) built, served and seen, with its start
    application. `replay_s`: a witness on an application that is up. `scale_2`: how many times faster the static cases
    are two at a time than one by one. `rss_mb`: this process at its highest; `driver_rss_mb`: its
    Playwright's node processes.
    """
    with tempfile.TemporaryDirectory(prefix="cdb-measure-") as scratch, Mirror(log=None) as mirror:
        folder = Path(scratch)
        cases = {case.case: case for case in read_cases(_prepared(folder)).cases}
        bench = _bench(folder, mirror)
        replays: list[float] = []
        drivers: list[float] = []

        def visit(case: Case, work: Callable[[Applications], None] = lambda _up: None) -> float:
            began = time.monotonic()
            for seen in (bench.results, bench.built, bench.start_replays):
                shutil.rmtree(seen / case.case, ignore_errors=True)
            one = Bench(**{**vars(bench), "start_replays": bench.start_replays / case.case})
            with playwright_driver() as driver, running_applications(case, one, driver) as up:
                look(up, bench.results, bench.results / case.case, [facts.path for facts in case.attachments])
                spent = time.monotonic() - began
                work(up)
                drivers.append(_node_mb())
            return spent

        visit(cases[VITE])  # fills the registry cache
        vite = [visit(cases[VITE]) for _ in range(RUNS)]
        static = [visit(cases[STATIC]) for _ in range(RUNS)]
        visit(cases[STATIC], lambda up: replays.extend(_replays(up, folder)))
        others = [case for name, case in cases.items() if name != VITE]
        return {
            "static_s": round(statistics.median(static), 2),
            "vite_s": round(statistics.median(vite), 2),
            "replay_s": round(statistics.median(replays), 3),
            "scale_2": round(_scale(others, visit), 2),
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


def _bench(folder: Path, mirror: Mirror) -> Bench:
    return Bench(
        run="measure",
        cases_folder=folder / "evaluation",
        results=folder / "results",
        start_builds=cache_folder("builds"),
        judge=RecordedJudge(),
        mirror=mirror,
        built=folder / "built",
        logs=folder / "logs",
        start_replays=folder / "start",
    )


def _replays(up: Applications, folder: Path) -> list[float]:
    """Seconds of each of the case's witnesses on the submission."""
    return [
        run_witness(
            up.submission, witness, app="submission", purpose="repeat", frames_dir=None, results_root=folder
        ).duration_s
        for witness in RecordedJudge().witnesses(STATIC).values()
    ]


def _scale(cases: Sequence[Case], visit: Callable[[Case], float]) -> float:
    """Wall time one by one over wall time two at a time, each measured twice in turn."""
    spent = {1: 0.0, 2: 0.0}
    for lanes in (1, 2, 1, 2):
        waiting = [*cases, *cases]  # twice, so that the last one, alone at the end, counts less

        def lane(waiting: list[Case] = waiting) -> None:
            while waiting:
                visit(waiting.pop())

        began = time.monotonic()
        threads = [threading.Thread(target=lane) for _ in range(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent[lanes] += time.monotonic() - began
    return spent[1] / spent[2]


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
