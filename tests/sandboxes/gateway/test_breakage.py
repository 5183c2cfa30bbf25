"""Broken streams, rate limits, outages: C39, C44, C45; and the ends of calls and trials."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.model_server import ModelServer, say
from gateway_calls import (
    CHAT,
    GEMINI_STREAM,
    MESSAGES,
    RESPONSES,
    Agent,
    UnixConnection,
    body,
    config,
    open_agent,
    wait_for,
)

from sandboxes.gateway.client import Gateway
from sandboxes.gateway.pause import Pause, retry_after_s
from sandboxes.gateway.policy import ModelRule
from sandboxes.gateway.records import ending, read_body

Play = Callable[..., ModelServer]
OpenTrial = Callable[..., Agent]
USAGE = {"input": 10_000, "output": 500}


def test_c39_a_reset_after_message_start_keeps_its_input_and_is_flagged(play: Play, open_trial: OpenTrial) -> None:
    play(usage=USAGE, faults=[{"cut_after": 4}])
    agent = open_trial()
    answer = agent.ask(MESSAGES, stream=True)
    assert answer.cut and b"message_start" in answer.body and b"message_stop" not in answer.body
    call = agent.last()
    assert call.ended == "upstream_cut" and call.usage_partial
    assert call.usage == {"input": 10_000, "output": 1}
    assert call.cost_usd == pytest.approx((10_000 * 3 + 15) / 1e6)
    assert call.cap_usd is not None and call.cap_usd >= call.cost_usd
    assert read_body(agent.folder, call.response_sha256) == answer.body
    summary = agent.close()
    assert summary.partial_calls == 1 and summary.tokens["input"] == 10_000 and summary.ending == "outage"


def test_c39_what_a_broken_answer_did_not_tell_counts_against_the_cap(play: Play, open_trial: OpenTrial) -> None:
    play(turns=[[say("word " * 20_000)]], events=50, usage=USAGE, faults=[{"cut_after": 40}])
    agent = open_trial()
    agent.ask(MESSAGES, stream=True)
    call = agent.last()
    assert call.usage == {"input": 10_000, "output": 1}
    assert call.cap_usd is not None and call.cost_usd is not None
    assert call.cap_usd > call.cost_usd + 2000 * 15 / 1e6


@pytest.mark.parametrize(
    ("path", "at"),
    [*itertools.product([MESSAGES, CHAT, RESPONSES], range(4)), *itertools.product([GEMINI_STREAM], range(3))],
)
def test_c39_wherever_a_stream_is_cut_the_client_sees_it_and_nothing_is_free(
    play: Play, open_trial: OpenTrial, path: str, at: int
) -> None:
    server = play(usage=USAGE, faults=[{"cut_after": at}])
    agent = open_trial()
    try:
        cut = agent.ask(path, stream=True).cut
    except (ConnectionError, OSError):
        cut = True
    assert cut
    call = agent.last()
    assert call.usage_partial or call.upstream_status is None
    assert call.cost_usd is None or call.cost_usd > 0 or call.upstream_status is None
    assert len(server.requests()) == 1


def test_c39_a_cut_document_is_cut_for_the_client(play: Play, open_trial: OpenTrial) -> None:
    play(faults=[{"cut_after": 0}])
    agent = open_trial()
    assert agent.ask(MESSAGES).cut
    assert agent.last().ended == "upstream_cut" and agent.last().usage_partial


def test_c39_silence_is_ended_and_its_usage_kept(play: Play, open_trial: OpenTrial) -> None:
    play(usage=USAGE, faults=[{"hang_after": 3}])
    agent = open_trial(idle_timeout_s=0.3)
    began = time.monotonic()
    answer = agent.ask(MESSAGES, stream=True)
    assert answer.cut and time.monotonic() - began < 5
    call = agent.last()
    assert call.ended == "idle_timeout" and call.usage is not None and call.usage["input"] == 10_000
    assert call.note == "silent for 0.3 s"


def test_c39_silence_before_the_answer_is_a_504(play: Play, open_trial: OpenTrial) -> None:
    play(faults=[{"hang_after": 0}])
    agent = open_trial(whole_timeout_s=0.3)
    assert agent.ask(MESSAGES).status == 504
    assert agent.last().ended == "idle_timeout"
    assert agent.close().ending == "outage"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"sent": True, "duration_s": 600.0}, "outage"),
        (
            {"sent": True, "duration_s": 600.0, "waited_s": 590.0},
            "ok",
        ),  # it waited for a rate limit, not for an answer
        ({"sent": True, "duration_s": 5.0}, "ok"),
        ({"sent": False, "duration_s": 600.0}, "ok"),
        ({"sent": True, "duration_s": 600.0, "upstream_status": 200}, "ok"),
    ],
)
def test_c45_a_provider_that_is_silent_until_the_agents_client_gives_up_is_out(
    told: dict[str, object], expected: str
) -> None:
    assert ending({"ended": "client_gone", "upstream_status": None, **told}) == expected


def test_slow_is_not_silent(play: Play, open_trial: OpenTrial) -> None:
    play(faults=[{"slow_s": 0.3}])
    agent = open_trial(idle_timeout_s=1.5)
    assert agent.ask(MESSAGES, stream=True).status == 200
    assert agent.last().ended == "ok" and agent.last().duration_s > 1.5


def test_c39_a_client_that_goes_away_ends_the_call_upstream_too(play: Play, open_trial: OpenTrial) -> None:
    server = play(usage=USAGE, faults=[{"slow_s": 0.2, "times": -1}], events=100)
    agent = open_trial()
    connection = UnixConnection(agent.trial.socket)
    headers = {"x-api-key": agent.trial.token}
    import json

    connection.request("POST", MESSAGES, json.dumps(body(MESSAGES, stream=True)), headers)
    assert b"message_start" in connection.getresponse().read(200)
    connection.close()
    call = agent.last()
    assert call.ended == "client_gone" and call.usage_partial
    assert call.usage == {"input": 10_000, "output": 1} and call.cost_usd is not None and call.cost_usd > 0
    wait_for(lambda: server.requests()[0]["ended"] == "client gone")
    assert agent.close().in_flight == 0


def test_a_client_that_gives_up_while_it_waits_was_no_call(play: Play, open_trial: OpenTrial) -> None:
    server = play(faults=[{"status": 429, "retry_after": "2"}])
    agent = open_trial()
    assert agent.ask(MESSAGES).status == 429
    with pytest.raises(TimeoutError):
        agent.ask(MESSAGES, timeout=0.3)
    call = agent.last(calls=2)
    assert call.ended == "client_gone" and not call.sent and call.cost_usd == 0.0
    summary = agent.close()
    assert (summary.calls, summary.requests, summary.ending) == (1, 0, "rate_limit")
    assert len(server.requests()) == 1
    time.sleep(1.8)  # the pause is the upstream's: later tests must not wait for it


# ---- rate limits ------------------------------------------------------------------------------------------


def test_c44_a_client_that_asks_at_once_is_made_to_wait_and_nothing_is_resent(
    play: Play, open_trial: OpenTrial
) -> None:
    server = play(faults=[{"status": 429, "retry_after": "1", "times": 3}])
    agent = open_trial()
    answers = [agent.ask(MESSAGES) for _ in range(4)]
    assert [a.status for a in answers] == [429, 429, 429, 200]
    assert answers[0].headers["retry-after"] == "1"
    assert answers[0].json()["error"]["type"] == "rate_limit_error"
    times = [request["at"] for request in server.requests()]
    assert len(times) == 4
    assert all(b - a >= 1.0 for a, b in itertools.pairwise(times))
    calls = agent.calls()
    assert calls[0].waited_s == 0 and all(call.waited_s > 0.3 for call in calls[1:])
    assert calls[0].retry_after == "1"
    assert agent.close().waited_s == pytest.approx(sum(call.waited_s for call in calls), abs=0.05)


@pytest.mark.parametrize("status", [400, 401, 404, 500, 529])
def test_c44_other_errors_are_one_hit_and_no_pause(play: Play, open_trial: OpenTrial, status: int) -> None:
    server = play(faults=[{"status": status}])
    agent = open_trial()
    assert agent.ask(MESSAGES).status == status
    assert agent.ask(MESSAGES).status == 200
    assert agent.last(calls=2).waited_s == 0
    assert len(server.requests()) == 2


def test_c44_the_pause_is_shared_by_trials_and_they_do_not_return_at_once(play: Play, open_trial: OpenTrial) -> None:
    server = play(faults=[{"status": 429, "retry_after": "1"}])
    agents = [open_trial() for _ in range(6)]
    assert agents[0].ask(MESSAGES).status == 429
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda agent: agent.ask(MESSAGES), agents))
    assert [a.status for a in answers] == [200] * 6
    times = [request["at"] for request in server.requests()]
    assert all(at - times[0] >= 1.0 for at in times[1:])
    assert max(times[1:]) - min(times[1:]) > 0.01


def test_c44_without_a_retry_after_the_pause_doubles() -> None:
    pause = Pause(jitter=lambda low, high: 0.0)
    assert [pause.limited(None) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    pause.fine()
    assert pause.limited(None) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "171.5"}, 171.5),
        ({"retry-after-ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"Retry-After": "Thu, 01 Jan 1960 00:01:00 GMT"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "99999999"}, 3600.0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_c44_every_form_of_retry_after_is_understood(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=lambda: 10.0) == seconds


# ---- outages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 502, 504, 529])
def test_c45_a_lasting_outage_is_the_providers(play: Play, open_trial: OpenTrial, status: int) -> None:
    play(faults=[{"status": status, "times": -1}])
    agent = open_trial()
    for _ in range(3):
        assert agent.ask(MESSAGES).status == status
    summary = agent.close()
    assert (summary.ending, summary.requests, summary.cost_usd) == ("outage", 0, 0.0)
    assert summary.statuses == {str(status): 3}


def test_c45_an_upstream_that_is_not_there_is_an_outage(tmp_path: Path) -> None:
    with Gateway(config("http://127.0.0.1:9", auth="none")) as gateway:
        agent = open_agent(gateway, tmp_path / "t")
        answer = agent.ask(MESSAGES)
        assert answer.status == 502 and answer.headers["x-cdb-gateway"] == "upstream"
        assert answer.json()["error"]["type"] == "api_error"
        summary = agent.close()
    assert (summary.ending, summary.requests, summary.cost_usd) == ("outage", 0, 0.0)


@pytest.mark.parametrize(
    ("fault", "ending"), [({"status": 429, "retry_after": "0"}, "rate_limit"), ({"status": 401}, "auth"), ({}, "ok")]
)
def test_c45_the_last_call_says_whose_the_end_is(
    play: Play, open_trial: OpenTrial, fault: dict[str, str], ending: str
) -> None:
    play(faults=[{"at": 1, **fault}])
    agent = open_trial()
    agent.ask(MESSAGES)
    agent.ask(MESSAGES)
    assert agent.close().ending == ending


# ---- the end of a trial -----------------------------------------------------------------------------------


def test_calls_after_the_end_are_refused_and_those_under_way_are_cut_and_recorded(
    play: Play, open_trial: OpenTrial
) -> None:
    server = play(usage=USAGE, faults=[{"slow_s": 0.1, "times": -1}], events=200)
    agent = open_trial()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(agent.ask, MESSAGES, None, stream=True)
        wait_for(lambda: agent.trial.summary().in_flight == 1 and server.requests())
        time.sleep(0.3)
        summary = agent.close()
        assert running.result(10).cut
    assert summary.in_flight == 0 and summary.calls == 1
    (call,) = agent.calls()
    assert call.ended == "trial_ended" and call.usage is not None and call.usage["input"] == 10_000
    with pytest.raises(OSError):
        agent.ask(MESSAGES)
    assert len(server.requests()) == 1


def test_a_kept_connection_is_no_way_past_the_end(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    connection = UnixConnection(agent.trial.socket)
    connection.request("POST", MESSAGES, b"{}", {"x-api-key": agent.trial.token})
    connection.getresponse().read()
    agent.close()
    with pytest.raises((OSError, Exception)):
        connection.request("POST", MESSAGES, b"{}", {"x-api-key": agent.trial.token})
        assert connection.getresponse().status == 200
    assert server.requests() == []


def test_closing_twice_gives_the_same_sums(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    agent.ask(MESSAGES)
    assert agent.close() == agent.close() == agent.trial.summary()


def test_a_gateway_that_dies_is_infrastructure(play: Play, model: ModelServer, tmp_path: Path) -> None:
    import os
    import signal

    from bench.errors import InfraError

    with Gateway(config(model.address, auth="none")) as gateway:
        agent = open_agent(gateway, tmp_path / "t", models=(ModelRule(asked="m", upstream="up"),))
        assert gateway.pid is not None
        os.kill(gateway.pid, signal.SIGKILL)
        with pytest.raises(OSError):
            agent.ask(MESSAGES)
        with pytest.raises(InfraError, match="does not answer"):
            agent.close()
        again = open_agent(gateway, tmp_path / "again")
        assert again.ask(MESSAGES).status == 200
        again.close()
