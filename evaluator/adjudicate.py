"""From verified facts to verdicts: pure functions, each result with the name of the rule that gave it.

A sub-requirement is credited in three columns, each at most what the one before it credits:
`judge` (the judge's own claim), `card` (still there after the refuter) and `witnessed` (still there when only
evidence that replays counts). A criterion is PASS when every sub-requirement is credited, PARTIAL when every core
one is and some other is not, FAIL otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evaluator.records import COLUMNS, Column, ColumnVerdict, Verdict

Ran = Literal["held", "failed", "error"]

RULES: dict[str, str] = {
    "all_hold": "every part of the criterion holds",
    "core_holds": "every core part holds, some other part does not",
    "core_missing": "a core part does not hold",
    "no_witness": "the judge gave no witness for a part of it",
    "attempt_failed": "the judge's own attempt failed",
    "vacuous": "the witness holds on the untouched start application too, so it shows no change",
    "not_on_start": "the witness does not hold on the start application, so it shows nothing that was kept",
    "varied_inputs": "the witness fails with other inputs: the result follows one input only",
    "not_examined": "a core part is lost already, which decides the criterion: this part was not examined",
    "unstable": "repeated runs of the same witness disagree and most of them fail",
    "missing": "there is no submission",
    "unchanged": "the submission equals the start application, so nothing asked for was changed",
    "build_failed": "the start application builds and the submission does not",
    "serve_failed": "the submission was built but never answered",
    "app_hang": "the submission's page never answered, twice, while the browser worked",
}
"""Every rule's name and its meaning in one sentence, as the report shows it."""


@dataclass(frozen=True)
class SubFacts:
    """What was seen of one sub-requirement. `attempts`: runs of the witness on the submission, in order.

    `start`: its run on the start application, `varied`: its runs with other inputs; None or empty where the
    sub-requirement was not claimed or not `examined`, so that nobody attacked it.
    """

    core: bool
    preservation: bool
    has_witness: bool
    claimed: bool
    attempts: tuple[Ran, ...] = ()
    start: Ran | None = None
    varied: tuple[Ran, ...] = ()
    examined: bool = True


@dataclass(frozen=True)
class SubDecision:
    """One sub-requirement's credit in each column, and the rule that took it away where one did."""

    core: bool
    judge: bool
    card: bool
    witnessed: bool
    rule: str = ""
    flags: tuple[str, ...] = ()

    def credited(self, column: Column) -> bool:
        return {"judge": self.judge, "card": self.card, "witnessed": self.witnessed}[column]


def decide_sub(facts: SubFacts) -> SubDecision:
    """Credit or not, in each column. Errors of the machine must have been dealt with before: they are no facts."""
    if not facts.has_witness:
        return SubDecision(facts.core, facts.claimed, facts.claimed, False, "no_witness")
    if not facts.claimed:
        return SubDecision(facts.core, False, False, False, "attempt_failed")
    if not facts.examined:
        return SubDecision(facts.core, True, True, False, "not_examined")
    refuted = _refuted(facts)
    if refuted:
        return SubDecision(facts.core, True, False, False, refuted)
    held = sum(ran == "held" for ran in facts.attempts)
    if 2 * held <= len(facts.attempts):
        return SubDecision(facts.core, True, True, False, "unstable")
    flags = ("flaky",) if held < len(facts.attempts) else ()
    return SubDecision(facts.core, True, True, True, flags=flags)


def _refuted(facts: SubFacts) -> str:
    """The refuter's rule that takes the claim away, or nothing."""
    if facts.preservation:
        if facts.start != "held":
            return "not_on_start"
    elif facts.start == "held":
        return "vacuous"
    return "varied_inputs" if "failed" in facts.varied else ""


def decide(subs: Sequence[SubDecision]) -> dict[Column, ColumnVerdict]:
    """The criterion's verdict in each column; a lowered verdict carries the rule that lowered it."""
    verdicts: dict[Column, ColumnVerdict] = {}
    for column in COLUMNS:
        verdict = _verdict(subs, column)
        verdicts[column] = ColumnVerdict(verdict=verdict, rule=_rule(subs, column, verdict))
    return verdicts


def decide_whole(verdict: Verdict, rule: str) -> dict[Column, ColumnVerdict]:
    """The same verdict in every column, where the case as a whole decides (no submission, failed build …)."""
    return {column: ColumnVerdict(verdict=verdict, rule=rule) for column in COLUMNS}


def _verdict(subs: Sequence[SubDecision], column: Column) -> Verdict:
    if all(sub.credited(column) for sub in subs):
        return "PASS"
    return "PARTIAL" if all(sub.credited(column) for sub in subs if sub.core) else "FAIL"


def _rule(subs: Sequence[SubDecision], column: Column, verdict: Verdict) -> str:
    if verdict == "PASS":
        return "all_hold"
    lost = [sub for sub in subs if not sub.credited(column) and (sub.core or verdict == "PARTIAL")]
    attacked = [sub.rule for sub in lost if sub.judge and sub.rule != "not_examined"]
    if attacked:
        return attacked[0]
    return "core_holds" if verdict == "PARTIAL" else "core_missing"
