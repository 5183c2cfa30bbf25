"""One row of scores.json for each task: its numbers, and whose fault it is where something went wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bench.outcomes import CASE, CRITERION
from evaluator.cases import Case, Cases
from evaluator.metrics import METRICS, TaskCounts, by_task, percent
from evaluator.verdicts import VerdictTable


def case_rows(cases: Cases, table: VerdictTable, counts: TaskCounts) -> list[dict[str, Any]]:
    """Rows in the order of cases.json; numbers are the mean over scored attempts, counts sum over attempts."""
    values = {metric: by_task(counts.scored(metric)) for metric in METRICS}
    columns = {
        "pass": counts.passed, "partial": counts.partial, "fail": counts.failed, "unscored": counts.unscored
    }  # fmt: skip
    sums = {name: array.sum(axis=0).tolist() for name, array in columns.items()}
    troubles: dict[int, tuple[str, str]] = {}
    for (_, position), said in sorted(table.trouble.items(), reverse=True):
        troubles[position] = said
    starts = [*table.index.starts, len(table.index.keys)]
    rows = []
    for place, case in enumerate(cases.cases):
        unscored = sums["unscored"][place]
        trouble = next((troubles[p] for p in range(starts[place], starts[place + 1]) if p in troubles), None)
        outcome, reason = _outcome(case, table.cases.get(case.case, {}), trouble, unscored=bool(unscored))
        rows.append(
            {
                "case": case.case,
                "attachment": case.attachment,
                "outcome": outcome,
                **_explained(case, outcome, reason),
                **{str(m): None if (v := values[m][place]) is None else percent(v) for m in METRICS},
                **{name: column[place] for name, column in sums.items()},
            }
        )
    return rows


def outcome_counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many tasks ended how; they add up to the scope."""
    return dict(sorted(Counter(str(row["outcome"]) for row in rows).items()))


NOT_JUDGED = "not_judged"
"""A task some of whose criteria have no record yet: the judging has not come to it, or was stopped in it."""


def _outcome(
    case: Case, record: dict[str, Any], trouble: tuple[str, str] | None, *, unscored: bool
) -> tuple[str, str]:
    """The task's outcome and its reason: why it is unscored, else what its case record says, else what is known."""
    told = str(record.get("outcome")), str(record.get("reason") or "")
    known = told[0] in CASE
    if unscored:
        if trouble or (known and CASE[told[0]].counts == "unscored"):
            return trouble or told
        return NOT_JUDGED, "not judged yet, or no verdict in the journal"
    if known and CASE[told[0]].counts != "unscored":
        return told
    if case.submission is None:
        return "missing", case.trial.reason if case.trial else "no submission"
    return ("unchanged", "nothing was changed") if case.submission.changed_files == 0 else ("ok", "")


def _explained(case: Case, outcome: str, reason: str) -> dict[str, str]:
    """Of a row that is not ok: whose fault, why, what to read and what to do next."""
    trial = case.submission.outcome if case.submission else case.trial.outcome if case.trial else "missing"
    if outcome == "ok":
        return {"trial": trial}
    row = CRITERION.get(outcome) or CASE.get(outcome)
    return {
        "trial": trial,
        "whose": row.whose if row else "nobody",
        "reason": reason,
        "next_step": row.next_step if row else "run the same `cdb judge` command again",
        "logs": f"evidence/{case.case}",
    }
