"""Fixtures for judges: one scripted model server a session, a fresh desk a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import ModelServer
from judge_desk import HELD, Desk, FakeStage


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    with ModelServer({"turns": [[{"text": "ok"}]]}) as server:
        yield server


@pytest.fixture
def desk(model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("CDB_TEST_KEY", "sk-test")
    return Desk(model_server, tmp_path, FakeStage(tmp_path / "results"))


@pytest.fixture
def claim() -> Callable[..., dict[str, Any]]:
    """A claim as a model gives it."""

    def make(sub: str = "a", holds: bool = True, witness: Any = HELD, **more: Any) -> dict[str, Any]:
        return {"sub": sub, "holds": holds, "witness": witness, "reason": "I saw it.", **more}

    return make
