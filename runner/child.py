"""One step of a run as a process of its own: its lines passed on and logged, its answer read, its end with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.errors import CdbError
from bench.parent import PARENT
from bench.pool import stopping_on_signals

INCOMPLETE = 3


class StepFailed(CdbError):
    """A step ended with an exit code other than 0 and 3, which becomes the run's own."""

    def __init__(self, exit_code: int, message: str, answer: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code if exit_code > 0 else 1
        self.answer = answer or {}
        """What it answered before it failed."""


def run_step(argv: list[str], log: Path, progress: Callable[[str], None]) -> tuple[dict[str, Any], bool]:
    """Run `cdb ARGV --json`; gives its answer and whether it is complete (exit 0, not 3).

    For the main thread, since signals are passed on to the step. Raises StepFailed naming the step, its last line
    and the log, Interrupted when this run was told to stop.
    """
    with tempfile.TemporaryFile() as answer:
        process = subprocess.Popen(
            [sys.executable, "-m", "cdb", *argv, "--json"],
            stdin=subprocess.DEVNULL, stdout=answer, stderr=subprocess.PIPE, text=True, errors="backslashreplace",
            env={**os.environ, PARENT: str(os.getpid())},
        )  # fmt: skip
        said: list[str] = []
        reader = threading.Thread(target=_pass_on, args=(process, log, progress, said), daemon=True)
        with stopping_on_signals(process.terminate) as stop:
            reader.start()
            process.wait()
        reader.join(timeout=5)  # a grandchild may hold the pipe open
        stop.raise_if_set()
        answer.seek(0)
        text = answer.read().decode("utf-8", "backslashreplace").strip()
    try:
        found = json.loads(text.splitlines()[-1]) if text else {}
    except ValueError as error:
        raise StepFailed(1, f"`cdb {argv[0]} --json` answered no JSON ({error}); its log: {log}") from error
    if process.returncode not in (0, INCOMPLETE):
        last = said[-1] if said else "it said nothing"
        what = f"`cdb {' '.join(argv)}` ended with {process.returncode}: {last}; its log: {log}"
        raise StepFailed(process.returncode, what, found)
    return found, process.returncode == 0


def _pass_on(process: subprocess.Popen[str], log: Path, progress: Callable[[str], None], said: list[str]) -> None:
    assert process.stderr is not None
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8", errors="backslashreplace") as stream:
        for line in process.stderr:
            stream.write(line)
            stream.flush()
            text = line.rstrip()
            if text:
                said.append(text)
                del said[:-20]
                progress(text)
