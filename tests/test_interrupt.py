"""C28: a run that is stopped takes its own containers with it; one that was killed is cleaned up by the next."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench.journal import of_type, read_journal
from sandboxes.reap import leftovers

pytestmark = [
    pytest.mark.docker,
    pytest.mark.alone,
]  # what a dead run left is looked at, and any other run removes it
REPOSITORY = Path(__file__).parent.parent


def start_solving(tmp_path: Path, dataset: Path, run: str, seconds: int = 300) -> subprocess.Popen[bytes]:
    """A solve run whose agent sleeps; returns once its container is there."""
    agent = tmp_path / "sleeper.yaml"
    script = f"echo begun > begun; trap '' TERM; sleep {seconds}"
    agent.write_text(yaml.safe_dump({"kind": "command", "name": "sleeper", "argv": ["bash", "-c", script]}))
    process = subprocess.Popen(
        [sys.executable, "-m", "cdb", "solve", "--dataset", str(dataset), "--agent", str(agent), "--out", str(tmp_path / run)],
        cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(lambda: containers(run) >= 1, "the trial's container never came up")
    except AssertionError:
        process.kill()
        raise
    return process


def ended(process: subprocess.Popen[bytes]) -> int:
    """Its exit code within 15 s; a process that hangs is killed, so that it does not outlive the test."""
    try:
        return process.wait(timeout=15)
    finally:
        process.kill()


def containers(run: str) -> int:
    return len([found for found in leftovers() if found.kind == "container" and found.run == run])


def wait_for(condition: Callable[[], bool], complaint: str, deadline_s: float = 60) -> None:
    until = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < until, complaint
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_c28_a_stopped_run_ends_within_15_s_without_containers(
    tmp_path: Path, make_dataset: Callable[..., Path], number: signal.Signals
) -> None:
    run = f"stopped-{uuid.uuid4().hex[:8]}"
    dataset = make_dataset({"one": {"index.html": "x"}, "two": {"index.html": "x"}, "three": {"index.html": "x"}})
    process = start_solving(tmp_path, dataset, run)
    process.send_signal(number)
    assert ended(process) == 128 + number
    wait_for(lambda: containers(run) == 0, "its containers are still there", 5)
    journal = next((tmp_path / run).glob("*/journal.jsonl"))
    assert {r["outcome"] for r in of_type(read_journal(journal).records, "trial")} <= {"cancelled"}
    assert not list(journal.parent.glob("submissions/*.manifest.json"))


def test_c28_what_a_killed_run_left_is_reaped_by_the_next_and_a_living_run_is_not(
    tmp_path: Path, make_dataset: Callable[..., Path], run_cdb: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    dataset = make_dataset({"one": {"index.html": "x"}})
    doomed, other = f"killed-{uuid.uuid4().hex[:8]}", f"living-{uuid.uuid4().hex[:8]}"
    killed = start_solving(tmp_path, dataset, doomed)
    living = start_solving(tmp_path, dataset, other)
    killed.kill()
    killed.wait()
    assert containers(doomed) == 1
    assert run_cdb(["clean"]).returncode == 0
    assert (containers(doomed), containers(other)) == (0, 1)
    living.send_signal(signal.SIGTERM)
    assert ended(living) == 143
    again = run_cdb(["solve", "--dataset", dataset, "--agent", "noop", "--out", tmp_path / doomed])
    assert again.returncode == 0, again.stderr
    assert (tmp_path / doomed / "noop__none__1" / "submissions" / "one.manifest.json").exists()
