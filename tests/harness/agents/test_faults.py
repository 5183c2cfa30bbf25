"""What goes wrong between an agent and its model, and whose it is then. Each agent meets some of it, all of it is met."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from agent_trials import ALL, FOUR, Seen, script
from fakes.model_server import run, say

from bench.outcomes import TRIAL
from sandboxes.bounded_output import HEAD_BYTES, TAIL_BYTES
from sandboxes.gateway.policy import Caps

pytestmark = pytest.mark.docker
OTHERS = tuple(name for name in ALL if name not in FOUR)


def with_fault(name: str, *commands: str, **fault: Any) -> dict[str, Any]:
    return {"turns": script(name, *commands), "faults": [fault]}


@pytest.mark.parametrize("name", ["claude-code", "codex", "mini-swe-agent", *OTHERS])
def test_c41_a_budget_that_is_used_up_ends_the_trial_and_the_work_is_sealed(
    trial: Callable[..., Seen], name: str
) -> None:
    turns = [[run(f"echo {number} > step.txt")] for number in range(30)]
    if name == "aider":
        pytest.skip("aider takes one turn: it cannot go on past a cap")
    seen = trial(name, {"turns": turns}, caps=Caps(usd=0.01, tokens=None, requests=None), grace_s=2.0)
    assert seen.result.outcome == "budget_exceeded"
    assert "usd cap" in seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: step.txt"]
    assert seen.result.account["calls"] <= 4  # 0.00375 USD each: the third crosses the cap, at most one goes over
    assert seen.result.account["exhausted"] == "usd"


@pytest.mark.parametrize("name", ["codex", "gemini-cli", *OTHERS])
def test_a_key_that_the_provider_refuses_is_the_operators_to_mend(trial: Callable[..., Seen], name: str) -> None:
    seen = trial(name, {"turns": script(name, "echo hello > hello.txt")}, key_required="another key")
    assert seen.result.outcome == "setup_error", seen.result.reason
    assert "refused the key" in seen.result.reason
    assert seen.manifest is None


@pytest.mark.parametrize("name", ["claude-code"])
def test_c44_a_rate_limit_is_waited_for_and_is_not_the_agents_time(trial: Callable[..., Seen], name: str) -> None:
    scenario = with_fault(name, "echo hello > hello.txt", at=0, times=1, status=429, retry_after="2")
    seen = trial(name, scenario)
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert seen.result.account["statuses"] == {"200": 2, "429": 1}
    first, second = (call for call in seen.calls if call.kind == "model" and call.n <= 2)
    began = [datetime.fromisoformat(call.started_at) for call in (first, second)]
    assert (began[1] - began[0]).total_seconds() >= 2


@pytest.mark.parametrize("name", ["claude-code", "codex", *OTHERS])
def test_two_failures_of_the_provider_do_not_end_an_agent(trial: Callable[..., Seen], name: str) -> None:
    seen = trial(name, with_fault(name, "echo hello > hello.txt", at=0, times=2, status=500), timeout_s=150)
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert seen.result.account["statuses"]["500"] == 2


@pytest.mark.parametrize("name", ["codex", "gemini-cli", *OTHERS])
def test_c45_a_provider_that_stays_away_is_infrastructure_and_the_work_is_kept(
    trial: Callable[..., Seen], name: str
) -> None:
    fault_at = 0 if name == "aider" else 1
    scenario = with_fault(name, "echo half > half.txt", at=fault_at, times=-1, status=504)
    seen = trial(name, scenario, timeout_s=14)
    assert seen.result.outcome == "infra_error", seen.result.reason
    assert TRIAL["infra_error"].retry
    assert "504" in seen.result.reason
    assert seen.manifest is None
    if name != "aider":
        assert (seen.folder / "workspace" / "half.txt").read_text().strip() == "half"


def test_a_stream_that_is_cut_is_told_from_an_answer(trial: Callable[..., Seen]) -> None:
    seen = trial("codex", with_fault("codex", "echo hello > hello.txt", at=1, times=1, cut_after=1))
    assert seen.result.outcome == "ok", seen.result.reason
    assert "upstream_cut" in {call.ended for call in seen.calls}
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]


@pytest.mark.parametrize("name", ["claude-code", "mini-swe-agent", *OTHERS])
def test_c20_a_model_that_never_answers_runs_into_the_deadline_and_the_work_is_kept(
    trial: Callable[..., Seen], name: str
) -> None:
    if name == "aider":
        pytest.skip("aider has done nothing before its only answer")
    scenario = with_fault(name, "echo half > half.txt", at=1, times=-1, hang_after=0)
    seen = trial(name, scenario, timeout_s=8 if name == "claude-code" else 15)
    assert seen.result.outcome == "agent_timeout", seen.result.reason
    assert seen.result.exit_code is None
    assert seen.manifest and "added: half.txt" in seen.manifest.changes
    assert seen.result.duration_s < 30


@pytest.mark.parametrize("name", ["gemini-cli", "codex", *OTHERS])
def test_an_agent_that_is_terminated_has_not_ended_well_and_its_work_is_kept(
    trial: Callable[..., Seen], name: str
) -> None:
    if name == "aider":
        pytest.skip("aider runs no command")
    turns = [[run("echo half > half.txt")], [run("kill -TERM -1; sleep 30")], [say("Done.")]]
    seen = trial(name, {"turns": turns}, timeout_s=60)
    assert seen.result.outcome == "agent_error", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: half.txt"]


@pytest.mark.parametrize("name", ["codex", "claude-code"])
def test_c22_a_server_left_running_does_not_hold_the_trial(trial: Callable[..., Seen], name: str) -> None:
    serve = "nohup python3 -m http.server 8123 > /dev/null 2>&1 & echo up > up.txt"
    seen = trial(name, {"turns": script(name, serve)})
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: up.txt"]
    assert seen.result.duration_s < 45


def test_c35_an_event_of_five_megabytes_is_read_and_the_end_behind_it(trial: Callable[..., Seen]) -> None:
    long = "x" * 5_000_000
    scenario = {"turns": script("claude-code", "echo hello > hello.txt", last=long), "events": 1}
    seen = trial("claude-code", scenario)
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.result.account["reported_ok"] is True
    stdout = seen.folder / "stdout.log"
    assert 5_000_000 < stdout.stat().st_size < HEAD_BYTES + TAIL_BYTES + 1000
    assert seen.result.account["reported_turns"] == 2
