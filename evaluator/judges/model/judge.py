"""The judge over a model: for each criterion a conversation that ends in one claim for every sub-requirement."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field

from evaluator.cases import Case, CriterionText
from evaluator.judges.judge import (
    ADVOCATE,
    NO_ADVOCATE,
    SPOKE,
    Advocacy,
    Attempt,
    BrokenOff,
    Claim,
    Exhibits,
    JudgeError,
    OutOfBudget,
    Proposal,
)
from evaluator.judges.model.browsing import Browsing
from evaluator.judges.model.chat import Chat, ToolSpec, text_part
from evaluator.judges.model.conversation import Conversation, Finish, Repair
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.looking import browser_tools, source_tools
from evaluator.judges.model.opening import Opening
from evaluator.judges.model.pairing import choose
from evaluator.judges.model.prompts import prompts_digest, render
from evaluator.judges.model.samples import majority
from evaluator.judges.model.sources import Sources
from evaluator.judges.model.toolbox import Output, Refused, Tool, Toolbox, ToolInput, tool
from evaluator.judges.model.verdict import Tried, VerdictCheck, VerdictInput, read_witness
from evaluator.pairs import Chosen, blind_pair
from evaluator.records import CriterionPlan, PairRecord, Replay, SubRequirement, Usage


class TryWitness(ToolInput):
    sub: str = Field(description="the sub-requirement's id")
    witness: dict[str, Any] | str


@dataclass(frozen=True)
class ModelJudge:
    """Judges with `chat`. `name` is how it was asked for; `digests` words about attachments, CASE.md each."""

    name: str
    chat: Chat
    ledger: Ledger
    digests: Path | None = None
    samples: int = 1
    """Conversations a criterion; the majority's claims count."""
    advocacy: Advocacy = NO_ADVOCATE

    @property
    def model(self) -> str | None:
        told = self.chat.describe().get("model")
        return str(told) if told else None

    def describe(self) -> dict[str, Any]:
        return {
            **self.chat.describe(),
            "samples": self.samples,
            "caps": self.ledger.caps.model_dump(include={"criterion_calls", "criterion_pictures"}),
            "advocate": self.advocacy._asdict(),
            "prompts_sha256": prompts_digest("judge", "criterion", "witness", "advocate", "pair", "pair_task"),
            "digests_sha256": digests_digest(self.digests),
        }

    def check(self) -> None:
        self.chat.check()

    def stop(self) -> None:
        self.chat.stop()

    def close(self) -> None:
        self.chat.close()

    def carry(self, criteria: Sequence[dict[str, Any]]) -> None:
        self.ledger.carry(criteria)

    def in_case(self, exhibits: Exhibits) -> JudgeInCase:
        return JudgeInCase(self, exhibits)


