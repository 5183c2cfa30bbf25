"""An advocate for some of the FAILs: a second look that tries to show the opposite, and is only reported.

Refuters attack credits, nobody attacks debits. For a seeded share of the criteria that failed, the judge's model is
asked, in a conversation of its own, for the strongest honest case that they are met; what it gives is replayed like
any claim. The verdict stays what it was: how often an advocate succeeds says how far the FAILs can be trusted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from evaluator.cases import Case, CriterionText
from evaluator.criterion import judge_criterion
from evaluator.judges.judge import ADVOCATE, Advocacy, Attempt, CriterionJudge, Proposal
from evaluator.records import AdvocateRecord, CriterionPlan, CriterionRecord
from evaluator.stage import Stage

HOLDS = "advocate_holds"
"""Flag of a FAIL for which an advocate's witness survived every replay."""
_RANK = {"FAIL": 0, "PARTIAL": 1, "PASS": 2}


@runtime_checkable
class Advocate(Protocol):
    """A judge that can also plead."""

    @property
    def advocacy(self) -> Advocacy: ...

    def plead(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        """As `CriterionJudge.judge`, with the order to look for what shows that the criterion is met."""


class _Pleading:
    """An advocate in a judge's place."""

    def __init__(self, advocate: Advocate) -> None:
        self._advocate = advocate

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        return self._advocate.plead(case, criterion, plan, attempt)


def with_advocate(
    record: CriterionRecord,
    case: Case,
    criterion: CriterionText,
    plan: CriterionPlan,
    judge: CriterionJudge,
    stage: Stage,
) -> CriterionRecord:
    """The record with what an advocate found, where one is drawn. The verdict is never touched."""
    if record.verdict != "FAIL" or not isinstance(judge, Advocate):
        return record
    if not judge.advocacy.draws(case.case, criterion.criterion_index):
        return record
    beside = replace(stage, folder=stage.folder / ADVOCATE)
    found = judge_criterion(case, criterion, plan, _Pleading(judge), beside)
    told = AdvocateRecord(
        outcome=found.outcome,
        reason=found.reason,
        claimed=found.columns["judge"].verdict if found.columns else None,
        verdict=found.verdict,
        sub_requirements=found.sub_requirements,
    )
    usage = {**record.usage, **({"advocate": found.usage["judge"]} if "judge" in found.usage else {})}
    held = found.verdict is not None and _RANK[found.verdict] > _RANK[record.verdict]
    flags = sorted({*record.flags, HOLDS}) if held else record.flags
    return record.model_copy(update={"advocate": told, "usage": usage, "flags": flags})
