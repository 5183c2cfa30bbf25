"""Processes of our own beside the run (mirror, gateway, a trial's proxy): started until they say so, and ended."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.errors import InfraError

START_S = 30.0
_READY = '{"ready": true'


def start(
    what: str,
    module: str,
    options: Sequence[str],
    *,
    errors: Path,
    stop_s: float,
    env: Mapping[str, str] = os.environ,
) -> subprocess.Popen[str]:
    """Run `python -m MODULE OPTIONS` of this very package and wait for its first line, which says that it is ready.

    Its standard input is a pipe of ours, by whose end it knows that we died; standard error goes to file `errors`.
    `env`: all that it is given of the environment, beside the path of its modules. Raises InfraError, naming `what`.
    """
    home = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [home, os.environ.get("PYTHONPATH")]))
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env={**env, "PYTHONPATH": path},
        )  # fmt: skip
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_S)
    if ready and process.stdout.readline().startswith(_READY):
        return process
    stop(process, stop_s)
    raise InfraError(f"{what} did not start within {START_S:.0f} s: {last_words(errors)}")


def stop(process: subprocess.Popen[str], stop_s: float) -> None:
    """Ask it to end, and kill it after `stop_s`."""
    process.terminate()
    try:
        process.wait(stop_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(stop_s)
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()


def last_words(errors: Path) -> str:
    """The end of what it wrote to standard error."""
    told = errors.read_text(encoding="utf-8", errors="replace")[-2000:].strip() if errors.is_file() else ""
    return told or "it said nothing"
