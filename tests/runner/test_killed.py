"""C116: a run that is killed again and again ends as one that never was, and nothing finished is done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.journal import of_type, read_journal
from sandboxes.reap import leftovers

pytestmark = [pytest.mark.docker, pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
REPOSITORY = Path(__file__).parent.parent.parent
KILLS = 40
FIRST_S, LONGEST_S, LAST_S = 3.0, 12.0, 2.0
RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


def start(config: Path) -> subprocess.Popen[bytes]:
    """`cdb run` in a process group of its own, so that a kill takes its steps with it, as a power cut does."""
    return subprocess.Popen(
        [sys.executable, "-m", "cdb", "run", str(config)], cwd=REPOSITORY, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def kill(process: subprocess.Popen[bytes], *, group: bool) -> None:
    """SIGKILL to the run alone (its step must end by itself) or to it and everything it started."""
    if group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def phase_of(folder: Path) -> str:
    """What was still to be done when the run was killed."""
    entry = folder / "editor__none__1"
    if len(list(entry.glob("submissions/*.manifest.json"))) < 2:
        return "solve"
    judged = {r["case"] for r in of_type(read_journal(entry / "results" / "journal.jsonl").records, "case")}
    return "judge" if len(judged) < 2 else "score"


@pytest.mark.alone  # looks at what dead runs left, and kills by the clock
def test_c116_killed_at_forty_random_points_a_run_ends_with_the_same_scores(
    small_run: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    before = leftovers()
    slow = {"agents": [str(tmp_path / "slow.yaml")], "concurrency": {"solve": 1}}  # so that kills hit a trial, too
    line = "sleep 1.5; sed -i s/before/after/ index.html"
    (tmp_path / "slow.yaml").write_text(f"kind: command\nname: editor\nargv: [bash, -c, '{line}']\n")
    undisturbed = run_cdb(["run", small_run("undisturbed", **slow)], deadline_s=300)
    assert undisturbed.returncode == 0, undisturbed.stderr[-2000:]
    chance = random.Random(20261130)
    config, folder = small_run("killed", **slow), tmp_path / "killed"
    points: list[tuple[float, int | None, str]] = []
    longest = FIRST_S
    while sum(ended is None for _, ended, _ in points) < KILLS:
        process = start(config)
        delay = chance.uniform(0.2, longest)
        try:
            ended: int | None = process.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            kill(process, group=len(points) % 2 == 0)
            ended = None
        points.append((round(delay, 2), ended, phase_of(folder)))
        assert ended in (None, 0), points
        # Ever longer lives reach ever later phases; a run that is through is killed while it scores again.
        longest = min(LONGEST_S, longest * 1.05) if ended is None else LAST_S
    last = run_cdb(["run", config], deadline_s=300)
    assert last.returncode == 0, last.stderr[-2000:]
    scores = "editor__none__1/results/scores.json"
    assert (folder / scores).read_bytes() == (tmp_path / "undisturbed" / scores).read_bytes(), points
    trials = list(of_type(read_journal(folder / "editor__none__1/journal.jsonl").records, "trial"))
    finished = Counter((r["case"], r["outcome"]) for r in trials if r["outcome"] != "cancelled")
    assert finished == {("greeting", "ok"): 1, ("farewell", "ok"): 1}, points  # what ended is not begun again
    judged = list(of_type(read_journal(folder / "editor__none__1/results/journal.jsonl").records, "criterion"))
    assert Counter((r["case"], r["verdict"]) for r in judged) == {("greeting", "PASS"): 1, ("farewell", "PASS"): 1}
    phases = Counter(phase for _, ended, phase in points if ended is None)
    assert phases["solve"] >= 3 and phases["judge"] >= 3, f"the kills hit too few phases: {phases}"
    assert [found for found in leftovers() if found.owner.is_dead and found not in before] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_ends_with_its_step_and_says_how_to_go_on(
    small_run: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    agent = tmp_path / "sleeper.yaml"
    agent.write_text("kind: command\nname: sleeper\nargv: [sleep, '300']\n")
    process = start(small_run("stopped", agents=[str(agent)]))
    activity = tmp_path / "stopped" / "sleeper__none__1" / "activity.json"
    until = time.monotonic() + 60
    while not (activity.is_file() and "trial" in activity.read_text()):
        assert time.monotonic() < until, "no trial began"
        time.sleep(0.1)
    process.send_signal(number)
    try:
        assert process.wait(timeout=30) == 128 + number
    finally:
        if process.poll() is None:
            kill(process, group=True)
