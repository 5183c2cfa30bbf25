"""Blind pairs, for what is purely visual and held by no check: start and submission are shown unlabelled.

A judge says which of two pictures fulfils the criterion, and is asked again with the two in the other order. Only the
submission named both times is a credit; a judge that goes by the order, or sees no difference, gives none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from evaluator.cases import Case, CriterionText
from evaluator.judges.judge import CriterionJudge, PairJudge, Running
from evaluator.probes.pictures import NoPicture, pair_pictures
from evaluator.records import CriterionPlan, PairRecord, SubRequirement, Usage

Choice = Literal["first", "second", "both", "neither"]


class Chosen(NamedTuple):
    """A judge's word on two pictures; it does not know which is which."""

    choice: Choice
    reason: str = ""


Choose = Callable[[bytes, bytes], Chosen]
"""Shows two JPEGs in this order."""


def blind_pair(choose: Choose, start: bytes, submission: bytes) -> PairRecord:
    """Ask in both orders; the second time only where the first named the submission. Raises what `choose` raises."""
    forth = choose(start, submission)
    if forth.choice != "second":
        return PairRecord(outcome="lost", choices=[_named(forth.choice, "start first")], reasons=[forth.reason])
    back = choose(submission, start)
    return PairRecord(
        outcome="won" if back.choice == "first" else "disagreed",
        choices=[_named(forth.choice, "start first"), _named(back.choice, "submission first")],
        reasons=[forth.reason, back.reason],
    )


def _named(
    choice: Choice, order: Literal["start first", "submission first"]
) -> Literal["start", "submission", "both", "neither"]:
    """What was chosen, by name instead of by place."""
    if choice in ("both", "neither"):
        return choice
    return "start" if (choice == "first") == (order == "start first") else "submission"


class Shown(NamedTuple):
    """What is pictured, and where the pictures go: `folder`, which lies below `results`."""

    running: Running
    folder: Path
    results: Path


def pair_of(
    shown: Shown,
    case: Case,
    criterion: CriterionText,
    plan: CriterionPlan,
    sub: SubRequirement,
    judge: CriterionJudge,
) -> tuple[PairRecord, Usage]:
    """Picture both applications and have the judge choose. Raises what the judge raises.

    `not_asked`, which credits nothing, where the judge sees no pictures or an application gives none."""
    if not isinstance(judge, PairJudge) or not judge.sees:
        return PairRecord(outcome="not_asked", reasons=["the judge sees no pictures"]), Usage()
    try:
        pair = pair_pictures(shown.running, shown.folder)
    except NoPicture as why:
        return PairRecord(outcome="not_asked", reasons=[str(why)]), Usage()
    found, usage = judge.pair(case, criterion, plan, sub, (pair.start.read_bytes(), pair.submission.read_bytes()))
    pictures = [str(one.relative_to(shown.results)) for one in pair]
    return found.model_copy(update={"pictures": pictures}), usage
