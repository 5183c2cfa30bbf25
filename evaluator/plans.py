"""Criterion plans: found, checked against the rubric, hashed. The same plans serve every entry."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.atomic import write_json
from bench.errors import DataError, UsageError
from bench.strict_json import read_json
from bench.tree import file_sha256
from evaluator.records import CasePlan, CriterionPlan, SubRequirement
from evaluator.rubric import Criterion, read_rubric

SHIPPED = Path(__file__).parent / "sample" / "cases"
FROZEN = "plans.json"
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
        return unplanned_case(case, criteria), False
    if plans is not None:
        _require_frozen(plans, case, path)
    return read_plan(path, case, criteria), True


def unplanned_case(case: str, criteria: tuple[Criterion, ...]) -> CasePlan:
    """What stands where nobody planned: each criterion one core requirement of kind `mixed`."""
    parts = [
        CriterionPlan(
            criterion_index=c.criterion_index, kind="mixed", sub_requirements=[SubRequirement(id="a", text=c.text)]
        )
        for c in criteria
    ]
    return CasePlan(case=case, criteria=parts)


def read_plan(path: Path, case: str, criteria: tuple[Criterion, ...]) -> CasePlan:
    """Raises DataError when the file is no plan, or not of these criteria."""
    try:
        plan = CasePlan.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path} is no criterion plan: {error}") from error
    check_plan(plan, case, criteria, str(path))
    return plan


def freeze(folder: Path, cases: Sequence[tuple[str, tuple[Criterion, ...]]], made_by: dict[str, Any] | None) -> str:
    """Write `folder/plans.json` over the plans of `cases` that are there; returns the hash of them all.

    Plans of other cases that were frozen before stay so. `made_by` is noted for plans that are new. Raises DataError
    for a plan that does not fit its rubric."""
    path = folder / FROZEN
    before = read_json(path)["plans"] if path.is_file() else {}
    frozen = dict(before)
    for case, criteria in cases:
        plan = folder / case / "plan.json"
        if not plan.is_file():
            continue
        read_plan(plan, case, criteria)
        sha256 = file_sha256(plan)
        if before.get(case, {}).get("sha256") != sha256:
            frozen[case] = {"sha256": sha256, "made_by": made_by or "hand"}
    write_json(path, {"schema": "cdb.plans/1", "plans": frozen})
    text = json.dumps({case: told["sha256"] for case, told in sorted(frozen.items())}, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _require_frozen(plans: Path, case: str, path: Path) -> None:
    """A plan that was frozen must not have been touched since. Raises DataError."""
    frozen = plans / FROZEN
    if not frozen.is_file():
        return
    told = read_json(frozen).get("plans", {}).get(case)
    if told is None or told.get("sha256") != file_sha256(path):
        raise DataError(
            f"{path} is not the plan that was frozen in {frozen}; put it back, or freeze it anew with "
            "`cdb plan --dataset … --out … --edit` (results made with the old one are not comparable any more)"
        )


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


def check_plan(plan: CasePlan, case: str, criteria: tuple[Criterion, ...], path: str) -> None:
    """Raises DataError, naming `path`, when the plan is not one of exactly these criteria."""
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
