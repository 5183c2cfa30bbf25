"""Money and tokens of both sides in one sum, in which the unknown stays unknown."""

from __future__ import annotations

from bench.usage import cost_usd, summed, usages_of


def test_a_trial_and_a_criterion_tell_their_usage_in_their_own_ways() -> None:
    account = {"cost_usd": 0.5, "tokens": {"input": 10, "output": 2}, "waited_s": 1.0, "reported_cost_usd": 9.0}
    trial = {"type": "trial", "case": "a", "account": account, "duration_s": 3}
    criterion = {"usage": {"judge": {"cost_usd": 0.2, "calls": 3}, "refuter": {"cost_usd": 0.1, "calls": 1}}}
    assert cost_usd([trial, criterion]) == 0.8
    assert summed(usages_of(trial)) == {"cost_usd": 0.5, "tokens.input": 10, "tokens.output": 2}
    assert summed(usages_of(criterion)) == {"calls": 4, "cost_usd": 0.3}


def test_one_unknown_price_makes_the_sum_unknown_and_not_smaller() -> None:
    assert cost_usd([{"cost_usd": 1.0}, {"usage": {"judge": {"cost_usd": None}}}]) is None


def test_what_uses_no_model_costs_nothing() -> None:
    assert cost_usd([{"type": "trial", "case": "a", "duration_s": 2}, {"usage": {}}]) == 0.0
