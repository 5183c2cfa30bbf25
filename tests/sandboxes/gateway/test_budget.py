"""Caps hold at the one place every call passes: C36, C40, C41, C43."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.model_server import ModelServer
from gateway_calls import CHAT, GEMINI, GEMINI_STREAM, MESSAGES, PRICE, RESPONSES, Agent, body, policy
from hypothesis import given
from hypothesis import strategies as st

from bench.errors import UsageError
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.ledger import Exhausted, Ledger
from sandboxes.gateway.policy import Caps, ModelRule, Price, Tier
from sandboxes.gateway.prices import PriceTable, cost_usd
from sandboxes.gateway.usage import Tokens

Play = Callable[..., ModelServer]
OpenTrial = Callable[..., Agent]
THIRTY_CENTS = {"input": 100_000, "output": 0}
"""At 3 USD a million."""


@pytest.mark.parametrize("path", [MESSAGES, CHAT, RESPONSES, GEMINI, GEMINI_STREAM])
def test_c41_a_loop_of_thirty_cent_calls_is_stopped_at_a_dollar(play: Play, open_trial: OpenTrial, path: str) -> None:
    server = play(usage=THIRTY_CENTS)
    agent = open_trial(caps=Caps(usd=1.0))
    statuses = [agent.ask(path).status for _ in range(7)]
    assert statuses == [200, 200, 200, 200, 403, 403, 403]
    assert len(server.requests()) == 4
    summary = agent.close()
    assert (summary.exhausted, summary.ending, summary.refused) == ("usd", "budget", {"budget": 3})
    assert summary.cost_usd == pytest.approx(1.2)


@pytest.mark.parametrize("streamed", [True, False])
def test_c41_eight_callers_at_once_get_no_more_through(play: Play, open_trial: OpenTrial, streamed: bool) -> None:
    server = play(usage=THIRTY_CENTS, faults=[{"times": -1, "slow_s": 0.02}])
    agent = open_trial(caps=Caps(usd=1.0))
    gate = threading.Barrier(8)

    def call(_: int) -> int:
        gate.wait()
        return agent.ask(MESSAGES, stream=streamed).status

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(call, range(8)))
    assert statuses == [200] * 4 + [403] * 4
    assert len(server.requests()) == 4


@pytest.mark.parametrize(
    ("caps", "expected", "which"),
    [(Caps(tokens=250_000), 3, "tokens"), (Caps(requests=2), 2, "requests"), (Caps(usd=0.3), 1, "usd")],
)
def test_c41_every_cap_holds_for_eight_callers(
    play: Play, open_trial: OpenTrial, caps: Caps, expected: int, which: str
) -> None:
    server = play(usage=THIRTY_CENTS)
    agent = open_trial(caps=caps)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: agent.ask(MESSAGES).status, range(8)))
    assert statuses.count(200) == expected == len(server.requests())
    assert agent.close().exhausted == which


def test_c41_answers_without_usage_and_broken_ones_count_against_the_cap(play: Play, open_trial: OpenTrial) -> None:
    server = play(faults=[{"times": -1, "no_usage": True}])
    agent = open_trial(caps=Caps(usd=0.001))
    request = body(CHAT) | {"messages": [{"role": "user", "content": "word " * 1000}]}
    for _ in range(3):
        agent.ask(CHAT, request)
    assert len(server.requests()) == 1
    summary = agent.close()
    assert summary.cost_usd is None and summary.unpriced_calls == 1
    assert summary.cap_usd > 0.001


def test_c41_limits_and_outages_are_no_requests_but_junk_is(play: Play, open_trial: OpenTrial) -> None:
    play(faults=[{"status": 500}, {"at": 1, "status": 529}, {"at": 2, "status": 400}])
    agent = open_trial(caps=Caps(requests=2))
    assert [agent.ask(MESSAGES).status for _ in range(5)] == [500, 529, 400, 200, 403]


def test_c41_the_refusal_is_worded_as_the_provider_would(play: Play, open_trial: OpenTrial) -> None:
    play(usage=THIRTY_CENTS)
    agent = open_trial(caps=Caps(usd=0.1))
    agent.ask(MESSAGES)
    assert agent.ask(MESSAGES).json()["error"]["type"] == "permission_error"
    assert agent.ask(CHAT).json()["error"]["code"] == "gateway_budget"
    told = agent.ask(GEMINI)
    assert told.json()["error"]["status"] == "PERMISSION_DENIED"
    assert told.headers["x-cdb-gateway"] == "budget"
    assert "0.1 usd" in told.json()["error"]["message"]


@given(
    st.lists(st.floats(0.01, 2.0), min_size=1, max_size=30),
    st.floats(0.1, 3.0),
    st.integers(1, 10),
    st.sampled_from([0.0, 0.5, 1.0, 5.0]),
)
def test_c41_equal_or_estimated_costs_overshoot_by_one_call_at_most(
    costs: list[float], cap: float, callers: int, truth: float
) -> None:
    """`truth`: how good the estimates are; at 0 and 0.5 they are too small, then calls cost the same each."""
    if truth < 1.0:
        costs = [costs[0]] * len(costs)

    async def play() -> float:
        ledger = Ledger(Caps(usd=cap))
        waiting = list(costs)

        async def caller() -> None:
            while waiting:
                cost = waiting.pop()
                try:
                    held = await ledger.reserve("m", cost * truth, 1)
                except Exhausted:
                    return
                await asyncio.sleep(0)
                ledger.settle(held, cost, 1, counts=True)

        await asyncio.gather(*(caller() for _ in range(callers)))
        return ledger.usd

    assert asyncio.run(play()) < cap + max(costs)


def test_c41_calls_that_fit_go_at_the_same_time() -> None:
    async def play() -> int:
        ledger = Ledger(Caps(usd=10.0))
        ledger.settle(await ledger.reserve("m", 1.0, 1), 1.0, 1, counts=True)
        held = [await asyncio.wait_for(ledger.reserve("m", 1.0, 1), 1) for _ in range(9)]
        return len(held)

    assert asyncio.run(play()) == 9


def test_c41_a_waiting_caller_that_gives_up_leaves_nothing_behind() -> None:
    async def play() -> None:
        ledger = Ledger(Caps(usd=1.0))
        held = await ledger.reserve("m", 0.9, 1)
        waiter = asyncio.create_task(ledger.reserve("m", 0.9, 1))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        ledger.settle(held, 0.1, 1, counts=True)
        await asyncio.wait_for(ledger.reserve("m", 0.1, 1), 1)

    asyncio.run(play())


# ---- models -------------------------------------------------------------------------------------------------


def test_c36_a_side_model_is_mapped_by_rule_and_both_are_in_the_ledger(play: Play, open_trial: OpenTrial) -> None:
    server = play(usage={"input": 1000, "output": 10})
    rules = (
        ModelRule(asked="m", upstream="up", price=PRICE),
        ModelRule(asked="claude-haiku-*", upstream="up", send="m", price=PRICE),
    )
    agent = open_trial(models=rules)
    assert agent.ask(MESSAGES).status == 200
    assert agent.ask(MESSAGES, body(MESSAGES, model="claude-haiku-4-5")).status == 200
    assert agent.ask("/v1beta/models/claude-haiku-4-5:generateContent", body(GEMINI)).status == 200
    seen = server.requests()
    assert '"model":"m"' in seen[1]["body"].replace(" ", "") and seen[2]["path"] == "/v1beta/models/m:generateContent"
    assert agent.calls()[1].edits == [{"edit": "map_model", "what": "claude-haiku-4-5 -> m"}]
    summary = agent.close()
    assert summary.models_asked == {"m": 1, "claude-haiku-4-5": 2} and summary.models_sent == {"m": 3}
    assert summary.cost_usd == pytest.approx(3 * (1000 * 3 + 10 * 15) / 1e6)


def test_c36_a_model_off_the_list_is_denied_and_the_trial_goes_on(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    for path in (MESSAGES, CHAT, RESPONSES):
        assert agent.ask(path, body(path, model="claude-haiku-x")).status == 404
    assert agent.ask("/v1beta/models/other:generateContent").status == 404
    assert server.requests() == []
    assert agent.ask(MESSAGES).status == 200
    summary = agent.close()
    assert summary.refused == {"model": 4} and summary.ending == "ok"
    assert summary.models_asked == {"claude-haiku-x": 3, "m": 1, "other": 1}


def test_c36_the_model_that_answered_is_recorded(play: Play, open_trial: OpenTrial) -> None:
    play(model_answered="m-2026-01-01")
    agent = open_trial()
    for path in (MESSAGES, CHAT, RESPONSES, GEMINI):
        agent.ask(path)
        agent.ask(path, stream=path != GEMINI)
    assert agent.close().models_answered == {"m-2026-01-01": 8}


# ---- prices -------------------------------------------------------------------------------------------------


def test_c40_cached_tokens_are_priced_once(play: Play, open_trial: OpenTrial) -> None:
    play(usage={"input": 3, "cache_write": 12304, "cache_read": 0, "output": 550})
    agent = open_trial()
    agent.ask(MESSAGES)
    agent.ask(MESSAGES, stream=True)
    assert [call.cost_usd for call in agent.calls()] == [pytest.approx(0.054399, abs=1e-9)] * 2
    play(usage={"input": 3, "cache_write": 12304, "cache_read": 66360, "output": 550})
    agent.ask(MESSAGES, stream=True)
    assert agent.last(calls=3).cost_usd == pytest.approx(0.054399 + 66360 * 0.3e-6, abs=1e-9)


@pytest.mark.parametrize("path", [CHAT, RESPONSES, GEMINI])
def test_c40_cached_tokens_within_the_prompt_are_taken_out_of_it(
    play: Play, open_trial: OpenTrial, path: str
) -> None:
    play(usage={"input": 1000, "cache_read": 66360, "output": 550})
    agent = open_trial()
    agent.ask(path)
    call = agent.last()
    assert call.usage is not None and (call.usage["input"], call.usage["cache_read"]) == (1000, 66360)
    assert call.cost_usd == pytest.approx((1000 * 3 + 66360 * 0.3 + 550 * 15) / 1e6)


@given(st.builds(Tokens, *[st.integers(0, 10**7)] * 8))
def test_c40_no_cost_is_negative(tokens: Tokens) -> None:
    assert cost_usd(PRICE, tokens) >= 0
    assert cost_usd(Price(input=1, output=1), tokens) >= 0


def test_c40_one_hour_cache_writes_audio_searches_and_long_prompts_have_their_own_prices() -> None:
    price = Price(
        input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_1h=6, audio_input=10, web_search=0.01,
        tiers=(Tier(above_tokens=200_000, input=6, output=22.5),),
    )  # fmt: skip
    tokens = Tokens(input=100, cache_write=1000, cache_write_1h=400, audio_input=40, output=10, web_searches=3)
    by_hand = (60 * 3 + 40 * 10 + 600 * 3.75 + 400 * 6 + 10 * 15) / 1e6 + 0.03
    assert cost_usd(price, tokens) == pytest.approx(by_hand)
    long = Tokens(input=150_000, cache_read=60_000, output=10)
    assert cost_usd(price, long) == pytest.approx((150_000 * 6 + 60_000 * 0.3 + 10 * 22.5) / 1e6)


def test_c40_prices_agree_with_litellms_own_table() -> None:
    table = PriceTable({})
    sonnet = table.find("claude-sonnet-4-5-20250929")
    assert sonnet is not None and (sonnet.input, sonnet.output, sonnet.cache_read, sonnet.cache_write) == (
        3,
        15,
        0.3,
        3.75,
    )
    gemini = table.find("gemini-2.5-pro")
    assert gemini is not None and gemini.tiers[0].above_tokens == 200_000 and gemini.tiers[0].input == 2.5
    assert table.find("claude-sonnet-4-5-20991231") == sonnet
    assert table.find("no-such-model") is None


def test_reading_prices_does_not_import_litellm() -> None:
    import subprocess
    import sys

    code = "import sys; from sandboxes.gateway.prices import PriceTable; assert PriceTable({}).find('gpt-5'); print('litellm' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_c43_a_usd_cap_without_a_price_is_refused_before_anything_is_spent(gateway: Gateway, tmp_path: Path) -> None:
    rule = (ModelRule(asked="nobody-knows", upstream="up"),)
    with pytest.raises(UsageError, match=r"nobody-knows.*no known price.*token cap"):
        gateway.open(policy(models=rule, caps=Caps(usd=5)), tmp_path / "t")


def test_c43_with_a_token_cap_it_runs_and_the_cost_is_unknown_not_zero(play: Play, open_trial: OpenTrial) -> None:
    play(usage=THIRTY_CENTS)
    agent = open_trial(models=(ModelRule(asked="nobody-*", upstream="up"),), caps=Caps(usd=5, tokens=150_000))
    assert [agent.ask(MESSAGES, body(MESSAGES, model="nobody-knows")).status for _ in range(3)] == [200, 200, 403]
    assert agent.calls()[0].cost_usd is None
    summary = agent.close()
    assert (summary.cost_usd, summary.cost_known_usd, summary.unpriced_calls) == (None, 0.0, 2)
    assert summary.exhausted == "tokens"


def test_c43_a_pattern_that_meets_an_unpriced_model_is_refused_at_the_call(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial(models=(ModelRule(asked="nobody-*", upstream="up"),), caps=Caps(usd=5))
    assert agent.ask(MESSAGES, body(MESSAGES, model="nobody-knows")).status == 403
    assert server.requests() == []
