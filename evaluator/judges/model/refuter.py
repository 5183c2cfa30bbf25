"""The refuter over a model: a context of its own that sees claims and witnesses, and attacks them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluator.cases import Case, CriterionText
from evaluator.judges.judge import (
    SPOKE,
    Attack,
    Attempt,
    BrokenOff,
    Claim,
    Exhibits,
    JudgeError,
    OutOfBudget,
    Refutation,
    RefuterError,
)
from evaluator.judges.model.browsing import Browsing
from evaluator.judges.model.chat import Chat, ToolSpec, text_part
from evaluator.judges.model.conversation import Conversation, Finish, Repair
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.judge import digests_digest, told
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.looking import browser_tools, source_tools
from evaluator.judges.model.opening import Opening
from evaluator.judges.model.prompts import prompts_digest, render
from evaluator.judges.model.sources import Sources
from evaluator.judges.model.toolbox import Output, Refused, Tool, Toolbox, ToolInput, tool
from evaluator.judges.model.verdict import Quote, checked_quotes, read_witness, require_ids
from evaluator.probes.tools import probe_tools
from evaluator.records import CriterionPlan, ProvingProbe
from evaluator.witness import Witness, WitnessError


class TryCounter(ToolInput):
    sub: str
    witness: dict[str, Any] | str


class TryInputs(ToolInput):
    sub: str
    inputs: dict[str, str] = Field(min_length=1)


class RefutationInput(ToolInput):
    """`counter` is an object of the witness language that holds on the submission and shows the fault."""

    sub: str = Field(description="the claim's id")
    outcome: Literal["uphold", "downgrade", "inconclusive"]
    reason: str = Field(min_length=1, max_length=4000)
    counter: dict[str, Any] | str | None = None
    inputs: dict[str, str] | None = None
    citations: list[Quote] = Field(default_factory=list, max_length=12)
    probe: ProvingProbe | None = Field(None, description="what agrees with the citations when the harness runs it")


class RefuterVerdict(ToolInput):
    refutations: list[RefutationInput] = Field(max_length=8)


@dataclass(frozen=True)
class ModelRefuter:
    """Attacks with `chat`; shares the judging's ledger."""

    chat: Chat
    ledger: Ledger
    digests: Path | None = None
    only_flagged: bool = False
    """Nobody wished for a refuter: the judge's own model stands in where a submission speaks to its evaluator."""

    def describe(self) -> dict[str, Any]:
        return {
            **self.chat.describe(),
            **({"only": SPOKE} if self.only_flagged else {}),
            "prompts_sha256": prompts_digest("refuter", "claims", "witness"),
            "digests_sha256": digests_digest(self.digests),
        }

    def check(self) -> None:
        if not self.only_flagged:  # else it is the judge's model, which has been asked
            self.chat.check()

    def stop(self) -> None:
        self.chat.stop()

    def close(self) -> None:
        self.chat.close()

    def in_case(self, exhibits: Exhibits) -> RefuterInCase:
        return RefuterInCase(self, exhibits)


class RefuterInCase:
    """One case before the refuter, with fences and an opening of its own."""

    def __init__(self, refuter: ModelRefuter, exhibits: Exhibits) -> None:
        self._refuter = refuter
        self._exhibits = exhibits
        self._fence = Fence()
        self._sources = Sources(exhibits.submission, exhibits.start)

    @property
    def only_flagged(self) -> bool:
        return self._refuter.only_flagged

    @cached_property
    def _opening(self) -> Opening:
        return Opening(self._exhibits, self._sources, self._fence, self._refuter.chat, self._refuter.digests)

    def refute(
        self, case: Case, criterion: CriterionText, plan: CriterionPlan, claims: tuple[Claim, ...], attempt: Attempt
    ) -> Attack:
        chat = self._refuter.chat
        folder = self._exhibits.folder / f"{plan.criterion_index:02d}" / "refuter"
        browsing = Browsing(self._exhibits.running)
        pictures = self._refuter.ledger.caps.criterion_pictures if chat.vision else 0
        tools = [*source_tools(self._sources), *browser_tools(browsing, pictures=pictures)]
        tools += [*_probes(claims, attempt), *probe_tools(self._exhibits, claims, folder)]
        toolbox = Toolbox(tools, self._fence, folder)
        talk: Conversation[tuple[Refutation, ...]] = Conversation(
            chat,
            self._refuter.ledger.purse(case.case),
            toolbox,
            Finish(_VERDICT, lambda given, last: _taken(given, last, claims, self._sources)),
            label=f"{case.case}/{plan.criterion_index:02d}/refuter",
            folder=folder,
        )
        system = render("refuter", mark=self._fence.mark, vision=chat.vision, witness=render("witness"))
        try:
            found = talk.hold(system, [*self._opening.parts, text_part(_task(criterion, plan, claims, self._fence))])
        except JudgeError as error:
            error.role = "refuter"
            if isinstance(error, OutOfBudget | BrokenOff):
                raise
            raise RefuterError(f"the refuter: {error}", error.usage) from error
        finally:
            browsing.close()
        return Attack(found, talk.usage)


