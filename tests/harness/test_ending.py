"""Whose a trial's end is: a table of what was seen and what follows."""

from __future__ import annotations

from typing import Any

import pytest

from harness.agents.agent import Reported
from harness.ending import Facts, _same, decide
from sandboxes.gateway.records import TrialSummary


def facts(summary: dict[str, Any] | None = None, **more: Any) -> Facts:
    told: dict[str, Any] = {
        "outcome": "ok", "reason": "", "stopped": "", "exit_code": 0, "changed": True, "reported": Reported(ok=True),
        "model": "m-1", "asked": frozenset({"m-1"}), "shows": 1,
    }  # fmt: skip
    seen = {"trial": "t", "calls": 3, "ending": "ok", "media": {"image": 3}, "statuses": {"200": 3}}
    seen |= {"models_answered": {"m-1-20261101": 3}}
    return Facts(**(told | more), summary=None if summary is None else TrialSummary(**(seen | summary)))


FAILED: dict[str, Any] = {"outcome": "agent_error", "reason": "exit code 1", "exit_code": 1, "reported": Reported()}


@pytest.mark.parametrize(
    ("seen", "more", "outcome"),
    [
        ({}, {}, "ok"),
        ({}, FAILED, "agent_error"),
        ({}, {"reported": Reported(ok=False, reason="gave up")}, "agent_error"),
        ({"ending": "budget", "exhausted": "usd"}, {}, "budget_exceeded"),
        ({"ending": "budget", "exhausted": "usd"}, FAILED, "budget_exceeded"),
        ({"exhausted": "usd"}, {}, "ok"),  # the last call went just over, and nothing more was wanted
        ({"ending": "outage", "statuses": {"200": 1, "504": 9}}, FAILED, "infra_error"),
        ({"ending": "outage", "statuses": {"200": 1, "504": 9}}, {}, "ok"),  # it ended well in spite of it
        ({"ending": "outage"}, {"reported": Reported()}, "infra_error"),  # exit code 0 alone proves nothing
        ({"ending": "outage"}, {**FAILED, "outcome": "agent_timeout", "stopped": "timeout"}, "infra_error"),
        ({"ending": "rate_limit", "statuses": {"429": 9}}, FAILED, "infra_error"),
        ({"ending": "auth", "statuses": {"401": 3}}, FAILED, "setup_error"),
        ({"ending": "rejected", "statuses": {"404": 3}}, FAILED, "setup_error"),
        ({"ending": "rejected", "statuses": {"200": 5, "400": 1}}, FAILED, "agent_error"),
        ({"calls": 0, "statuses": {}, "ending": "none"}, {**FAILED, "changed": False}, "setup_error"),
        ({"calls": 0, "statuses": {}, "ending": "none"}, {"changed": False}, "setup_error"),
        ({"calls": 0, "statuses": {}, "ending": "none"}, {"reported": Reported()}, "ok"),
        ({"fault": "disk full"}, {}, "infra_error"),
        ({"ending": "outage"}, {**FAILED, "outcome": "resource_limit"}, "resource_limit"),
        (None, {"reported": Reported()}, "ok"),
        (None, FAILED, "agent_error"),
    ],
)
def test_outcome(seen: dict[str, Any] | None, more: dict[str, Any], outcome: str) -> None:
    decision = decide(facts(seen, **more))
    assert decision.outcome == outcome
    assert decision.reason or outcome in ("ok", "resource_limit")


@pytest.mark.parametrize(
    ("seen", "more", "flag"),
    [
        ({"media": {}}, {}, "blind"),
        ({"calls": 0, "media": {}}, {}, "no_model_call"),
        ({}, {"asked": frozenset({"m-1", "m-small"})}, "other_model_asked"),
        ({"models_answered": {"another": 1}}, {}, "other_model_answered"),
        ({"hosted_tools_stripped": {"web_search": 1}}, {}, "hosted_tools_stripped"),
        ({"partial_calls": 1}, {}, "usage_incomplete"),
        ({"cost_usd": None}, {}, "cost_unknown"),
        ({}, {"reported": Reported(ok=False)}, "claims_otherwise"),
    ],
)
def test_flag(seen: dict[str, Any], more: dict[str, Any], flag: str) -> None:
    assert flag in decide(facts(seen, **more)).flags
    assert flag not in decide(facts({})).flags


def test_an_agent_is_not_blind_where_there_is_nothing_to_see() -> None:
    assert decide(facts({"media": {}}, shows=0)).flags == ()


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("claude-opus-4", "claude-opus-4-20250514", True),
        ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4-5", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4", "gpt-4-0613", True),
        ("gemini-2.5-flash", "models/gemini-2.5-flash-001", True),
        ("claude-sonnet-4", "claude-sonnet-4@20250514", True),
        ("gpt-5", "gpt-5-mini-2025-08-07", False),
        ("gpt-4", "gpt-4o-mini", False),
        ("claude-opus-4", "claude-opus-4-1", False),
        ("claude-opus-4-1", "claude-opus-4", False),
        ("gpt-5-mini", "gpt-5", False),
    ],
)
def test_another_model_is_not_taken_for_a_release_of_the_one_that_was_asked(
    asked: str, answered: str, same: bool
) -> None:
    assert _same(asked, answered) == same
