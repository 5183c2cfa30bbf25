"""Trials of real, pinned command lines in real containers; only the language model is scripted, over real HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agent_trials import Play, Seen, make_task
from stage import Stage, open_stage

from bench.cache import cache_folder
from bench.task import Task
from harness.agents.agent import Agent

USERS_PACKS = cache_folder("agents")
"""Taken before the suite gets a cache of its own: packs are hundreds of megabytes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for no trial comes first here: it runs while the trials are played."""
    places = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    ordered = sorted(
        (items[place] for place in places), key=lambda item: hasattr(getattr(item, "function", None), "play")
    )
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="session", autouse=True)
def packs(own_cache: None) -> None:
    """The suite's cache shows the packs of the user who runs it."""
    shown = Path(os.environ["CDB_CACHE"]) / "agents"
    with suppress(FileExistsError):  # another worker's
        shown.symlink_to(USERS_PACKS, target_is_directory=True)


@pytest.fixture(scope="session")
def stage(packs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("stage")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def begun(request: pytest.FixtureRequest) -> None:
    """All trials of the session begin with its first test, those that nobody asks for never."""
    if any(hasattr(getattr(item, "function", None), "play") for item in request.session.items):
        request.getfixturevalue("stage").announce(request.session.items)


@pytest.fixture
def seen(request: pytest.FixtureRequest, stage: Stage) -> Seen:
    """What the test's own trial (`@played`) left."""
    return stage.seen(request.node)


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Task]:
    """A one-page application with an annotation and a photo; the request is what the caller says."""
    return lambda *request: make_task(tmp_path, *request)


@pytest.fixture
def trial(stage: Stage) -> Callable[..., Seen]:
    """Runs one trial here and now, for a test that makes its agent itself."""

    def go(agent: Agent, scenario: dict[str, Any], **settings: Any) -> Seen:
        return stage.play(Play(agent, scenario, **settings))

    return go
