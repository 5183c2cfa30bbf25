"""What a judging writes: the criterion plan it works from and the records of its journal.

Every model here is explained, field by field, in docs/records.md. Verdicts are decided in
`evaluator.adjudicate` from the facts held here and nowhere else.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["PASS", "PARTIAL", "FAIL"]
Column = Literal["judge", "card", "witnessed"]
COLUMNS: tuple[Column, ...] = ("judge", "card", "witnessed")

CriterionKind = Literal["behaviour", "visual", "content", "structure", "media", "preservation", "mixed"]
CriterionOutcome = Literal["ok", "judge_error", "unverified", "budget", "infra_error"]
CaseOutcome = Literal["ok", "missing", "unchanged", "build_failed", "serve_failed", "app_hang", "infra_error"]

Purpose = Literal["propose", "repeat", "tiebreak", "vacuity", "vary", "reload", "counter", "attack"]
"""Why a witness was run: first on the submission as the judge's attempt, again for stability, on the start
application (must fail there for a change, hold there for preservation), with other inputs, after reload; as the
refuter's counter-witness (must hold to count), with the refuter's inputs (must fail to count)."""


class Strict(BaseModel):
    """Base of every record we write and people edit: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid")


class SubRequirement(Strict):
    """One part of a criterion that can hold or not by itself."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")
    text: str
    core: bool = True


class CriterionPlan(Strict):
    """How one criterion is taken apart: made once per dataset, blind to every submission, frozen by hash."""

    criterion_index: int = Field(ge=1)
    kind: CriterionKind
    sub_requirements: list[SubRequirement] = Field(min_length=1, max_length=4)


class CasePlan(Strict):
    """The plans of one case, in the rubric's order."""

    case: str
    criteria: list[CriterionPlan]


class StepResult(Strict):
    """One step of one replay. `frame` is a picture's path relative to the results folder."""

    index: int
    text: str
    ok: bool
    note: str = ""
    frame: str | None = None
    ms: int = 0


class Replay(Strict):
    """One run of one witness on one application.

    `outcome`: held (every check true), failed (a step or check did not), error (the browser or the
    machine broke; says nothing about the application).
    """

    app: Literal["submission", "start"]
    purpose: Purpose
    inputs: dict[str, str] = Field(default_factory=dict)
    outcome: Literal["held", "failed", "error"]
    failed_step: int | None = None
    reason: str = ""
    steps: list[StepResult] = Field(default_factory=list)
    console: list[str] = Field(default_factory=list)
    refused_requests: list[str] = Field(default_factory=list)
    readings: dict[str, str] = Field(default_factory=dict)
    """What checks against the start application saw here, by the number of their step."""
    shared: bool = False
    """Taken over from another judging of the same run: on the start application only."""
    duration_s: float = 0.0


class Citation(Strict):
    """A place in the submission's source, quoted word for word. `line` is where the quotation was found."""

    path: str = Field(max_length=1000)
    quote: str = Field(min_length=1, max_length=2000)
    line: int | None = None


class Usage(Strict):
    """What one model's work cost. `cost_usd` is null as soon as the price of one call is unknown.

    `input_tokens` are all tokens sent, those read from and written to a cache included.
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    pictures: int = 0
    cost_usd: float | None = 0.0
    waited_s: float = 0.0
    models: list[str] = Field(default_factory=list)
    """The models that answered, by the names they gave."""

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            pictures=self.pictures + other.pictures,
            cost_usd=round((self.cost_usd or 0) + (other.cost_usd or 0), 6) if known else None,
            waited_s=round(self.waited_s + other.waited_s, 3),
            models=sorted({*self.models, *other.models}),
        )


ProbeFinding = Literal["against", "nothing", "unclear"]
ProvingProbe = Literal["coverage", "literal_near_handler", "reachable", "repeated", "masked"]
"""Probes that show a sham, whatever the criterion is about; beside a citation they take a credit away."""


class ProbeFacts(Strict):
    """One probe's findings on one claim.

    `finding`: `against` (what was seen speaks against the claim), `nothing` (it does not), `unclear` (it could not
    be told). `facts` are sentences; `pictures` paths below the case's evidence folder. `visits`: pages opened."""

    probe: str
    sub: str = ""
    finding: ProbeFinding
    facts: list[str] = Field(default_factory=list)
    pictures: list[str] = Field(default_factory=list)
    visits: int = 0


