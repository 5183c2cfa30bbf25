"""What goes wrong between an agent and its model, and whose it is then: the four agents meet all of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from agent_trials import ALL, FOUR, OTHERS, Play, Seen, played, script
from fakes.model_server import run, say

from bench.outcomes import TRIAL
from sandboxes.bounded_output import HEAD_BYTES, TAIL_BYTES
from sandboxes.gateway.policy import Caps

pytestmark = pytest.mark.docker
WITH_TURNS = tuple(name for name in ALL if name != "aider")
"""aider asks once and runs no command: it can be stopped nowhere in between."""
ENDS_AT_A_CUT = ("gemini-cli",)
"""It asks no second time when a stream breaks off: the provider's fault then, and the trial is tried again."""
ENDS_WITH_0 = ("pi", "aider")
"""Whatever happened to them."""
ASKS_ON = ("claude-code",)
"""With a key that is refused it asks ten times more, for three minutes."""
WAITS_S = 45.0
"""Time limit of trials that run into it: an agent has to be up and at work by then."""
SLOW_TO_START = {"mini-swe-agent": 90.0}
"""It imports litellm, which takes half a minute while eight trials share two processors."""
LINE_BYTES = {"mini-swe-agent": 300_000}
"""mini-swe-agent prints no events and takes a minute to set 5 MB in lines."""
FIVE_MB = 5_000_000


def with_fault(name: str, *commands: str, last: str = "All done.", **fault: Any) -> dict[str, Any]:
    return {"turns": script(name, *commands, last=last), "faults": [fault]}


def _hang(name: str) -> Play:
    scenario = with_fault(name, "echo half > half.txt", at=1, times=-1, hang_after=0)
    return Play(name, scenario, timeout_s=SLOW_TO_START.get(name, WAITS_S), waits=True)


@pytest.mark.parametrize("name", FOUR)
@played(_hang)
def test_c20_a_model_that_never_answers_runs_into_the_deadline_and_the_work_is_kept(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "agent_timeout", seen.result.reason
    assert seen.result.exit_code is None
    assert seen.manifest and "added: half.txt" in seen.manifest.changes


def _outage(name: str) -> Play:
    fault_at = 0 if name == "aider" else 1
    return Play(
        name,
        with_fault(name, "echo half > half.txt", at=fault_at, times=-1, status=504),
        timeout_s=WAITS_S,
        waits=True,
    )


@pytest.mark.parametrize("name", ["codex", "gemini-cli", *(name for name in OTHERS if name in ENDS_WITH_0)])
@played(_outage)
def test_c45_a_provider_that_stays_away_is_infrastructure_and_the_work_is_kept(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "infra_error", seen.result.reason
    assert TRIAL["infra_error"].retry
    assert "504" in seen.result.reason
    assert seen.manifest is None
    if name != "aider":
        assert (seen.folder / "workspace" / "half.txt").read_text().strip() == "half"


def _failures(name: str) -> Play:
    return Play(name, with_fault(name, "echo hello > hello.txt", at=0, times=2, status=500), timeout_s=200)


@pytest.mark.parametrize("name", ALL)
@played(_failures)
def test_two_failures_of_the_provider_do_not_end_an_agent(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert seen.result.account["statuses"]["500"] == 2


def _limited(name: str) -> Play:
    return Play(name, with_fault(name, "echo hello > hello.txt", at=0, times=1, status=429, retry_after="2"))


@pytest.mark.parametrize("name", FOUR)
@played(_limited)
def test_c44_a_rate_limit_is_waited_for_and_is_not_the_agents_time(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert seen.result.account["statuses"] == {"200": 2, "429": 1}
    first, second, _ = (call for call in seen.calls if call.kind == "model")
    began = [datetime.fromisoformat(call.started_at) for call in (first, second)]
    assert (began[1] - began[0]).total_seconds() + second.waited_s >= 2


def _cut(name: str) -> Play:
    cut_after = 0 if name == "gemini-cli" else 1  # its whole answer is one event
    return Play(name, with_fault(name, "echo hello > hello.txt", at=1, times=1, cut_after=cut_after))


@pytest.mark.parametrize("name", FOUR)
@played(_cut)
def test_a_stream_that_is_cut_is_told_from_an_answer(seen: Seen, name: str) -> None:
    assert "upstream_cut" in {call.ended for call in seen.calls}
    if name in ENDS_AT_A_CUT:
        assert (seen.result.outcome, seen.manifest) == ("infra_error", None), seen.result.reason
        return
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]


def _spending(name: str) -> Play:
    turns = [[run(f"echo {number} > step.txt")] for number in range(30)]
    return Play(name, {"turns": turns}, caps=Caps(usd=0.01, tokens=None, requests=None), grace_s=2.0)


@pytest.mark.parametrize("name", WITH_TURNS)
@played(_spending)
def test_c41_a_budget_that_is_used_up_ends_the_trial_and_the_work_is_sealed(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "budget_exceeded"
    assert "usd cap" in seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: step.txt"]
    assert seen.result.account["calls"] <= 4  # 0.00375 USD each: the third crosses the cap, at most one goes over
    assert seen.result.account["exhausted"] == "usd"


def _refused(name: str) -> Play:
    waits = name in ASKS_ON
    scenario = {"turns": script(name, "echo hello > hello.txt")}
    return Play(name, scenario, key_required="another key", timeout_s=WAITS_S if waits else 90, waits=waits)


@pytest.mark.parametrize("name", ALL)
@played(_refused)
def test_a_key_that_the_provider_refuses_is_the_operators_to_mend(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "setup_error", seen.result.reason
    assert "refused the key" in seen.result.reason
    assert seen.manifest is None


def _terminated(name: str) -> Play:
    return Play(name, {"turns": [[run("echo half > half.txt")], [run("kill -TERM -1; sleep 30")], [say("Done.")]]})


@pytest.mark.parametrize("name", WITH_TURNS)
@played(_terminated)
def test_an_agent_that_is_terminated_has_not_ended_well_and_its_work_is_kept(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "agent_error", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: half.txt"]


def _long_line(name: str) -> Play:
    """Before its last word: what is left unread when a Node program exits is lost beyond 64 KB."""
    size = LINE_BYTES.get(name, FIVE_MB)
    text = " ".join(map(str, range(size // 5)))[:size]  # gemini-cli takes what repeats itself for a loop, and stops
    turns = script(name, "echo hello > hello.txt")
    turns[0].insert(0, say(text))
    return Play(name, {"turns": turns, "events": 1})


@pytest.mark.parametrize("name", FOUR)
@played(_long_line)
def test_c35_an_event_of_five_megabytes_is_read_and_the_end_behind_it(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.result.account["reported_ok"] is True
    stdout = seen.folder / "stdout.log"
    assert LINE_BYTES.get(name, FIVE_MB) < stdout.stat().st_size < HEAD_BYTES + TAIL_BYTES + 1000


def test_no_agent_is_tested_twice_or_left_out() -> None:
    assert len({*FOUR, *OTHERS}) == len(ALL) >= 4
