"""What became of a trial, from what the harness knows: clock, container, gateway. The agent's word comes last."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.agents.agent import Reported
from harness.watch import Why
from sandboxes.gateway.records import TrialSummary


@dataclass(frozen=True)
class Facts:
    """Everything an outcome is decided from. `summary` None: the agent has no model."""

    outcome: str
    """By container and clock alone: `ok`, `agent_error`, `agent_timeout`, `resource_limit` …"""
    reason: str
    stopped: Why
    exit_code: int | None
    changed: bool
    """Whether the agent left anything that was not there at the start."""
    reported: Reported
    summary: TrialSummary | None
    model: str | None
    asked: frozenset[str]
    """Every model that was asked for, refused ones too."""
    shows: int
    """Pictures among the task's own files."""
    stderr: str = ""
    """The end of what it printed there."""


@dataclass(frozen=True)
class Decision:
    """`outcome` is a row of bench.outcomes.TRIAL; `flags` are said of the entry's result, they change no outcome."""

    outcome: str
    reason: str
    flags: tuple[str, ...] = ()


def decide(facts: Facts) -> Decision:
    """The trial's outcome. Trouble of provider, key or gateway is never the agent's failure (C45, C33)."""
    outcome, reason = _outcome(facts)
    return Decision(outcome, reason, _flags(facts))


def _outcome(facts: Facts) -> tuple[str, str]:
    summary = facts.summary
    if summary is None:
        return _by_the_agent(facts)
    if summary.fault:
        return "infra_error", f"the gateway failed: {summary.fault}"
    if facts.outcome not in ("ok", "agent_error", "agent_timeout"):
        return facts.outcome, facts.reason
    if facts.stopped == "budget" or summary.ending == "budget":
        return "budget_exceeded", f"the {summary.exhausted or 'trial'} cap was reached after {summary.calls} calls"
    if trouble := _trouble(facts, summary):
        return trouble
    return _by_the_agent(facts)


def _trouble(facts: Facts, summary: TrialSummary) -> tuple[str, str] | None:
    """What the last calls came to, where that is not the agent's. One that ended well in spite of it ended well."""
    if not summary.calls and not facts.changed:
        return "setup_error", _never_called(facts, summary)
    if facts.reported.ok and facts.exit_code == 0:
        return None
    statuses = ", ".join(f"{count} × {status}" for status, count in summary.statuses.items())
    match summary.ending:
        case "auth":
            return "setup_error", f"the provider refused the key ({statuses}); check the upstream's key"
        case "outage" | "rate_limit":
            what = "is away" if summary.ending == "outage" else "limits the rate"
            return "infra_error", f"the provider {what} ({statuses})"
        case "rejected" if not any(status.startswith("2") for status in summary.statuses):
            return "setup_error", f"the provider rejected every call ({statuses}); check the model's name"
    return None


def _never_called(facts: Facts, summary: TrialSummary) -> str:
    if summary.refused.get("model"):
        asked = ", ".join(sorted(facts.asked - {facts.model}))
        return f"it never asked for {facts.model}, only for {asked or 'other models'}, which the trial does not allow"
    hint = f": {facts.stderr.strip()[-400:]}" if facts.stderr.strip() else ""
    how = "was stopped at its time limit" if facts.stopped else f"ended with exit code {facts.exit_code}"
    return f"it {how} without one call to its model{hint}"


def _by_the_agent(facts: Facts) -> tuple[str, str]:
    if facts.outcome == "ok" and facts.reported.ok is False:
        return "agent_error", f"it says that it failed: {facts.reported.reason or 'no reason given'}"
    if facts.outcome == "agent_error" and facts.reported.reason:
        return facts.outcome, f"{facts.reason}; it says: {facts.reported.reason}"
    return facts.outcome, facts.reason


def _flags(facts: Facts) -> tuple[str, ...]:
    summary = facts.summary
    if summary is None:
        return ()
    found = {
        "blind": bool(facts.shows and summary.calls and not summary.media.get("image")),
        "no_model_call": not summary.calls,
        "other_model_asked": any(name != facts.model for name in facts.asked),
        "other_model_answered": any(not _same(facts.model, name) for name in summary.models_answered),
        "hosted_tools_stripped": bool(summary.hosted_tools_stripped),
        "usage_incomplete": bool(summary.partial_calls),
        "cost_unknown": summary.cost_usd is None,
        "claims_otherwise": facts.reported.ok is not None and facts.reported.ok != (facts.exit_code == 0),
    }
    return tuple(name for name, holds in found.items() if holds)


_RELEASE = re.compile(r"(?:[-@](?:latest|\d{3,4}|\d{8}|\d{4}-\d\d-\d\d|preview(?:-\d\d-\d\d)?))?")
"""What names one release of a model after its name: `-20250929`, `@20250929`, `-2024-08-06`, `-0613`, `-001` …"""


def _same(asked: str | None, answered: str) -> bool:
    """A provider may answer with a dated name of the model that was asked, or without date or its own prefix. Any
    other end makes another model of it: `gpt-5` is not `gpt-5-mini`, `claude-opus-4` not `claude-opus-4-1`."""
    shorter, longer = sorted(((asked or "").rpartition("/")[2], answered.rpartition("/")[2]), key=len)
    return longer.startswith(shorter) and _RELEASE.fullmatch(longer[len(shorter) :]) is not None
