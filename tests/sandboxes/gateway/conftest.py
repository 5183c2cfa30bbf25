"""One gateway and one scripted model server for all tests of the gateway; a fresh trial for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import ModelServer, say
from gateway_calls import KEY, Agent, config, open_agent

from sandboxes.gateway.client import Gateway


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def gateway(model: ModelServer) -> Iterator[Gateway]:
    os.environ["CDB_TEST_KEY"] = KEY
    with Gateway(config(model.address)) as gateway:
        yield gateway


@pytest.fixture
def play(model: ModelServer) -> Callable[..., ModelServer]:
    """Sets the script: `play(faults=[…], usage={…})` with one short text unless `turns` says otherwise."""

    def play(**scenario: Any) -> ModelServer:
        model.play({"turns": [[say("Grüße, 世界.")]], **scenario})
        return model

    return play


@pytest.fixture
def open_trial(gateway: Gateway, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    opened: list[Agent] = []

    def open_trial(**policy: Any) -> Agent:
        agent = open_agent(gateway, tmp_path / f"trial{len(opened)}", **policy)
        opened.append(agent)
        return agent

    yield open_trial
    for agent in opened:
        agent.close()
