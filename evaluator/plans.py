"""Criterion plans: found, checked against the rubric, hashed. The same plans serve every entry."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import ValidationError

from bench.errors import DataError, UsageError
from evaluator.records import CasePlan, CriterionPlan, SubRequirement
from evaluator.rubric import Criterion, read_rubric
from evaluator.strict_json import read_json

SHIPPED = Path(__file__).parent / "sample" / "cases"
UNPLANNED = "unplanned"
"""Flag of a criterion without a plan of its own: it is taken as one whole and must differ from the start."""


def plan_case(case: str, criteria: tuple[Criterion, ...], plans: Path | None) -> tuple[CasePlan, bool]:
    """The plan of one case and whether one was found.

    Taken from `plans/CASE/plan.json`; without `plans` from those shipped with the sample release, which count only
    where the criteria are word for word the sample's. Without one each criterion is one core requirement of kind
    `mixed`. Raises DataError when a plan does not fit the rubric.
    """
    path = _plan_path(case, criteria, plans)
    if path is None:
        parts = [
            CriterionPlan(
                criterion_index=c.criterion_index,
                kind="mixed",
                sub_requirements=[SubRequirement(id="a", text=c.text)],
            )
            for c in criteria
        ]
        return CasePlan(case=case, criteria=parts), False
    try:
        plan = CasePlan.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path} is no criterion plan: {error}") from error
    _check(plan, case, criteria, path)
    return plan, True


def plans_digest(plans: list[CasePlan]) -> str:
    """sha256 of all plans together; part of a judging's identity."""
    text = json.dumps([p.model_dump(mode="json") for p in plans], sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def _plan_path(case: str, criteria: tuple[Criterion, ...], plans: Path | None) -> Path | None:
    if plans is not None:
        if not plans.is_dir():
            raise UsageError(f"--plans {plans} is no folder; give the one that holds CASE/plan.json")
        path = plans / case / "plan.json"
        if not path.is_file():
            raise UsageError(f"{plans} holds no plan for {case} ({path}); add one, or leave --plans out")
        return path
    shipped = SHIPPED / case
    if (shipped / "plan.json").is_file() and read_rubric(shipped) == criteria:
        return shipped / "plan.json"
    return None


def _check(plan: CasePlan, case: str, criteria: tuple[Criterion, ...], path: Path) -> None:
    planned = [part.criterion_index for part in plan.criteria]
    expected = [criterion.criterion_index for criterion in criteria]
    if plan.case != case:
        raise DataError(f"{path} is the plan of {plan.case!r}, not of {case!r}")
    if planned != expected:
        raise DataError(f"{path}: plans criteria {planned}, the rubric has {expected}")
    for part in plan.criteria:
        ids = [sub.id for sub in part.sub_requirements]
        if len(set(ids)) != len(ids):
            raise DataError(f"{path}, criterion {part.criterion_index}: a sub-requirement's id is given twice")
        if not any(sub.core for sub in part.sub_requirements):
            raise DataError(f"{path}, criterion {part.criterion_index}: no sub-requirement is core")
