"""What every suite shares: small trees and datasets made on the spot, and the command line run as a user would."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent
AGENTS = "tests/harness/agents/"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file runs in one worker; so does the folder of agents, whose trials share one stage."""
    from xdist.scheduler import LoadFileScheduling

    class ByPlace(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return AGENTS if path.startswith(AGENTS) else path

    return ByPlace(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long suites first: where several files run at once, none of them is begun last."""
    long = {item.path for item in items if item.get_closest_marker("slow") or item.nodeid.startswith(AGENTS)}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def shared_tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this test run, the same one in every worker process."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def own_cache(shared_tmp: Path) -> None:
    """Tests share one cache between them, so that a package is fetched and a start application built once.

    CDB_CACHE of the caller is kept: a warm npm cache is what a user has, too.
    """
    cache = shared_tmp / "cache"
    cache.mkdir(exist_ok=True)
    os.environ.setdefault("CDB_CACHE", str(cache))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """A test marked `alone` runs while no other worker runs one, its fixtures included; waiting is no test's time."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    lock = Path(item.config.option.basetemp).parent / "alone.lock"  # the run's own folder: a worker's lies in it
    with _held(lock, item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def _held(path: Path, exclusive: bool) -> Iterator[None]:
    """Hold the lock shared or exclusively. Everyone passes a turnstile, so that who wants it alone is not overtaken."""
    with path.open("w") as lock, path.with_suffix(".turnstile").open("w") as turnstile:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield


@pytest.fixture
def make_dataset(tmp_path: Path) -> Callable[..., Path]:
    """Makes an extracted root with the given cases: name → {relative path: text} of the application."""

    def make(cases: dict[str, dict[str, str]], request: str = "Please change it.", root: str = "dataset") -> Path:
        folder = tmp_path / root
        for case, files in cases.items():
            project = folder / "cases" / case / "project"
            for name, text in files.items():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                (project / name).write_text(text, encoding="utf-8")
            (folder / "cases" / case / "user_queries.json").write_text(
                json.dumps([{"text": request}], ensure_ascii=False), encoding="utf-8"
            )
        return folder

    return make


@pytest.fixture(scope="session")
def run_cdb() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `cdb` in a process of its own; the deadline makes a hang a failure."""

    def run(
        args: Sequence[str | Path],
        *,
        deadline_s: float = 240,
        env: dict[str, str] | None = None,
        cwd: Path = REPOSITORY,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "cdb", *map(str, args)], capture_output=True, text=True, timeout=deadline_s,
            env={**os.environ, **(env or {})}, cwd=cwd, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    return run
