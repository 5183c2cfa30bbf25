"""A live block on a terminal, plain lines everywhere else; a stuck case is named once."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.activity import Activity, read_activity
from runner.standing import PlannedEntry, RunPlan, standing
from runner.watch import _newly_stuck

REPOSITORY = Path(__file__).parent.parent.parent
PROGRAM = """
from pathlib import Path
import sys
from runner.standing import standing
from runner.watch import view
with view() as shown:
    shown.event("greeting ok \\x1b[31mred")
    shown.look(standing(Path(sys.argv[1])), 120.0)
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    RunPlan("r", [PlannedEntry("e", ["e/results"])], ["greeting"], "witnessed", {"trial": 10.0}).write(tmp_path)
    return tmp_path


def on_a_terminal(run: Path, **env: str) -> str:
    """What a run writes to a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM", "CI")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(run)], stderr=theirs, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        cwd=REPOSITORY, env={**environment, "TERM": "xterm", **env},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert process.wait(timeout=20) == 0
    return seen.decode()


def test_a_terminal_gets_a_block_that_is_redrawn_and_no_foreign_control_code(run: Path) -> None:
    seen = on_a_terminal(run)
    assert "0 of 2 done" in seen
    assert "\x1b[" in seen
    assert "\\x1b[31mred" in seen
    assert "\x1b[31m" not in seen


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_and_dumb_terminals_get_plain_lines(run: Path, env: dict[str, str]) -> None:
    assert "\x1b" not in on_a_terminal(run, **env)


def test_a_stuck_case_is_named_once_and_one_within_its_limit_is_not(run: Path) -> None:
    activity = Activity(run / "e")
    with activity.of("greeting", "trial"):
        assert [one.stuck for one in standing(run).busy] == [False]
        activity._doing["greeting"] = ("trial", time.time() - 1000)
        activity._write()
        busy = standing(run).busy
        assert [(one.case, one.phase, one.stuck) for one in busy] == [("greeting", "trial", True)]
        named: set[tuple[str, str, str]] = set()
        assert len(_newly_stuck(busy, named)) == 1
        assert _newly_stuck(busy, named) == []
    assert standing(run).busy == []


def test_nothing_is_said_of_a_process_that_is_gone(run: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from bench.activity import Activity\n"
        "with Activity(Path(sys.argv[1])).of('greeting', 'trial'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", program, str(run / "e")], cwd=REPOSITORY, check=False)
    assert (run / "e" / "activity.json").is_file()
    assert read_activity(run / "e") == []
