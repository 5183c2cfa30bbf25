"""The seam between a case's evaluation and whoever judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from evaluator.cases import Case, CriterionText
from evaluator.records import CriterionPlan, Replay
from evaluator.witness import Witness

Attempt = Callable[[str, Witness], Replay]
"""A judge's hands: runs a witness for a sub-requirement (its id) on the submission and gives what happened."""


@dataclass(frozen=True)
class Claim:
    """What a judge says of one sub-requirement, and the witness that is to show it."""

    sub: str
    holds: bool
    witness: Witness | None
    attempts: tuple[Replay, ...] = ()


class JudgeError(Exception):
    """The judge gave nothing usable for a criterion; it stays unscored. The message says why."""


class Judge(Protocol):
    """Judges one criterion at a time; may be called from several threads."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...

    def describe(self) -> dict[str, Any]:
        """Everything that can change a verdict, for the judging's lock."""

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> list[Claim]:
        """One claim for each sub-requirement of `plan`, in its order. Raises JudgeError."""
