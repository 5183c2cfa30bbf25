"""One criterion: the judge proposes, the refuter attacks, the harness replays, a pure function decides."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from bench.atomic import write_json
from bench.errors import InfraError
from evaluator.adjudicate import SubDecision, SubFacts, decide, decide_sub, facts_of_runs
from evaluator.attack import probed_evidence, refutation_record, replayed_evidence
from evaluator.cases import Case, CriterionText
from evaluator.judges.judge import (
    SPOKE,
    BrokenOff,
    Claim,
    CriterionJudge,
    CriterionRefuter,
    JudgeError,
    OutOfBudget,
    RefuterError,
)
from evaluator.pairs import Shown, pair_of
from evaluator.records import (
    CriterionOutcome,
    CriterionPlan,
    CriterionRecord,
    PairRecord,
    Purpose,
    RefutationRecord,
    Replay,
    SubRequirement,
    SubResult,
    Usage,
)
from evaluator.stage import ReplayError, Stage
from evaluator.witness import Witness


@dataclass
class _Sub:
    """What is gathered for one sub-requirement while the criterion is worked on."""

    plan: SubRequirement
    claim: Claim
    replays: list[Replay] = field(default_factory=list)
    refutation: RefutationRecord | None = None
    pair: PairRecord | None = None
    examined: bool = True
    """False where a core part was lost before this one's turn came."""

    def outcomes(self, *purposes: Purpose) -> tuple[Replay, ...]:
        return tuple(r for r in self.replays if r.purpose in purposes)


class CriterionBroken(InfraError):
    """The machine failed within a criterion; `record` says so, and what its models had cost by then."""

    def __init__(self, record: CriterionRecord) -> None:
        super().__init__(record.reason)
        self.record = record


def judge_criterion(
    case: Case,
    criterion: CriterionText,
    plan: CriterionPlan,
    judge: CriterionJudge,
    stage: Stage,
    refuter: CriterionRefuter | None = None,
) -> CriterionRecord:
    """Judge one criterion to its record. What cannot be decided is an outcome other than `ok`, without a verdict.

    Raises CriterionBroken when the machine failed in a way that the next criterion would meet too."""
    began = time.monotonic()
    preservation = plan.kind == "preservation"
    work = _Work(flags=[] if case.planned else ["unplanned"])
    try:
        subs = _proposals(case, criterion, plan, judge, stage, work)
        if plan.kind == "visual":
            _show_pairs(subs, case, criterion, plan, judge, stage, work)
        _refute(subs, stage, preservation)
        if refuter and (SPOKE in work.flags or not refuter.only_flagged):
            _attack(subs, case, criterion, plan, refuter, stage, work)
    except JudgeError as error:
        work.spent(error.role, error.usage)
        return _undecided(case, plan, _outcome_of(error), str(error), began, work)
    except ReplayError as error:
        outcome: CriterionOutcome = "infra_error" if error.purpose == "propose" else "unverified"
        return _undecided(case, plan, outcome, str(error), began, work)
    except InfraError as error:
        raise CriterionBroken(_undecided(case, plan, "infra_error", str(error), began, work)) from error
    return _decided(case, plan, subs, stage, began, work)


@dataclass
class _Work:
    """What is known of a criterion besides its parts: flags, and what the models cost."""

    flags: list[str]
    usage: dict[str, Usage] = field(default_factory=dict)

    def spent(self, role: str, usage: Usage) -> None:
        if usage.calls:
            self.usage[role] = self.usage.get(role, Usage()) + usage


def _outcome_of(error: JudgeError) -> CriterionOutcome:
    if isinstance(error, OutOfBudget | BrokenOff):
        return "budget" if isinstance(error, OutOfBudget) else "infra_error"
    return "unverified" if isinstance(error, RefuterError) else "judge_error"


def about(case: Case, plan: CriterionPlan) -> dict[str, Any]:
    """The fields of a criterion's record that say which one it is: text and ids as the rubric has them."""
    text = next(c for c in case.criteria if c.criterion_index == plan.criterion_index)
    return {"case": case.case, "kind": plan.kind, **text.model_dump()}


def _proposals(
    case: Case, criterion: CriterionText, plan: CriterionPlan, judge: CriterionJudge, stage: Stage, work: _Work
) -> list[_Sub]:
    def attempt(sub: str, witness: Witness) -> Replay:
        return stage.run(witness, sub, "propose")

    proposal = judge.judge(case, criterion, plan, attempt)
    work.spent("judge", proposal.usage)
    work.flags += [*proposal.flags, *(flag for claim in proposal.claims for flag in claim.flags)]
    subs = []
    for part, claim in zip(plan.sub_requirements, proposal.claims, strict=True):
        if claim.witness:
            write_json(stage.folder / f"{part.id}.witness.json", claim.witness.model_dump(mode="json", by_alias=True))
        subs.append(_Sub(part, claim, list(claim.attempts)))
    return subs


def _show_pairs(
    subs: list[_Sub],
    case: Case,
    criterion: CriterionText,
    plan: CriterionPlan,
    judge: CriterionJudge,
    stage: Stage,
    work: _Work,
) -> None:
    """A blind pair for each part of a purely visual criterion that is claimed and has no witness."""
    for sub in subs:
        if sub.claim.holds and sub.claim.witness is None:
            shown = Shown(stage.applications, stage.folder, stage.results)
            sub.pair, usage = pair_of(shown, case, criterion, plan, sub.plan, judge)
            work.spent("judge", usage)


