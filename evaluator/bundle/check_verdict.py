"""One criterion's record against the facts in it: the verdict must be the one they give, by the published rules.

This is what a rewritten journal with a fresh, whole chain meets: a verdict cannot be changed without the replays that
carry it, and replays can be run again.
"""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.adjudicate import SubDecision, decide, decide_sub, facts_of_runs
from evaluator.cases import Case
from evaluator.records import COLUMNS, CriterionPlan, CriterionRecord, SubResult

WHOLE_RULES = ("missing", "unchanged", "build_failed", "serve_failed", "app_hang")


def faults_of(record: CriterionRecord, case: Case) -> Iterator[str]:
    """What of a record contradicts the case's rubric and plan, or its own facts."""
    text = next((c for c in case.criteria if c.criterion_index == record.criterion_index), None)
    plan = next((p for p in case.plan if p.criterion_index == record.criterion_index), None)
    if text is None or plan is None:
        yield "cases.json has no such criterion"
        return
    if (record.criterion, record.rubric_id) != (text.criterion, text.rubric_id):
        yield "its criterion's text or id is not the one in cases.json"
    if record.kind != plan.kind:
        yield f"its kind is {record.kind}, the plan says {plan.kind}"
    if record.verdict is None:
        if record.columns:
            yield "it is undecided and yet has verdicts in its columns"
        return
    if record.columns.keys() != set(COLUMNS):
        yield f"its columns are {sorted(record.columns)}, not {', '.join(COLUMNS)}"
        return
    if record.verdict != record.columns["witnessed"].verdict:
        yield f"its verdict is {record.verdict}, its witnessed column says {record.columns['witnessed'].verdict}"
    yield from _by_parts(record, plan) if record.sub_requirements else _as_a_whole(record, case)


def _as_a_whole(record: CriterionRecord, case: Case) -> Iterator[str]:
    """The case as a whole decided: nothing ran, so it can only be FAIL, for one reason."""
    said = {(own.verdict, own.rule) for own in record.columns.values()}
    rule = record.columns["witnessed"].rule
    if len(said) != 1 or record.verdict != "FAIL" or rule not in WHOLE_RULES:
        yield f"no witness ran, so it can only be FAIL by a rule of the case; it is {record.verdict} by {rule}"
    elif (rule == "missing") != (case.submission is None):
        yield f"it is FAIL by {rule}, though {'a' if case.submission else 'no'} submission is there"
    elif rule == "unchanged" and case.submission and case.submission.digest != case.start_digest:
        yield "it is FAIL by unchanged, though the submission is not the start application"


def _by_parts(record: CriterionRecord, plan: CriterionPlan) -> Iterator[str]:
    told = [(sub.id, sub.text, sub.core) for sub in record.sub_requirements]
    if told != [(sub.id, sub.text, sub.core) for sub in plan.sub_requirements]:
        yield "its sub-requirements are not those of the plan"
        return
    decisions = []
    for sub in record.sub_requirements:
        if fault := _pair_fault(record, plan, sub):
            yield f"part {sub.id} {fault}"
        decided = _decide(sub, preservation=plan.kind == "preservation")
        decisions.append(decided)
        credited = (sub.proposed, sub.card, sub.witnessed)
        if credited != (decided.judge, decided.card, decided.witnessed):
            yield f"part {sub.id} is credited as {credited} (judge, card, witnessed), which its replays do not give"
    for column, own in decide(decisions).items():
        if record.columns[column] != own:
            said = record.columns[column]
            yield f"column {column} says {said.verdict} by {said.rule}; its replays give {own.verdict} by {own.rule}"


def _pair_fault(record: CriterionRecord, plan: CriterionPlan, sub: SubResult) -> str:
    """What keeps a blind pair that is said to be won from being a credit. It needs the kept pictures: no replay shows
    again what a judge chose."""
    if sub.pair is None or sub.pair.outcome != "won":
        return ""
    if plan.kind != "visual" or sub.witness is not None:
        return "is credited by a blind pair, which only a visual criterion's part without a witness can be"
    if sub.pair.choices != ["submission", "submission"]:
        return f"is credited by a blind pair in which {sub.pair.choices} were chosen"
    below = f"evidence/{record.case}/{record.criterion_index:02d}/"
    if len(sub.pair.pictures) != 2 or not all(picture.startswith(below) for picture in sub.pair.pictures):
        return "is credited by a blind pair whose two pictures are not in its evidence"
    return "" if record.evidence_digest else "is credited by a blind pair, and no digest binds its pictures"


def _decide(sub: SubResult, *, preservation: bool) -> SubDecision:
    """Every claim that is examined runs on the start application: without that run it was not examined."""
    return decide_sub(
        facts_of_runs(
            sub.replays,
            core=sub.core,
            preservation=preservation,
            has_witness=sub.witness is not None,
            claimed=sub.proposed,
            examined=any(run.purpose == "vacuity" for run in sub.replays),
            refutation=sub.refutation,
            pair=sub.pair,
        )
    )
