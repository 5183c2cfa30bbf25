"""Steps of the demo that run together: whose line is whose, and what happens when one of them fails or it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bench.errors import Interrupted
from evaluator import demo
from evaluator.demo import Step, StepFailed, _Steps


@pytest.fixture(autouse=True)
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes of steps whose verb is a program of Python."""
    all_of_them: list[Any] = []

    def begin(step: Step) -> subprocess.Popen[str]:
        program = [sys.executable, "-u", "-c", step.verb[0]]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        all_of_them.append(process)
        return process

    monkeypatch.setattr(demo, "_begin", begin)
    return all_of_them


@pytest.fixture
def steps(tmp_path: Path) -> tuple[_Steps, list[str]]:
    """Steps, and what they say."""
    said: list[str] = []
    return _Steps(tmp_path, said.append), said


def test_lines_of_steps_that_run_together_say_whose_they_are(steps: tuple[_Steps, list[str]], tmp_path: Path) -> None:
    run, said = steps
    run.run(Step("one", ["print('alone')"]))
    run.run(Step("one", ["print('a')"]), Step("two", ["print('b')"]))
    assert said[:2] == ["— one", "  alone"]
    assert "— one; two" in said
    assert {"  one: a", "  two: b"} <= set(said)
    assert sorted((tmp_path / "demo.log").read_text().splitlines()) == ["alone", "one: a", "two: b"]


def test_where_nobody_listens_any_more_nothing_is_left_running(tmp_path: Path, begun: list[Any]) -> None:
    def gone(line: str) -> None:
        if "now" in line:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        _Steps(tmp_path, gone).run(Step("one", ["print('now')"]), Step("two", ["import time; time.sleep(300)"]))
    ended = [process.wait(timeout=30) for process in begun]
    assert len(ended) == 2
    assert ended[1] == -signal.SIGTERM


def test_one_that_fails_ends_the_others_and_is_named(steps: tuple[_Steps, list[str]]) -> None:
    began = time.monotonic()
    with pytest.raises(StepFailed, match=r"ended with 3: no such thing; the whole log: ") as told:
        steps[0].run(
            Step("long", ["import time; time.sleep(300)"]),
            Step("bad", ["print('no such thing'); raise SystemExit(3)"]),
        )
    assert told.value.exit_code == 3
    assert time.monotonic() - began < 60


def test_a_signal_ends_all_of_them(steps: tuple[_Steps, list[str]]) -> None:
    began = time.monotonic()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    with pytest.raises(Interrupted):
        steps[0].run(*[Step(name, ["import time; time.sleep(300)"]) for name in "ab"])
    assert time.monotonic() - began < 60
