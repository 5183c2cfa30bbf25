"""`audit_queue.json`: which verdicts a person should look at first, and why.

A pure function of the journal's last records. Nothing in it changes a verdict; `cdb score --overrides` is for what a
person then decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bench.atomic import write_json

FILE = "audit_queue.json"


class Reason(NamedTuple):
    """Why a verdict may be wrong. `weight`: of two verdicts the one with the greater sum is looked at first."""

    weight: int
    text: str


REASONS: dict[str, Reason] = {
    "advocate_holds": Reason(100, "an advocate's witness survives every replay where the verdict is FAIL"),
    "attempt_holds": Reason(90, "the judge says that it does not hold, and its own attempt holds"),
    "unverified": Reason(80, "the refuter gave nothing usable: no verdict"),
    "judge_error": Reason(80, "the judge gave nothing usable: no verdict"),
    "refuted_without_evidence": Reason(70, "the refuter takes a credit away without evidence that replays"),
    "evaluator_directed_text": Reason(60, "text of the submission speaks to whoever evaluates it"),
    "contradicts_reason": Reason(60, "the judge's reason denies its own claim"),
    "unstable": Reason(60, "repeated runs of the same witness disagree"),
    "unattempted": Reason(50, "FAIL without an attempt that fails and without a citation"),
    "samples_disagree": Reason(50, "several samples of the judge disagree"),
    "claimed_not_shown": Reason(40, "the judge claims more than its witnesses show"),
    "unverified_citation": Reason(40, "the judge quotes source that is not there"),
    "flaky": Reason(30, "two of three runs held"),
    "sample_failed": Reason(20, "one of several samples gave nothing usable"),
    "inconclusive": Reason(20, "the refuter could not tell"),
    "unplanned": Reason(10, "the criterion was not taken apart beforehand: one part, as it stands"),
}
"""Every reason by name, the heaviest first."""
_NOT_SHOWN = frozenset({"no_witness", "not_held", "vacuous", "not_on_start"})


def reasons(record: Mapping[str, Any]) -> list[str]:
    """The names of the reasons to look at one criterion's record, the heaviest first."""
    found = {flag for flag in record.get("flags", ()) if flag in REASONS}
    found |= {str(record["outcome"])} & REASONS.keys()
    rules = {str(sub.get("lowered_by", "")) for sub in record.get("sub_requirements", ())}
    found |= {"unstable"} & rules
    found |= {"claimed_not_shown"} if rules & _NOT_SHOWN else set()
    words = {(sub.get("refutation") or {}).get("outcome") for sub in record.get("sub_requirements", ())}
    found |= {"inconclusive"} & words
    return [name for name in REASONS if name in found]


def audit_queue(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each record with a reason, the most doubtful first; ties in the order given."""
    queue = []
    for record in records:
        named = reasons(record)
        if named:
            queue.append({
                "case": record["case"], "criterion_index": record["criterion_index"],
                "criterion": record["criterion"], "verdict": record["verdict"],
                "columns": {name: column["verdict"] for name, column in record.get("columns", {}).items()},
                "weight": sum(REASONS[name].weight for name in named),
                "reasons": [{"name": name, "text": REASONS[name].text} for name in named],
                "evidence": f"evidence/{record['case']}/{record['criterion_index']:02d}",
            })  # fmt: skip
    return sorted(queue, key=lambda entry: -int(entry["weight"]))


def write_audit_queue(results: Path, records: Iterable[Mapping[str, Any]]) -> int:
    """Write it into a results folder; gives how many entries there are."""
    queue = audit_queue(records)
    write_json(results / FILE, {"schema": "cdb.audit_queue/1", "criteria": queue})
    return len(queue)
