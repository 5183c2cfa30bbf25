"""What every suite shares: small trees and datasets made on the spot, and the command line run as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests share one cache between them, so that a package is fetched and a start application built once.

    CDB_CACHE of the caller is kept: a warm npm cache is what a user has, too.
    """
    os.environ.setdefault("CDB_CACHE", str(tmp_path_factory.mktemp("cache")))


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
