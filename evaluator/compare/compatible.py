"""Whether results may stand in one table: the same tasks, plans, judge and conditions, or a refusal with the diff."""

from __future__ import annotations

import json
from typing import Any

from bench.errors import UsageError
from evaluator.cases import Case
from evaluator.compare.entrants import Result, Who

_OF_THE_SOLVING = ("conditions", "limits", "timeout_s", "caps")


def check_compatible(results: list[Result]) -> None:
    """Raises UsageError listing every difference between the first result and the others.

    Results over other tasks of the same dataset are no difference: tasks without a partner are listed, not paired.
    """
    first = results[0]
    faults: list[str] = []
    seen: dict[Who, Result] = {}
    for result in results:
        twin = seen.setdefault(result.who, result)
        told = _diff("solve.agent", twin.cases.solve.get("agent"), result.cases.solve.get("agent"))
        faults += [f"{twin.folder} / {result.folder}, attempts of one agent by their names: {line}" for line in told]
    for other in results[1:]:
        faults += [f"{first.folder} / {other.folder}: {line}" for line in differences(first, other)]
    if faults:
        raise UsageError(
            "these results cannot be compared, since their verdicts do not mean the same:\n  "
            + "\n  ".join(faults)
            + "\nJudge the submissions again under one plan, judge and set of conditions."
        )


def differences(first: Result, other: Result) -> list[str]:
    """One line for each thing that differs and may not; empty when both may stand in one table."""
    lines = []
    if first.cases.dataset.get("name") != other.cases.dataset.get("name"):
        lines.append(f"dataset: {first.cases.dataset.get('name')!r}, {other.cases.dataset.get('name')!r}")
    theirs = {case.case: case for case in other.cases.cases}
    shared = [(case, theirs[case.case]) for case in first.cases.cases if case.case in theirs]
    if not shared:
        lines.append("they have no task in common")
    for what, of in (("starting application", _start), ("criteria", _criteria), ("criterion plan", _plan)):
        if differing := [case.case for case, twin in shared if of(case) != of(twin)]:
            lines.append(f"{what} of {', '.join(differing[:5])}{' …' if len(differing) > 5 else ''}")
    if (first.settings.get("judge") or {}).get("model") and (
        differing := [case.case for case, twin in shared if _digests(case) != _digests(twin)]
    ):
        lines.append(f"digests of the attachments of {', '.join(differing[:5])}{' …' if len(differing) > 5 else ''}")
    for key in ("judge", "refuter", "evidence", "conditions", "images"):
        lines += _diff(f"evaluator.{key}", first.settings.get(key), other.settings.get(key))
    for key in _OF_THE_SOLVING:
        told = first.cases.solve.get(key), other.cases.solve.get(key)
        if key != "caps" or None not in told:  # an agent without a model has no caps
            lines += _diff(f"solve.{key}", *told)
    return lines


def _start(case: Case) -> Any:
    return case.start_digest


def _criteria(case: Case) -> Any:
    return [(c.criterion_index, c.criterion) for c in case.criteria]


def _digests(case: Case) -> Any:
    """What a model was told of the attachments."""
    return [(one.path, one.digest_sha256) for one in case.attachments]


def _plan(case: Case) -> Any:
    return [part.model_dump() for part in case.plan]


def _diff(where: str, first: Any, other: Any) -> list[str]:
    if isinstance(first, dict) and isinstance(other, dict):
        return [
            line
            for key in sorted({*first, *other})
            for line in _diff(f"{where}.{key}", first.get(key), other.get(key))
        ]
    return [] if first == other else [f"{where}: {_said(first)}, {_said(other)}"]


def _said(value: Any) -> str:
    return "not recorded" if value is None else json.dumps(value, ensure_ascii=False)[:80]
