"""Judged results as two flat tables: one row a criterion, one row a trial (an entry's work on one case).

The columns are the same whatever the results hold; what is not known is null. docs/exports.md explains each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from bench.redact import Redactor
from evaluator.exports.entry import Entry

Kind = Literal["text", "whole", "number", "truth", "texts"]
Row = dict[str, Any]

_ENTRY: dict[str, Kind] = {
    "entry": "text",
    "agent": "text",
    "model": "text",
    "harness": "text",
    "attempt": "whole",
    "reportable": "truth",
    "dataset": "text",
    "dataset_digest": "text",
    "scope": "text",
    "judge": "text",
    "judge_model": "text",
}
CRITERIA: dict[str, Kind] = {
    **_ENTRY,
    "case": "text",
    "attachment": "text",
    "criterion_index": "whole",
    "rubric_id": "text",
    "criterion": "text",
    "kind": "text",
    "outcome": "text",
    "reason": "text",
    "verdict": "text",
    "judge_verdict": "text",
    "judge_rule": "text",
    "card_verdict": "text",
    "card_rule": "text",
    "witnessed_verdict": "text",
    "witnessed_rule": "text",
    "overruled": "truth",
    "flags": "texts",
    "sub_requirements": "whole",
    "witnesses": "whole",
    "replays": "whole",
    "evidence_digest": "text",
    "submission_digest": "text",
    "duration_s": "number",
    "judge_cost_usd": "number",
    "judge_input_tokens": "whole",
    "judge_output_tokens": "whole",
    "refuter_cost_usd": "number",
    "refuter_input_tokens": "whole",
    "refuter_output_tokens": "whole",
}
TRIALS: dict[str, Kind] = {
    **_ENTRY,
    "case": "text",
    "attachment": "text",
    "request": "text",
    "trial_outcome": "text",
    "outcome": "text",
    "whose": "text",
    "reason": "text",
    "strict": "number",
    "graded": "number",
    "full": "number",
    "passed": "whole",
    "partial": "whole",
    "failed": "whole",
    "unscored": "whole",
    "submitted": "truth",
    "submission_digest": "text",
    "changed_files": "whole",
    "flags": "texts",
    "tries": "whole",
    "started_at": "text",
    "duration_s": "number",
    "cost_usd": "number",
    "calls": "whole",
    "tokens": "whole",
    "judging_s": "number",
}


def criterion_rows(entry: Entry) -> Iterator[Row]:
    """In the order of cases.json; also of criteria that nobody has judged."""
    overruled = {(o["case"], o["criterion_index"]) for o in entry.scores.get("overrides") or []}
    about = _about(entry)
    for case in entry.cases.cases:
        plans = {plan.criterion_index: plan for plan in case.plan}
        for text in case.criteria:
            key = (case.case, text.criterion_index)
            record = entry.records.get(key, {})
            subs = record.get("sub_requirements") or []
            plan = plans.get(text.criterion_index)
            yield {
                **about,
                "case": case.case,
                "attachment": case.attachment,
                **text.model_dump(),
                "kind": plan.kind if plan else None,
                "outcome": record.get("outcome"),
                "reason": _redacted(record.get("reason")),
                "verdict": entry.verdict(*key, "witnessed"),
                **_columns(entry, key, record),
                "overruled": key in overruled,
                "flags": list(record.get("flags") or []),
                "sub_requirements": len(subs),
                "witnesses": sum(sub.get("witness") is not None for sub in subs),
                "replays": sum(len(sub.get("replays") or []) for sub in subs),
                "evidence_digest": record.get("evidence_digest"),
                "submission_digest": case.submission.digest if case.submission else None,
                "duration_s": record.get("duration_s"),
                **_usage(record),
            }


def trial_rows(entry: Entry) -> Iterator[Row]:
    """One row for each case in scope, whether it has a submission or not."""
    about = _about(entry)
    for case, row in zip(entry.cases.cases, entry.rows, strict=True):
        trial, seal = entry.trials.get(case.case, {}), entry.seal(case)
        account = trial.get("account") or (seal.usage if seal else {})
        yield {
            **about,
            "case": case.case,
            "attachment": case.attachment,
            "request": case.request,
            "trial_outcome": row["trial"],
            "outcome": row["outcome"],
            "whose": row.get("whose"),
            "reason": _redacted(row.get("reason")),
            **{metric: row[metric] for metric in ("strict", "graded", "full")},
            "passed": row["pass"],
            "partial": row["partial"],
            "failed": row["fail"],
            "unscored": row["unscored"],
            "submitted": case.submission is not None,
            "submission_digest": case.submission.digest if case.submission else None,
            "changed_files": case.submission.changed_files if case.submission else None,
            "flags": list(case.submission.flags) if case.submission else [],
            "tries": trial.get("try"),
            "started_at": seal.started_at if seal else None,
            "duration_s": trial.get("duration_s", seal.duration_s if seal else None),
            "cost_usd": account.get("cost_usd"),
            "calls": account.get("calls"),
            "tokens": _total(account.get("tokens")),
            "judging_s": (entry.table.cases.get(case.case) or {}).get("duration_s"),
        }


def _about(entry: Entry) -> Row:
    who, judge = entry.cases.entry, entry.lock.get("judge") or {}
    return {
        "entry": entry.name,
        "agent": who.get("agent"),
        "model": who.get("model"),
        "harness": who.get("harness"),
        "attempt": who.get("attempt", 1),
        "reportable": bool(who.get("reportable")),
        "dataset": entry.cases.dataset.get("name"),
        "dataset_digest": entry.cases.dataset.get("digest"),
        "scope": entry.scores.get("label"),
        "judge": judge.get("name"),
        "judge_model": judge.get("model"),
    }


def _columns(entry: Entry, key: tuple[str, int], record: Row) -> Row:
    """What each column says, and by which rule; an overruled verdict has no rule's name of its own."""
    said: Row = {}
    for column in ("judge", "card", "witnessed"):
        own = (record.get("columns") or {}).get(column) or {}
        said[f"{column}_verdict"] = own.get("verdict") if own else entry.verdict(*key, column)
        said[f"{column}_rule"] = own.get("rule")
    return said


def _usage(record: Row) -> Row:
    said: Row = {}
    for role in ("judge", "refuter"):
        usage = (record.get("usage") or {}).get(role) or {}
        for name in ("cost_usd", "input_tokens", "output_tokens"):
            said[f"{role}_{name}"] = usage.get(name)
    return said


def _redacted(text: Any) -> str | None:
    """What a page or a machine said may hold a key."""
    return Redactor().text(text) if isinstance(text, str) else None


def _total(tokens: Any) -> int | None:
    """The gateway counts tokens by kind, some of which are parts of others; a foreign seal may tell one number."""
    if isinstance(tokens, dict):
        return sum(int(tokens.get(kind) or 0) for kind in ("input", "cache_read", "cache_write", "output"))
    return tokens if isinstance(tokens, int) else None
