"""The judged run that is exported, and the real tools it must open in, each pinned by hash in a venv of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from judged_run import JudgedRun, make_judged_run

PINNED = Path(__file__).parent / "pinned"
UNREACHABLE = ("dns error", "error sending request", "failed to fetch", "connection refused", "timed out", "no route")


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return make_judged_run(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="session")
def tool_python(own_cache: None) -> Callable[[str, str], Path]:
    """The Python of a venv that holds what pinned/NAME.txt lists; made once below the cache.

    Skips, saying why, where there is no such Python or where the package registry cannot be reached.
    """

    def make(name: str, python: str) -> Path:
        pins = PINNED / f"{name}.txt"
        venv = Path(os.environ["CDB_CACHE"]) / f"test-{name}"
        done = venv / "pinned.txt"
        if not done.is_file() or done.read_bytes() != pins.read_bytes():
            shutil.rmtree(venv, ignore_errors=True)
            uv = str(Path(sys.executable).parent / "uv")  # from requirements-dev.lock
            _run([uv, "venv", "-q", "-p", python, str(venv)])
            _run(
                [
                    uv,
                    "pip",
                    "install",
                    "-q",
                    "--no-deps",
                    "--require-hashes",
                    "-p",
                    str(venv / "bin/python"),
                    "-r",
                    str(pins),
                ]
            )
            shutil.copyfile(pins, done)
        return venv / "bin/python"

    return make


def _run(argv: list[str]) -> None:
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
    if ended.returncode and any(word in ended.stderr.lower() for word in UNREACHABLE):
        pytest.skip(f"the package registry cannot be reached: {ended.stderr.strip().splitlines()[-1]}")
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.fixture(scope="session")
def python_312() -> str:
    """A Python of 3.12 or newer on this machine."""
    names = [sys.executable, *(f"python3.{minor}" for minor in (12, 13))]
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    names += [str(path) for minor in (12, 13) for path in sorted(versions.glob(f"3.{minor}.*/bin/python"))]
    asked = "import sys; sys.exit(sys.version_info < (3, 12))"
    for name in names:
        found = shutil.which(name)
        if (
            found
            and subprocess.run([found, "-c", asked], capture_output=True, timeout=30, check=False).returncode == 0
        ):
            return found
    pytest.skip("there is no Python 3.12 or newer on this machine, which harbor needs")