def _refute(subs: list[_Sub], stage: Stage, preservation: bool) -> None:
    """The mechanical attack on every claim, the core ones first, until a core one is lost in both columns that can
    be lowered: the others can change nothing then."""
    lost = False
    for sub in sorted(subs, key=lambda sub: not sub.plan.core):
        sub.examined = not lost
        witness = sub.claim.witness if sub.claim.holds else None
        if witness and sub.examined and _survives(sub, witness, stage, preservation):
            _repeat(sub, witness, stage)
        lost = lost or (sub.plan.core and _is_lost(sub, preservation))


def _is_lost(sub: _Sub, preservation: bool) -> bool:
    decision = decide_sub(_facts(sub, preservation))
    return not (decision.card or decision.witnessed)


def _attack(
    subs: list[_Sub],
    case: Case,
    criterion: CriterionText,
    plan: CriterionPlan,
    refuter: CriterionRefuter,
    stage: Stage,
    work: _Work,
) -> None:
    """The refuter over a model, on every claim that still stands; what it offers as evidence is replayed.

    Not asked when a core part is lost already: it could only lower."""
    preservation = plan.kind == "preservation"
    if any(sub.plan.core and _is_lost(sub, preservation) for sub in subs):
        return
    standing = [sub for sub in subs if sub.claim.holds and sub.examined and not _is_lost(sub, preservation)]
    if not standing:
        return

    def attempt(label: str, witness: Witness) -> Replay:
        return stage.run(witness, label, "counter")

    attack = refuter.refute(case, criterion, plan, tuple(sub.claim for sub in standing), attempt)
    work.spent("refuter", attack.usage)
    for sub, told in zip(standing, attack.refutations, strict=True):
        probe = None
        if told.outcome == "downgrade":
            sub.replays += replayed_evidence(told, sub.claim.witness, stage.run, stage.folder)
            probe = probed_evidence(told, sub.claim, stage.ground) if stage.ground else None
        sub.refutation = refutation_record(told, probe, stage.folder, stage.results)


def _survives(sub: _Sub, witness: Witness, stage: Stage, preservation: bool) -> bool:
    """The refuter's mechanical probes: the untouched start application, then other inputs. False once one bites."""
    vacuity = stage.run_on_start(witness, sub.plan.id)
    sub.replays.append(vacuity)
    if (vacuity.outcome == "held") != preservation:
        return False
    for inputs in witness.vary:
        varied = stage.run(witness, sub.plan.id, "vary", dict(inputs))
        sub.replays.append(varied)
        if varied.outcome != "held":
            return False
    return True


def _repeat(sub: _Sub, witness: Witness, stage: Stage) -> None:
    """Run the witness a second time, and a third when the two disagree.

    A run with other inputs that held is a second run, and a harder one."""
    if len(sub.outcomes("propose")) < 2 and not witness.vary:
        sub.replays.append(stage.run(witness, sub.plan.id, "repeat"))
    attempts = sub.outcomes("propose", "repeat")
    if len({r.outcome for r in attempts}) > 1:
        sub.replays.append(stage.run(witness, sub.plan.id, "tiebreak"))


def _decided(
    case: Case, plan: CriterionPlan, subs: list[_Sub], stage: Stage, began: float, work: _Work
) -> CriterionRecord:
    preservation = plan.kind == "preservation"
    decisions = [decide_sub(_facts(sub, preservation)) for sub in subs]
    columns = decide(decisions)
    flags = sorted({*work.flags, *(flag for decision in decisions for flag in decision.flags)})
    if columns["witnessed"].verdict != columns["judge"].verdict:
        flags.append("lowered")
    return CriterionRecord(
        **about(case, plan),
        outcome="ok",
        verdict=columns["witnessed"].verdict,
        columns=columns,
        sub_requirements=[_result(s, d, stage) for s, d in zip(subs, decisions, strict=True)],
        start_frame=_frame(subs, "start"),
        submission_frame=_frame(subs, "submission"),
        flags=flags,
        usage=work.usage,
        duration_s=round(time.monotonic() - began, 3),
    )


def _facts(sub: _Sub, preservation: bool) -> SubFacts:
    return facts_of_runs(
        sub.replays,
        core=sub.plan.core,
        preservation=preservation,
        has_witness=sub.claim.witness is not None,
        claimed=sub.claim.holds,
        examined=sub.examined,
        refutation=sub.refutation,
        pair=sub.pair,
    )


def _result(sub: _Sub, decision: SubDecision, stage: Stage) -> SubResult:
    witness = stage.folder / f"{sub.plan.id}.witness.json"
    return SubResult(
        id=sub.plan.id,
        text=sub.plan.text,
        core=sub.plan.core,
        witness=str(witness.relative_to(stage.results)) if sub.claim.witness else None,
        witness_sha256=sub.claim.witness.digest() if sub.claim.witness else None,
        replays=sub.replays,
        reason=sub.claim.reason,
        citations=list(sub.claim.citations),
        pair=sub.pair,
        refutation=sub.refutation,
        samples=list(sub.claim.samples),
        proposed=decision.judge,
        card=decision.card,
        witnessed=decision.witnessed,
        lowered_by=decision.rule if decision.judge and not decision.witnessed else "",
    )


def _frame(subs: list[_Sub], app: str) -> str | None:
    """The last picture taken on one application, preferring the core requirements' own runs."""
    ordered = sorted(subs, key=lambda sub: not sub.plan.core)
    for sub in ordered:
        frames = [step.frame for r in sub.replays if r.app == app for step in r.steps if step.frame]
        if frames:
            return frames[-1]
    return None


def _undecided(
    case: Case, plan: CriterionPlan, outcome: CriterionOutcome, reason: str, began: float, work: _Work
) -> CriterionRecord:
    return CriterionRecord(
        **about(case, plan),
        outcome=outcome,
        reason=reason,
        verdict=None,
        flags=sorted(set(work.flags)),
        usage=work.usage,
        duration_s=round(time.monotonic() - began, 3),
    )
