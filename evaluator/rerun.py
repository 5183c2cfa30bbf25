"""`cdb replay`: run a judged criterion's witnesses again from the results folder. No judge, no key."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

from bench.cache import cache_folder
from bench.errors import DataError, UsageError
from bench.journal import of_type, read_journal
from bench.strict_json import read_json
from bench.submission import check_seal, read_manifest
from bench.tree import digest, list_tree
from evaluator.adjudicate import decide_whole
from evaluator.applications import Bench, NotServed, running_applications
from evaluator.cases import Case, CriterionText, read_cases
from evaluator.criterion import judge_criterion
from evaluator.frozen_store import FrozenStore, open_store
from evaluator.judges.judge import Attack, Attempt, Claim, Exhibits, Proposal, Refutation
from evaluator.judges.recorded import tried
from evaluator.probes.facts import Ground
from evaluator.recon import look
from evaluator.records import (
    CriterionPlan,
    CriterionRecord,
    PairRecord,
    ProvingProbe,
    RefutationRecord,
    SubRequirement,
    SubResult,
    Usage,
)
from evaluator.replay.likeness import likeness, read_picture
from evaluator.sidecar import playwright_driver
from evaluator.stage import Stage
from evaluator.witness import Witness, load_witness
from sandboxes.mirror import Mirror

ALIKE = 0.9
"""From this likeness on (`evaluator.replay.likeness`) a picture taken again is the one that was judged."""


@dataclass(frozen=True)
class Rerun:
    """What was recorded, what came out now, and what else is worth saying."""

    recorded: CriterionRecord
    now: CriterionRecord
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return self.now.verdict == self.recorded.verdict


def rerun(results: Path, case_id: str, criterion_index: int, frozen: Path | None = None) -> Rerun:
    """Replay every witness of one criterion on the submission as it lies there now, and on the start application.

    Evidence goes to a temporary folder; `results` is not written to. Raises UsageError for an unknown criterion or
    one without a verdict, DataError when the submission's seal is broken, InfraError.
    """
    cases = read_cases(results / "cases.json")
    case = next((c for c in cases.cases if c.case == case_id), None)
    if case is None:
        raise UsageError(f"no case {case_id!r} in {results}; known: {', '.join(c.case for c in cases.cases[:8])} …")
    store = _same_store(results, frozen)
    recorded = _recorded(results, case, criterion_index)
    notes = [*_seal_notes(results, case), *_evidence_notes(results, recorded)]
    judge = _Recorded(results, recorded)
    with tempfile.TemporaryDirectory(prefix="cdb-replay-") as scratch:
        now = _judged_again(case, recorded, judge, results, Path(scratch), store)
    return Rerun(recorded, now, tuple(notes))


@dataclass(frozen=True)
class _Recorded:
    """A judge that proposes again what the journal's record holds."""

    results: Path
    record: CriterionRecord
    name: str = "replay"
    model: str | None = None
    only_flagged: bool = False

    def describe(self) -> dict[str, Any]:
        return {"kind": "replay"}

    def check(self) -> None:
        """There is nothing that could be missing."""

    def carry(self, criteria: Sequence[dict[str, Any]]) -> None:
        """Nothing is spent."""

    def stop(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Nothing is held."""

    def in_case(self, exhibits: Exhibits) -> _Recorded:
        return self

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        claims = []
        for sub in self.record.sub_requirements:
            if sub.witness is None:  # a claim that a blind pair stands for, or one that nothing shows
                claims.append(Claim(sub.id, holds=sub.pair is not None and sub.proposed, witness=None))
                continue
            claim = tried(sub.id, self._kept(sub.witness, sub.witness_sha256), attempt)
            claim = replace(claim, citations=tuple(sub.citations))
            if not sub.proposed and _held(sub):  # it held when it was judged, too, and the judge said no
                claim = replace(claim, holds=False)
            claims.append(claim)
        return Proposal(tuple(claims))

    @property
    def sees(self) -> bool:
        """The choice that was made is kept, so it needs no eyes; what is looked at is whether the pictures are."""
        return True

    def pair(
        self,
        case: Case,
        criterion: CriterionText,
        plan: CriterionPlan,
        sub: SubRequirement,
        pair: tuple[bytes, bytes],
    ) -> tuple[PairRecord, Usage]:
        """The recorded choice, as long as both applications look as they did when it was made."""
        kept = next(one.pair for one in self.record.sub_requirements if one.id == sub.id)
        if kept is None or len(kept.pictures) != 2:
            return PairRecord(outcome="not_asked", reasons=["no pair was recorded"]), Usage()
        for name, now in zip(kept.pictures, pair, strict=True):
            then = self.results / name
            if not then.is_file():
                raise UsageError(f"{then} is gone; it is needed for a replay")
            alike = likeness(read_picture(then.read_bytes()), read_picture(now))
            if alike < ALIKE:
                why = f"{Path(name).stem} does not look as it did: likeness {alike:.2f}"
                return PairRecord(outcome="not_asked", reasons=[why]), Usage()
        return kept, Usage()

    def refute(
        self, case: Case, criterion: CriterionText, plan: CriterionPlan, claims: tuple[Claim, ...], attempt: Attempt
    ) -> Attack:
        """The refuter's recorded word, with its evidence to be replayed."""
        subs = {sub.id: sub for sub in self.record.sub_requirements}
        found = []
        for claim in claims:
            told = subs[claim.sub].refutation
            if told is None:
                found.append(Refutation(claim.sub, "inconclusive"))
                continue
            counter = self._kept(told.counter_witness, told.counter_sha256) if told.counter_witness else None
            probe = _proving(told)
            cited = tuple(told.citations)
            found.append(Refutation(claim.sub, told.outcome, told.reason, counter, told.inputs, cited, probe))
        return Attack(tuple(found))

    def _kept(self, name: str, sha256: str | None) -> Witness:
        witness = load_witness(self.results / name)
        if sha256 and witness.digest() != sha256:
            raise DataError(f"{self.results / name} is not the witness that was judged; put it back")
        return witness


def _proving(told: RefutationRecord) -> ProvingProbe | None:
    if told.probe is None:
        return None
    if told.probe.probe not in get_args(ProvingProbe):
        raise DataError(
            f"the journal names the probe {told.probe.probe!r}; known: {', '.join(get_args(ProvingProbe))}"
        )
    return cast("ProvingProbe", told.probe.probe)


def _held(sub: SubResult) -> bool:
    return any(run.purpose == "propose" and run.outcome == "held" for run in sub.replays)


def _same_store(results: Path, frozen: Path | None) -> FrozenStore | None:
    """The frozen resources that the judging had. Raises UsageError when they are not given, or are others."""
    lock = results / "lock.json"
    content = read_json(lock) if lock.is_file() else {}
    wanted = content.get("conditions", {}).get("frozen")
    if wanted is None and frozen is None:
        return None
    store = open_store(frozen) if frozen else None
    if store is None or store.digest != wanted:
        told = f"the store {wanted}" if wanted else "no frozen resources"
        raise UsageError(f"{results} was judged with {told}; pass the same with --frozen")
    return store


def _judged_again(
    case: Case,
    recorded: CriterionRecord,
    judge: _Recorded,
    results: Path,
    scratch: Path,
    frozen: FrozenStore | None,
) -> CriterionRecord:
    position = next(i for i, c in enumerate(case.criteria) if c.criterion_index == recorded.criterion_index)
    criterion, plan = case.criteria[position], case.plan[position]
    if not recorded.sub_requirements and _unchanged(results, case):
        return recorded.model_copy(update={"columns": decide_whole("FAIL", "unchanged"), "verdict": "FAIL"})
    with Mirror() as mirror, playwright_driver() as driver:
        bench = Bench(
            run=f"replay-{results.name}",
            cases_folder=results,
            results=results,
            start_builds=cache_folder("builds"),
            judge=judge,
            mirror=mirror,
            built=_built(results, case, scratch),
            logs=scratch / "logs",
            start_replays=scratch / "start",
            frozen=frozen,
        )
        try:
            with running_applications(case, bench, driver) as applications:
                assert case.submission is not None  # else nothing runs
                trees = results / case.submission.folder, results / case.project
                folder = scratch / f"{recorded.criterion_index:02d}"
                stage = Stage(applications, scratch, folder, ground=Ground(applications, *trees, folder / "probe"))
                if not recorded.sub_requirements:
                    look(applications, scratch, scratch / "look", [])  # raises NotServed while the page hangs
                    return recorded.model_copy(update={"verdict": None, "reason": "the application runs now"})
                return judge_criterion(case, criterion, plan, judge, stage, judge)
        except NotServed as error:
            update = {"columns": decide_whole("FAIL", error.outcome), "verdict": "FAIL", "reason": str(error)}
            return recorded.model_copy(update=update)


def _built(results: Path, case: Case, scratch: Path) -> Path:
    """The judged submission's build while it is the same tree (no registry is needed then), else a fresh place."""
    if case.submission is None or digest(list_tree(results / case.submission.folder)) != case.submission.digest:
        return scratch / "built"
    return results / "built"


def _recorded(results: Path, case: Case, criterion_index: int) -> CriterionRecord:
    found = None
    for record in of_type(read_journal(results / "journal.jsonl").records, "criterion"):
        if (record["case"], record["criterion_index"]) != (case.case, criterion_index):
            continue
        if found is None or (found["verdict"] is None and record.get("supersedes") == found["seq"]):
            found = record  # the rule by which scoring chooses
    if found is None:
        known = ", ".join(str(c.criterion_index) for c in case.criteria)
        raise UsageError(f"no verdict on {case.case} criterion {criterion_index} in {results}; criteria: {known}")
    kept = {key: value for key, value in found.items() if key in CriterionRecord.model_fields}
    criterion = CriterionRecord.model_validate(kept)
    if criterion.verdict is None:
        raise UsageError(
            f"{case.case} criterion {criterion_index} was not decided ({criterion.outcome}): {criterion.reason}"
        )
    return criterion


def _seal_notes(results: Path, case: Case) -> list[str]:
    """Check the seal; say so when the tree is another one than was judged."""
    if case.submission is None:
        return []
    folder = results / case.submission.folder
    for needed in (folder, results / case.project):
        if not needed.is_dir():
            raise UsageError(f"{needed} is gone; results refer to submissions and dataset: move them back together")
    manifest = read_manifest(folder.parent, case.case)
    if manifest is None:
        return [f"{folder} has no seal beside it; what lies there now is replayed"]
    check_seal(folder.parent, manifest)
    if manifest.digest != case.submission.digest:
        return [f"{folder} was sealed anew: it is not the tree that was judged; what lies there now is replayed"]
    return []


def _evidence_notes(results: Path, recorded: CriterionRecord) -> list[str]:
    """Whether the pictures and witnesses that lie there are those the journal speaks of."""
    folder = results / "evidence" / recorded.case / f"{recorded.criterion_index:02d}"
    if recorded.evidence_digest is None:
        return []
    if not folder.is_dir():
        return [f"{folder} is gone; the witnesses are needed for a replay"]
    if digest(list_tree(folder)) != recorded.evidence_digest:
        return [f"{folder} is not the evidence that was recorded: files were changed, added or removed"]
    return []


def _unchanged(results: Path, case: Case) -> bool:
    if case.submission is None:
        return False
    return digest(list_tree(results / case.submission.folder)) == case.start_digest
