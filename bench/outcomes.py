"""The one table of outcomes: whose it is, is there a submission, may it be tried again, how it counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Whose = Literal["agent", "application", "infrastructure", "judge", "budget", "nobody"]
Counts = Literal["judged", "zero", "unscored"]
"""judged: its criteria are judged; zero: every criterion is FAIL; unscored: no verdict, the result is incomplete."""


class Outcome(NamedTuple):
    """One row. `submission`: a tree was sealed. `retry`: the run may try again by itself, bounded."""

    whose: Whose
    submission: bool
    retry: bool
    counts: Counts
    meaning: str
    next_step: str


TRIAL: dict[str, Outcome] = {
    "ok": Outcome("nobody", True, False, "judged", "the agent ended by itself", ""),
    "agent_error": Outcome(
        "agent", True, False, "judged", "the agent ended with an error", "read the agent's stderr.log"
    ),
    "agent_timeout": Outcome(
        "agent",
        True,
        False,
        "judged",
        "the agent was stopped at its time limit",
        "raise --timeout to compare",
    ),
    "budget_exceeded": Outcome(
        "agent", True, False, "judged", "the agent used up its budget", "raise the budget to compare"
    ),
    "resource_limit": Outcome(
        "agent",
        True,
        False,
        "judged",
        "the agent ran into a memory, process or disk limit",
        "raise the limit to compare",
    ),
    "workspace_too_large": Outcome(
        "agent",
        False,
        False,
        "zero",
        "the workspace passed a cap, so nothing was sealed",
        "see the trial's reason for the cap and the file",
    ),
    "sandbox_broken": Outcome(
        "agent",
        True,
        False,
        "judged",
        "the agent broke its own container",
        "read the agent's stdout.log: what did it remove or kill?",
    ),
    "setup_error": Outcome(
        "infrastructure", False, False, "unscored", "the agent could not be started", "fix its configuration"
    ),
    "infra_error": Outcome(
        "infrastructure",
        False,
        True,
        "unscored",
        "engine, image or disk failed",
        "run the same command again",
    ),
    "cancelled": Outcome("nobody", False, True, "unscored", "the run was stopped", "run the same command again"),
    "not_started": Outcome(
        "budget",
        False,
        True,
        "unscored",
        "the run's cap was reached before this trial",
        "raise the run's cap and run the same command again",
    ),
}

CASE: dict[str, Outcome] = {
    "ok": Outcome("nobody", True, False, "judged", "built, served and judged", ""),
    "missing": Outcome("agent", False, False, "zero", "there is no submission", "see the trial's record"),
    "unchanged": Outcome(
        "agent",
        True,
        False,
        "judged",
        "the submission equals the starting application",
        "see the agent's log: did it do anything?",
    ),
    "build_failed": Outcome(
        "application",
        True,
        False,
        "zero",
        "the start builds and the submission does not",
        "read the build log",
    ),
    "serve_failed": Outcome(
        "application",
        True,
        False,
        "zero",
        "the submission was built but never answered",
        "read the serve log",
    ),
    "app_hang": Outcome(
        "application",
        True,
        False,
        "zero",
        "the submission's page never answered, twice, while the browser worked",
        "look for an endless loop",
    ),
    "infra_error": Outcome(
        "infrastructure",
        True,
        True,
        "unscored",
        "engine, registry or browser failed",
        "run the same command again",
    ),
}

CRITERION: dict[str, Outcome] = {
    "ok": Outcome("nobody", True, False, "judged", "judged, attacked and adjudicated", ""),
    "judge_error": Outcome(
        "judge", True, True, "unscored", "the judge gave no usable verdict", "run the same command again"
    ),
    "unverified": Outcome(
        "judge", True, True, "unscored", "the refuter could not finish", "run the same command again"
    ),
    "budget": Outcome("budget", True, True, "unscored", "the judge's budget was used up", "raise it"),
    "infra_error": Outcome(
        "infrastructure",
        True,
        True,
        "unscored",
        "the machine or the browser failed",
        "run the same command again",
    ),
}


def wanted(retry: str | None, case: str, outcome: str, table: Mapping[str, Outcome]) -> bool:
    """Whether `--retry RETRY` means a thing of `case` that ended as `outcome` ("" for not begun) and is unscored.

    None means everything; `infra` what infrastructure failed, `judge` what the judge did, else the name of a case.
    """
    if retry is None or retry == case:
        return True
    row = table.get(outcome)
    return bool(row and row.whose == {"infra": "infrastructure", "judge": "judge"}.get(retry))