class RefutationRecord(Strict):
    """What the refuter said of one sub-requirement, and how its evidence replayed."""

    outcome: Literal["uphold", "downgrade", "inconclusive"]
    reason: str = ""
    counter_witness: str | None = None
    counter_sha256: str | None = None
    inputs: dict[str, str] | None = None
    citations: list[Citation] = Field(default_factory=list)
    probe: ProbeFacts | None = None
    """What the probe that the refuter named beside its citations found when the harness ran it."""


class PairRecord(Strict):
    """A blind pair: start and submission shown unlabelled, in both orders, to a judge who says which one fulfils it.

    `won`: the submission both times; `disagreed`: the first time only, so it went by the order; `lost`: not even then
    (the second question is not asked); `not_asked`: there was no picture, or the judge sees none."""

    outcome: Literal["won", "disagreed", "lost", "not_asked"]
    choices: list[Literal["start", "submission", "both", "neither"]] = Field(default_factory=list)
    reasons: list[str] = Field(default_factory=list)
    pictures: list[str] = Field(default_factory=list)
    """Start and submission, paths relative to the results folder."""


class SubResult(Strict):
    """What is known of one sub-requirement: the witness file (relative to the results folder) and its replays."""

    id: str
    text: str
    core: bool
    witness: str | None
    witness_sha256: str | None = None
    """Digest of the witness, so that a file edited later is not taken for what was judged."""
    replays: list[Replay]
    reason: str = ""
    """The judge's own words."""
    citations: list[Citation] = Field(default_factory=list)
    """Places in the source the judge named, each checked word for word."""
    samples: list[bool] = Field(default_factory=list)
    """What each of several samples of the judge claimed; empty for a single one."""
    pair: PairRecord | None = None
    """Only of a purely visual criterion whose part was claimed without a witness."""
    refutation: RefutationRecord | None = None
    """None when no refuter over a model was asked."""
    proposed: bool
    """The judge's own claim, before anyone attacked it."""
    card: bool
    """Still credited after the refuter, as the card's protocol takes it."""
    witnessed: bool
    """Credited by replayed evidence alone."""
    lowered_by: str = ""
    """Rule that took the credit away, in the table of `evaluator.adjudicate`; empty when none did."""


class ColumnVerdict(Strict):
    """One column's final verdict and the name of the rule that gave it."""

    verdict: Verdict
    rule: str


class AdvocateRecord(Strict):
    """What an advocate said of a criterion that failed, replayed like any claim. It changes no verdict.

    `claimed` is its own verdict, `verdict` what its witnesses show; both None unless `outcome` is ok.
    """

    outcome: CriterionOutcome
    reason: str = ""
    claimed: Verdict | None = None
    verdict: Verdict | None = None
    sub_requirements: list[SubResult] = Field(default_factory=list)


class CriterionRecord(Strict):
    """The journal's record of one criterion of one case, complete enough to score and to show."""

    type: Literal["criterion"] = "criterion"
    case: str
    criterion_index: int
    rubric_id: str
    criterion: str
    """The rubric's text, verbatim."""
    kind: CriterionKind
    outcome: CriterionOutcome
    reason: str = ""
    verdict: Verdict | None
    """The `witnessed` column's verdict: what a reader of only case, criterion and verdict should score."""
    columns: dict[Column, ColumnVerdict] = Field(default_factory=dict)
    sub_requirements: list[SubResult] = Field(default_factory=list)
    start_frame: str | None = None
    submission_frame: str | None = None
    """Pictures that show the criterion best: last frame of its first witness on either application."""
    evidence_digest: str | None = None
    """Tree digest (bench.tree) of the criterion's evidence folder, so that the journal's chain covers it."""
    flags: list[str] = Field(default_factory=list)
    usage: dict[str, Usage] = Field(default_factory=dict)
    """`judge`, `refuter` and `advocate`, where a model was asked."""
    advocate: AdvocateRecord | None = None
    """Only of FAILs that were drawn for an advocate."""
    duration_s: float = 0.0


class CaseRecord(Strict):
    """The journal's record of one judged case, written after its criteria."""

    type: Literal["case"] = "case"
    case: str
    outcome: CaseOutcome
    reason: str = ""
    submission_digest: str | None = None
    changed_files: int | None = None
    shots: dict[str, str] = Field(default_factory=dict)
    """`start_desktop`, `start_phone`, `submission_desktop`, `submission_phone` → path in the results folder."""
    flags: list[str] = Field(default_factory=list)
    evidence_sha256: str | None = None
    """Of `evidence/CASE/manifest.json`, which has the hash of every file of the case's evidence."""
    duration_s: float = 0.0
