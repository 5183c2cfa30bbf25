"""Where trials of agents are played: one gateway and one scripted model server for all, several trials at a time."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_trials import KEY, MODEL, Play, Seen, make_task, need
from fakes.model_server import ModelServer

from bench.submission import check_seal, read_manifest
from harness.agents.catalogue import COMMAND_LINES
from harness.line import ModelSettings
from harness.trial import TrialSettings, run_trial
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import GatewayConfig, ModelRule, Price, Upstream
from sandboxes.images import image_tag
from sandboxes.packs.recipe import RECIPES
from sandboxes.packs.store import find_pack

AT_A_TIME = 4
WAITING_AT_A_TIME = 4
MOST_PLAYS = 400
Key = tuple[str, tuple[tuple[str, object], ...]]


class Stage:
    """Plays trials in threads of a pool, each once."""

    def __init__(self, server: ModelServer, gateway: Gateway, folder: Path) -> None:
        self._server, self._gateway, self._folder = server, gateway, folder
        self._at_work, self._waiting = ThreadPoolExecutor(AT_A_TIME), ThreadPoolExecutor(WAITING_AT_A_TIME)
        self._numbers = itertools.count()  # next() of it is atomic
        self._playing: dict[Key, Future[Seen]] = {}
        self._announced = False

    def announce(self, items: list[pytest.Item]) -> None:
        """Begin with every trial that these tests ask for, in their order; once for a session."""
        items, self._announced = ([] if self._announced else items), True
        for item in items:
            if (found := play_of(item)) and find_pack(RECIPES[found[1].pack]) is not None:
                self._begin(*found)

    def seen(self, item: pytest.Item) -> Seen:
        """What the trial of this test left, once it has ended. Fails or skips where its agent is not installed."""
        found = play_of(item)
        assert found is not None, "the test names no trial: mark it with @played"
        need(found[1].pack)
        return self._begin(*found).result()

    def _begin(self, key: Key, play: Play) -> Future[Seen]:
        if key not in self._playing:
            pool = self._waiting if play.waits else self._at_work
            self._playing[key] = pool.submit(self.play, play)
        return self._playing[key]

    def close(self) -> None:
        """A trial that nobody waits for any more is not begun; those under way end."""
        for pool in (self._at_work, self._waiting):
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in (self._at_work, self._waiting):
            pool.shutdown()

    def play(self, play: Play) -> Seen:
        """One trial, now."""
        number = next(self._numbers)
        name = f"s{number}"
        folder = self._folder / name
        agent = COMMAND_LINES[play.agent](MODEL) if isinstance(play.agent, str) else play.agent
        task = play.case(folder) if play.case else make_task(folder, play.request)
        self._server.open_stage(name, play.scenario, play.key_required)
        openai = bool(agent.protocol and agent.protocol.startswith("openai"))
        rule = ModelRule(asked=MODEL, upstream=f"{name}-v1" if openai else name, price=Price(input=3.0, output=15.0))
        said: list[str] = []
        settings = TrialSettings(
            run="test",
            image=image_tag("solver"),
            submissions=folder / "submissions",
            timeout_s=play.timeout_s * _business(),
            models=ModelSettings(self._gateway, (rule,), play.caps, secrets=(KEY,), budget_grace_s=play.grace_s),
            report=said.append,
        )
        kept = folder / "runs" / agent.name / "1"
        result = run_trial(task, agent, settings, kept, DockerSandbox)
        manifest = read_manifest(settings.submissions, result.case)
        if manifest:
            check_seal(settings.submissions, manifest)
        return Seen(result, manifest, settings.submissions, kept, self._server.requests(name), said)


@contextmanager
def open_stage(folder: Path) -> Iterator[Stage]:
    """Owns server, gateway and threads."""
    os.environ["FAKE_KEY"] = KEY
    with ModelServer() as server:
        told = {"auth": "bearer", "key_env": "FAKE_KEY"}
        places = [(f"s{n}", f"{server.address}/_stage/s{n}") for n in range(MOST_PLAYS)]
        upstreams = {name: Upstream(base_url=address, **told) for name, address in places}
        upstreams |= {f"{name}-v1": Upstream(base_url=f"{address}/v1", **told) for name, address in places}
        with Gateway(GatewayConfig(upstreams=upstreams)) as gateway:
            stage = Stage(server, gateway, folder)
            try:
                yield stage
            finally:
                stage.close()


def _business() -> float:
    """How much longer everything takes on a machine that has more to do than these trials."""
    return max(1.0, os.getloadavg()[0] / (3 * (os.cpu_count() or 1)))


def play_of(item: pytest.Item) -> tuple[Key, Play] | None:
    """The trial that a test asks for, and what makes it the same as another's."""
    make = getattr(getattr(item, "function", None), "play", None)
    if make is None:
        return None
    names = make.__code__.co_varnames[: make.__code__.co_argcount]
    params = item.callspec.params if hasattr(item, "callspec") else {}
    chosen = tuple((name, params[name]) for name in names)
    return (f"{make.__module__}.{make.__qualname__}", chosen), make(**dict(chosen))
