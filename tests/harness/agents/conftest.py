"""Trials of real, pinned command lines in real containers; only the language model is scripted, over real HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agent_trials import KEY, MODEL, PHOTO, PICTURE, Seen, need
from fakes.model_server import ModelServer

from bench.cache import cache_folder
from bench.submission import check_seal, read_manifest
from bench.task import Task, read_task
from harness.agents.agent import Agent
from harness.agents.catalogue import COMMAND_LINES
from harness.line import ModelSettings
from harness.trial import TrialSettings, run_trial
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import Caps, GatewayConfig, ModelRule, Price, Upstream
from sandboxes.images import image_tag

USERS_PACKS = cache_folder("agents")
"""Taken before the suite gets a cache of its own: packs are hundreds of megabytes."""


@pytest.fixture(scope="session", autouse=True)
def packs(own_cache: None) -> None:
    """The suite's cache shows the packs of the user who runs it."""
    shown = Path(os.environ["CDB_CACHE"]) / "agents"
    with suppress(FileExistsError):  # another worker's
        shown.symlink_to(USERS_PACKS, target_is_directory=True)


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Task]:
    """A one-page application with an annotation and a photo; the request is what the caller says."""

    def make(request: str = "Please change it.") -> Task:
        folder = tmp_path / "cases" / "one"
        files = {
            "index.html": b"<h1>Hi</h1>\n",
            "_annotations/page, marked.png": PICTURE,
            "_attachments/photo \xc3\xa9.png".encode("latin-1").decode("utf-8"): PHOTO,
        }
        for name, content in files.items():
            (folder / "project" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "project" / name).write_bytes(content)
        (folder / "user_queries.json").write_text(json.dumps([{"text": request}]))
        return read_task(folder)

    return make


@pytest.fixture
def trial(
    tmp_path: Path, task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Seen]]:
    """Runs one trial of an agent (a name, or one that is made already) against a scripted model."""
    monkeypatch.setenv("FAKE_KEY", KEY)

    def go(
        agent: str | Agent,
        scenario: dict[str, Any],
        *,
        request: str = "Please change it.",
        timeout_s: float = 90,
        caps: Caps | None = None,
        grace_s: float = 5.0,
        key_required: str = KEY,
        case: Task | None = None,
    ) -> Seen:
        if isinstance(agent, str):
            need(agent)
            agent = COMMAND_LINES[agent](MODEL)
        said: list[str] = []
        folder = tmp_path / "runs" / agent.name / "1"
        upstream_key = {"key_env": "FAKE_KEY"}
        with ModelServer(scenario, key=key_required) as server:
            upstreams = {
                "fake": Upstream(base_url=server.address, auth="bearer", **upstream_key),
            }
            rule = ModelRule(asked=MODEL, upstream="fake", price=Price(input=3.0, output=15.0))
            with Gateway(GatewayConfig(upstreams=upstreams)) as gateway:
                settings = TrialSettings(
                    run="test",
                    image=image_tag("solver"),
                    submissions=tmp_path / "submissions",
                    timeout_s=timeout_s,
                    models=ModelSettings(
                        gateway,
                        (rule,),
                        caps or Caps(usd=10, tokens=10_000_000, requests=100),
                        secrets=(KEY,),
                        budget_grace_s=grace_s,
                    ),
                    report=said.append,
                )
                result = run_trial(case or task(request), agent, settings, folder, DockerSandbox)
            requests = server.requests()
        manifest = read_manifest(settings.submissions, result.case)
        if manifest:
            check_seal(settings.submissions, manifest)
        return Seen(result, manifest, settings.submissions, folder, requests, said)

    yield go
