"""An engine that loses answers, hangs or goes away in mid-trial: the trial goes on or is infra_error, and is never a
score, never hangs, and leaves no container once the engine is back."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from engine_proxy import EngineProxy

from bench.submission import check_seal, read_manifest
from bench.task import open_dataset
from harness.agents.catalogue import find_agent
from harness.trial import TrialResult, TrialSettings, run_trial
from sandboxes import engine, reap
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.owner import this_process
from sandboxes.sandbox import MIB, Limits

pytestmark = pytest.mark.docker
STEPS = {
    "create": r"POST .*/containers/create\?name=cdb-solver",
    "start": r"POST .*/start",
    "put": r"PUT .*/archive",
    "exec-create": r"POST .*/containers/\w+/exec",
    "exec-start": r"POST .*/exec/\w+/start",
    "exec-inspect": r"GET .*/exec/\w+/json",
    "look": r"GET .*/containers/\w+/json",
    "pause": r"POST .*/pause",
    "get": r"GET .*/archive",
    "remove": r"DELETE .*/containers",
}
"""Every kind of request a trial makes."""
ONCE = {"exec-start"}
"""What cannot be asked again: the agent would run twice. Every other lost answer costs nothing."""
LIMITS = Limits(memory_bytes=128 * MIB, pids=64, workspace_bytes=8 * MIB, home_bytes=8 * MIB, tmp_bytes=8 * MIB)


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineProxy]:
    """This process's engine is reached through the proxy, with five seconds of patience for each request."""
    with EngineProxy(Path(f"/tmp/cdb-{uuid.uuid4().hex[:8]}.sock")) as proxied:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{proxied.path}")
        monkeypatch.setenv("CDB_ENGINE_TIMEOUT_S", "5")
        monkeypatch.setattr(engine, "_shared", {})
        yield proxied
    proxied.path.unlink(missing_ok=True)


@pytest.fixture
def solve_one(tmp_path: Path, make_dataset: Callable[..., Path]) -> Callable[[str], TrialResult]:
    run = f"faults-{uuid.uuid4().hex[:8]}"

    def solve(script: str = "echo done > done", timeout_s: float = 30.0) -> TrialResult:
        agent = tmp_path / "agent.yaml"
        agent.write_text(yaml.safe_dump({"kind": "command", "name": "scripted", "argv": ["bash", "-c", script]}))
        task = open_dataset(make_dataset({"one": {"index.html": "x"}})).tasks[0]
        settings = TrialSettings(run, image_tag("base"), tmp_path / "submissions", timeout_s=timeout_s, limits=LIMITS)
        return run_trial(task, find_agent(str(agent)), settings, tmp_path / "trial", DockerSandbox)

    solve.run = run
    return solve


def left_of(run: str) -> list[reap.Leftover]:
    return [found for found in reap.leftovers() if found.run == run]


def holds_together(result: TrialResult, submissions: Path) -> None:
    """A good trial has a seal that fits, any other one has none."""
    manifest = read_manifest(submissions, "one")
    if result.outcome == "ok":
        assert manifest.changes == ["added: done"]
        check_seal(submissions, manifest)
    else:
        assert (result.outcome, manifest, result.digest) == ("infra_error", None, None), result


@pytest.mark.parametrize("fault", ["drop", "refuse"])
@pytest.mark.parametrize("step", STEPS)
def test_one_lost_answer_is_no_score_and_leaves_nothing(proxy, solve_one, tmp_path, step, fault):
    rule = proxy.add(STEPS[step], fault)
    result = solve_one()
    assert rule.hit.is_set(), proxy.requests
    holds_together(result, tmp_path / "submissions")
    assert (result.outcome == "ok") == (step not in ONCE), result.reason
    assert left_of(solve_one.run) == []


@pytest.mark.parametrize("step", ["create", "exec-start", "exec-inspect", "get", "remove"])
def test_an_engine_that_hangs_on_one_request_is_given_up(proxy, solve_one, tmp_path, step):
    rule = proxy.add(STEPS[step], "hold")
    began = time.monotonic()
    result = solve_one()
    assert rule.hit.is_set()
    assert time.monotonic() - began < 60
    holds_together(result, tmp_path / "submissions")
    rule.released.set()
    time.sleep(1.0)  # what was held is now carried out: a container made too late is never started, and is reaped
    late = [found for found in left_of(solve_one.run) if found.kind == "container"]
    assert len(late) <= (1 if step == "create" else 0)
    for found in late:
        assert engine.engine().api.inspect_container(found.id)["State"]["Status"] == "created"
        assert found.owner == this_process()
        engine.engine().api.remove_container(found.id, force=True, v=True)
    assert left_of(solve_one.run) == []


def test_an_engine_that_goes_away_in_mid_trial_and_comes_back_does_not_cost_the_trial(proxy, solve_one, tmp_path):
    def away() -> None:
        while not any("/exec/" in request for request in proxy.requests):
            time.sleep(0.05)
        time.sleep(0.5)
        proxy.cut()
        time.sleep(1.0)
        proxy.mend()

    threading.Thread(target=away, daemon=True).start()
    result = solve_one("sleep 4; echo done > done")
    assert result.outcome == "ok", result.reason
    holds_together(result, tmp_path / "submissions")
    assert left_of(solve_one.run) == []


def test_an_engine_that_stays_away_ends_the_trial_as_infra_error(proxy, solve_one, tmp_path):
    def away() -> None:
        while not any("/exec/" in request for request in proxy.requests):
            time.sleep(0.05)
        proxy.cut()

    threading.Thread(target=away, daemon=True).start()
    began = time.monotonic()
    result = solve_one("sleep 60")
    assert (result.outcome, result.digest) == ("infra_error", None)
    assert time.monotonic() - began < 90
    proxy.mend()
    (left,) = [found for found in left_of(solve_one.run) if found.kind == "container"]
    engine.engine().api.remove_container(left.id, force=True, v=True)
    assert left_of(solve_one.run) == []
