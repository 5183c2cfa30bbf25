"""`cases.json`: everything a judging needs to know of each case, made by `cdb prepare`. Paths are relative to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from bench.atomic import write_json
from bench.errors import DataError, UsageError
from bench.outcomes import TRIAL
from bench.strict_json import read_json
from evaluator.records import CaseOutcome, CriterionPlan, Strict
from evaluator.serve_plan import ServePlan


class CriterionText(Strict):
    """A criterion as the rubric has it."""

    criterion_index: int
    rubric_id: str
    criterion: str


class AttachmentFacts(Strict):
    """One attachment: path below the application, kind, size and hash; the folder with its digest (`cdb.digest/1`)
    and that folder's tree digest, None in a file made before there were digests."""

    path: str
    kind: str
    bytes: int
    sha256: str
    digest: str | None = None
    digest_sha256: str | None = None


class SubmissionFacts(Strict):
    """A sealed submission. `outcome` is its trial's, or "made elsewhere"."""

    folder: str
    digest: str
    changed_files: int
    outcome: str
    flags: list[str] = Field(default_factory=list)


class TrialFacts(Strict):
    """What the solve run's journal says of a case that left no submission."""

    outcome: str
    reason: str
    digest: str | None = None
    """Digest of what the trial sealed; None when it sealed nothing."""


class Case(Strict):
    """One case to judge. `submission` None: there is none, and `trial` says why when a run of ours made the entry."""

    case: str
    outcome: CaseOutcome = "ok"
    """What is known before judging: `ok` (there is a submission), `unchanged`, `missing`, or `infra_error` when
    its trial failed for infrastructure's sake. Follows from `submission` and `trial`."""
    title: str | None = None
    request: str
    attachment: str
    attachments: list[AttachmentFacts]
    annotation: str | None
    project: str
    start_digest: str
    serve_plan: ServePlan | None
    serve_plan_error: str = ""
    criteria: list[CriterionText]
    rubric_error: str = ""
    """Why the rubric could not be read; the case has no criteria then and stays unscored."""
    plan: list[CriterionPlan]
    planned: bool
    submission: SubmissionFacts | None = None
    trial: TrialFacts | None = None

    @model_validator(mode="after")
    def _outcome_follows(self) -> Case:
        if self.submission:
            self.outcome = "ok" if self.submission.changed_files else "unchanged"
        else:
            unscored = self.trial and TRIAL[self.trial.outcome].counts == "unscored"
            self.outcome = "infra_error" if unscored else "missing"
        return self


class Cases(Strict):
    """The whole file."""

    schema_: Literal["cdb.cases/1"] = Field("cdb.cases/1", alias="schema")
    dataset: dict[str, Any]
    scope: dict[str, Any]
    entry: dict[str, Any]
    solve: dict[str, Any] = Field(default_factory=dict)
    """Under what the submissions were made, from the solve run's lock; empty for those made elsewhere."""
    plans_sha256: str
    cases: list[Case]


def read_cases(path: Path) -> Cases:
    """Raises UsageError when there is no such file, DataError when it is not a cases.json."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist; make it with `cdb prepare --dataset … --submissions … --out …`")
    try:
        return Cases.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path} is no cdb.cases/1 file: {error}; make it again with `cdb prepare`") from error


def write_cases(cases: Cases, path: Path) -> None:
    write_json(path, cases.model_dump(mode="json", by_alias=True))


def moved(cases: Cases, source: Path, target: Path) -> Cases:
    """The same cases with every path made relative to folder `target` instead of `source`."""

    def move(path: str) -> str:
        return relative(source / path, target)

    changed = []
    for case in cases.cases:
        update: dict[str, Any] = {
            "project": move(case.project),
            "attachments": [
                one.model_copy(update={"digest": one.digest and move(one.digest)}) for one in case.attachments
            ],
        }
        if case.annotation:
            update["annotation"] = move(case.annotation)
        if case.submission:
            update["submission"] = case.submission.model_copy(update={"folder": move(case.submission.folder)})
        changed.append(case.model_copy(update=update))
    return cases.model_copy(update={"cases": changed})


def what_is_judged(cases: Cases) -> dict[str, Any]:
    """The part of a judging's lock that follows from its cases: judgings of the same things agree on all of it."""
    by_hand = {
        c.case: c.serve_plan.model_dump(mode="json") for c in cases.cases if c.serve_plan and c.serve_plan.by_hand
    }
    return {
        **({"serve_plans_by_hand": by_hand} if by_hand else {}),
        "dataset": cases.dataset,
        "scope": cases.scope,
        "entry": cases.entry,
        "plans_sha256": cases.plans_sha256,
        "submissions": {c.case: c.submission.digest if c.submission else None for c in cases.cases},
    }


def relative(path: Path, folder: Path) -> str:
    """`path` as seen from `folder`, so that a run can be moved as a whole."""
    return os.path.relpath(path.resolve(), folder.resolve())