class JudgeInCase:
    """One case before the judge. Fences, sources and the shared opening are made once for all its criteria."""

    def __init__(self, judge: ModelJudge, exhibits: Exhibits) -> None:
        self._judge = judge
        self._exhibits = exhibits
        self._fence = Fence()
        self._sources = Sources(exhibits.submission, exhibits.start)

    @cached_property
    def _opening(self) -> Opening:
        return Opening(self._exhibits, self._sources, self._fence, self._judge.chat, self._judge.digests)

    @property
    def advocacy(self) -> Advocacy:
        return self._judge.advocacy

    def plead(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        claims, usage = self._sample(case, criterion, plan, Tried(attempt), ADVOCATE)
        return Proposal(claims, usage)

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        self._fence.spoke = False
        tried, usage = Tried(attempt), Usage()
        samples: list[tuple[Claim, ...]] = []
        problem: JudgeError | None = None
        for number in range(1, self._judge.samples + 1):
            try:
                claims, spent = self._sample(
                    case, criterion, plan, tried, "judge" if number == 1 else f"judge-{number}"
                )
                samples.append(claims)
                usage += spent
            except (OutOfBudget, BrokenOff) as error:
                error.usage += usage
                raise
            except JudgeError as error:  # a sample that failed is left out, never counted as a FAIL
                problem, usage = error, usage + error.usage
        if problem and not samples:
            raise JudgeError(str(problem), usage)
        claims = tuple(_with_its_attempt(claim, tried) for claim in majority(samples))
        flags = [SPOKE] if self._fence.spoke or self._opening.speaks else []
        flags += ["sample_failed"] if problem else []
        return Proposal(claims, usage, tuple(flags))

    @property
    def sees(self) -> bool:
        return self._judge.chat.vision

    def pair(
        self,
        case: Case,
        criterion: CriterionText,
        plan: CriterionPlan,
        sub: SubRequirement,
        pair: tuple[bytes, bytes],
    ) -> tuple[PairRecord, Usage]:
        """A conversation of its own for each order, which knows the sentence and two pictures and nothing else."""
        spent = Usage()
        name = f"{plan.criterion_index:02d}/pair-{sub.id}"

        def shown(first: bytes, second: bytes) -> Chosen:
            nonlocal spent
            order = f"{name}-{'start' if first is pair[0] else 'submission'}-first"
            purse = self._judge.ledger.purse(case.case)
            sentence = f"{sub.text} (part of: {criterion.criterion})"
            try:
                found, usage = choose(
                    self._judge.chat, purse, sentence, (first, second),
                    label=f"{case.case}/{name}", folder=self._exhibits.folder / order,
                )  # fmt: skip
            except JudgeError as error:
                error.usage += spent
                raise
            spent += usage
            return found

        return blind_pair(shown, *pair), spent

    def _sample(
        self, case: Case, criterion: CriterionText, plan: CriterionPlan, tried: Tried, role: str
    ) -> tuple[tuple[Claim, ...], Usage]:
        """One conversation: its claims and what it cost. Raises JudgeError."""
        chat = self._judge.chat
        folder = self._exhibits.folder / f"{plan.criterion_index:02d}" / role
        browsing = Browsing(self._exhibits.running)
        subs = tuple(sub.id for sub in plan.sub_requirements)
        pictures = self._judge.ledger.caps.criterion_pictures if chat.vision else 0
        tools = [*source_tools(self._sources), *browser_tools(browsing, pictures=pictures), _try_witness(subs, tried)]
        toolbox = Toolbox(tools, self._fence, folder)
        pairs = chat.vision and plan.kind == "visual"
        check = VerdictCheck(subs, self._sources, tried, lambda: toolbox.evidence, pairs=pairs)
        talk: Conversation[tuple[Claim, ...]] = Conversation(
            chat,
            self._judge.ledger.purse(case.case),
            toolbox,
            Finish(_VERDICT, check.take),
            label=f"{case.case}/{plan.criterion_index:02d}/{role}",
            folder=folder,
        )
        system = render("judge", mark=self._fence.mark, vision=chat.vision, witness=render("witness"))
        task = render(
            "criterion", criterion=criterion.criterion, kind=plan.kind, subs=plan.sub_requirements, pairs=pairs
        )
        if role == ADVOCATE:
            task = f"{task}\n{render('advocate')}"
        try:
            return talk.hold(system, [*self._opening.parts, text_part(task)]), talk.usage
        finally:
            browsing.close()


def _with_its_attempt(claim: Claim, tried: Tried) -> Claim:
    """The claim with its witness's own run: a later sample's attempts may have taken the place of its pictures."""
    return replace(claim, attempts=(tried.of(claim.sub, claim.witness),)) if claim.witness else claim


_VERDICT = ToolSpec(
    "verdict",
    "Your verdict: one claim for each sub-requirement, by its id. Ends the conversation.",
    tool("verdict", "", VerdictInput, lambda _i: Output()).spec.parameters,
)


def _try_witness(subs: tuple[str, ...], tried: Tried) -> Tool:
    def run(wanted: TryWitness) -> Output:
        if wanted.sub not in subs:
            raise Refused(f"{wanted.sub!r} is no sub-requirement; there are: {', '.join(subs)}")
        try:
            witness = read_witness(wanted.sub, wanted.witness)
        except Repair as error:
            raise Refused(str(error)) from error
        if witness is None:
            raise Refused("give a witness")
        replay = tried.run(wanted.sub, witness)
        return Output(told(replay), f"{wanted.sub} on the submission: {replay.outcome}")

    return tool(
        "try_witness", "Run a witness for a sub-requirement on a fresh visit to the submission.", TryWitness, run
    )


def told(replay: Replay) -> str:
    """A replay in words: each step, what was seen, and what went wrong."""
    lines = [
        f"{step.index}. {step.text}: {'ok' if step.ok else 'FAILED'}{': ' + step.note if step.note else ''}"
        for step in replay.steps
    ]
    lines += [f"outcome: {replay.outcome}" + (f": {replay.reason}" if replay.reason else "")]
    lines += [f"console {line}" for line in replay.console[:8]]
    return "\n".join(lines)


def digests_digest(folder: Path | None) -> str | None:
    """sha256 over words about attachments given by hand; None without any."""
    if folder is None:
        return None
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.md")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
