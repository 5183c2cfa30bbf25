"""The seam between a case's evaluation and whoever judges it or attacks what was judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from evaluator.browser import AppBrowser
from evaluator.cases import Case, CriterionText
from evaluator.records import Citation, CriterionPlan, PairRecord, ProvingProbe, Replay, SubRequirement, Usage
from evaluator.witness import Witness

SPOKE = "evaluator_directed_text"
"""Flag of a criterion whose judge met text of the submission that speaks to an evaluator: it forces refutation."""
ADVOCATE = "advocate"
"""The role's name: in the records, and of the folder its evidence goes to."""
Attempt = Callable[[str, Witness], Replay]
"""A judge's hands: runs a witness for a sub-requirement (its id) on the submission and gives what happened."""


@dataclass(frozen=True)
class Claim:
    """What a judge says of one sub-requirement, and the witness that is to show it."""

    sub: str
    holds: bool
    witness: Witness | None
    attempts: tuple[Replay, ...] = ()
    reason: str = ""
    citations: tuple[Citation, ...] = ()
    flags: tuple[str, ...] = ()
    samples: tuple[bool, ...] = ()
    """What each of several samples said; empty for a single one."""


@dataclass(frozen=True)
class Proposal:
    """A judge's answer on one criterion: one claim for each sub-requirement of the plan, in its order."""

    claims: tuple[Claim, ...]
    usage: Usage = field(default_factory=Usage)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refutation:
    """What a refuter says of one claim, and what it offers as evidence.

    `counter`: a program that holds on the submission and shows the fault. `inputs`: values for the claim's own
    witness under which it fails. `citations` with a `probe` (`evaluator.probes`): source that shows the
    fault, and what is to agree with it. Each is replayed by the harness before it counts in the `witnessed` column.
    """

    sub: str
    outcome: Literal["uphold", "downgrade", "inconclusive"]
    reason: str = ""
    counter: Witness | None = None
    inputs: dict[str, str] | None = None
    citations: tuple[Citation, ...] = ()
    probe: ProvingProbe | None = None


@dataclass(frozen=True)
class Attack:
    """A refuter's answer on one criterion: one refutation for each claim it was shown."""

    refutations: tuple[Refutation, ...]
    usage: Usage = field(default_factory=Usage)


class Advocacy(NamedTuple):
    """Which FAILs get an advocate: a `share` between 0 and 1 of them, the same ones for the same seed."""

    share: float = 0.0
    seed: int = 0

    def draws(self, case: str, criterion_index: int) -> bool:
        """By a hash of seed, case and criterion: the same for every entry, and in every order of work."""
        digest = hashlib.sha256(f"{self.seed}:{case}:{criterion_index}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < self.share * 2**64


NO_ADVOCATE = Advocacy()


class JudgeError(Exception):
    """The judge gave nothing usable for a criterion; it stays unscored. The message says why."""

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.usage = usage or Usage()
        self.role: Literal["judge", "refuter"] = "judge"
        """Whose conversation it was."""


class RefuterError(JudgeError):
    """The refuter gave nothing usable: the criterion is `unverified`, never silently credited."""

    def __init__(self, reason: str, usage: Usage | None = None) -> None:
        super().__init__(reason, usage)
        self.role = "refuter"


class OutOfBudget(JudgeError):
    """A cap of the judging was reached; the criterion is unscored with outcome `budget`."""


class BrokenOff(JudgeError):
    """The machine or the browser failed during a conversation; the criterion is unscored with `infra_error`."""


class Running(Protocol):
    """Both applications of a case, each in a browser."""

    @property
    def submission(self) -> AppBrowser: ...

    @property
    def start(self) -> AppBrowser: ...


@dataclass(frozen=True)
class Exhibits:
    """What may be looked at in one case. Nothing in it says who made the submission.

    `shots`: `start_desktop`, `submission_desktop` … → picture. `folder`: where the case's evidence goes.
    `digests`: an attachment's path → the folder with its digest, as `cdb prepare` made it.
    """

    case: Case
    submission: Path
    start: Path
    running: Running
    folder: Path
    shots: dict[str, Path] = field(default_factory=dict)
    digests: dict[str, Path] = field(default_factory=dict)


class CriterionJudge(Protocol):
    """Judges criteria of one case, one at a time and in the case's own thread."""

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        """One claim for each sub-requirement of `plan`, in its order. Raises JudgeError or OutOfBudget."""


@runtime_checkable
class PairJudge(Protocol):
    """A judge that can be shown two pictures, of which it is not told which is which."""

    @property
    def sees(self) -> bool:
        """Whether pictures reach it."""

    def pair(
        self,
        case: Case,
        criterion: CriterionText,
        plan: CriterionPlan,
        sub: SubRequirement,
        pair: tuple[bytes, bytes],
    ) -> tuple[PairRecord, Usage]:
        """Which of `pair`, start and submission, fulfils the part, asked in both orders. Raises JudgeError."""


class CriterionRefuter(Protocol):
    """Attacks credited claims of one case. It sees claims and witnesses, never a judge's reasons."""

    @property
    def only_flagged(self) -> bool:
        """Asked only where the submission speaks to an evaluator: the scan forces what nobody wished for."""

    def refute(
        self, case: Case, criterion: CriterionText, plan: CriterionPlan, claims: tuple[Claim, ...], attempt: Attempt
    ) -> Attack:
        """One refutation for each of `claims`. Raises RefuterError or OutOfBudget."""


class Judge(Protocol):
    """May be called from several threads, one for each case."""

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str | None: ...

    def describe(self) -> dict[str, Any]:
        """Everything that can change a verdict, for the judging's lock."""

    def check(self) -> None:
        """Before anything is built or spent: one cheap look whether the judge can work. Raises UsageError."""

    def carry(self, criteria: Sequence[dict[str, Any]]) -> None:
        """Journal records of earlier calls of the same judging: what they spent counts."""

    def stop(self) -> None:
        """The run was asked to stop: whoever waits for a model waits no more."""

    def close(self) -> None:
        """The judging is over: give back what is held for it."""

    def in_case(self, exhibits: Exhibits) -> CriterionJudge:
        """The same judge with one case before it."""


class Refuter(Protocol):
    """A judge's opponent; see `Judge`."""

    def describe(self) -> dict[str, Any]: ...

    def check(self) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def in_case(self, exhibits: Exhibits) -> CriterionRefuter: ...