_VERDICT = ToolSpec(
    "verdict",
    "Your refutations: one for each claim, by its id. Ends the conversation.",
    tool("verdict", "", RefuterVerdict, lambda _i: Output()).spec.parameters,
)


def _task(criterion: CriterionText, plan: CriterionPlan, claims: tuple[Claim, ...], fence: Fence) -> str:
    """What the refuter sees of the claims: text and witness, never the judge's reasons.

    Witnesses are fenced: a judge that was taken in may have copied words of the submission into one."""
    texts = {sub.id: sub.text for sub in plan.sub_requirements}
    shown = [
        {
            "sub": claim.sub,
            "text": texts[claim.sub],
            "witness": fence.data("witness", _program(claim.witness)) if claim.witness else "",
        }
        for claim in claims
    ]
    return render("claims", criterion=criterion.criterion, kind=plan.kind, claims=shown)


def _program(witness: Witness) -> str:
    return witness.model_dump_json(by_alias=True, exclude_defaults=True)


def _probes(claims: tuple[Claim, ...], attempt: Attempt) -> list[Tool]:
    by_id = {claim.sub: claim for claim in claims}

    def claim_of(sub: str) -> Claim:
        if sub not in by_id:
            raise Refused(f"{sub!r} is no claim here; there are: {', '.join(by_id)}")
        return by_id[sub]

    def try_counter(wanted: TryCounter) -> Output:
        claim = claim_of(wanted.sub)
        try:
            witness = read_witness(wanted.sub, wanted.witness)
        except Repair as error:
            raise Refused(str(error)) from error
        if witness is None:
            raise Refused("give a program")
        replay = attempt(f"{claim.sub}-try", witness)
        return Output(told(replay), f"{claim.sub}, counter-witness on the submission: {replay.outcome}")

    def try_inputs(wanted: TryInputs) -> Output:
        claim = claim_of(wanted.sub)
        replay = attempt(f"{claim.sub}-try", _with_inputs(claim, wanted.inputs))
        return Output(told(replay), f"{claim.sub}, its witness with these inputs: {replay.outcome}")

    return [
        tool(
            "try_counter",
            "Run a counter-witness for a claim on a fresh visit to the submission.",
            TryCounter,
            try_counter,
        ),
        tool("try_inputs", "Run a claim's own witness with other values for its inputs.", TryInputs, try_inputs),
    ]


def _with_inputs(claim: Claim, inputs: dict[str, str]) -> Witness:
    if claim.witness is None:
        raise Refused(f"{claim.sub} has no witness, so there are no inputs to change")
    try:
        return claim.witness.with_inputs(inputs)
    except WitnessError as error:
        raise Refused(str(error)) from error


def _taken(given: dict[str, Any], last: bool, claims: tuple[Claim, ...], sources: Sources) -> tuple[Refutation, ...]:
    """Raises ValidationError or Repair; a quotation that is not there is asked for once more, then left out."""
    refutations = RefuterVerdict.model_validate(given).refutations
    require_ids([one.sub for one in refutations], [claim.sub for claim in claims])
    by_id = {one.sub: one for one in refutations}
    return tuple(_refutation(by_id[claim.sub], claim, last, sources) for claim in claims)


def _refutation(one: RefutationInput, claim: Claim, last: bool, sources: Sources) -> Refutation:
    counter = read_witness(one.sub, one.counter)
    if one.inputs:
        try:
            _with_inputs(claim, one.inputs)
        except Refused as error:
            raise Repair(f"{one.sub}: {error}") from error
    citations, bad = checked_quotes(one.citations, sources)
    if bad and not last:
        raise Repair(f"{one.sub}: {'; '.join(bad)}")
    return Refutation(one.sub, one.outcome, one.reason, counter, one.inputs or None, tuple(citations), one.probe)
