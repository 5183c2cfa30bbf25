"""What a refuter offers as evidence, replayed: its word alone takes nothing from the `witnessed` column."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from bench.atomic import write_json
from evaluator.judges.judge import Claim, Refutation
from evaluator.probes.facts import Ground
from evaluator.probes.proving import proved
from evaluator.records import ProbeFacts, Purpose, RefutationRecord, Replay
from evaluator.witness import Witness

MOST_RUNS = 3
"""Two runs, and a third when they disagree."""


class Run(Protocol):
    """Runs a witness on the submission."""

    def __call__(
        self, witness: Witness, label: str, purpose: Purpose, inputs: dict[str, str] | None = None
    ) -> Replay: ...


def replayed_evidence(refutation: Refutation, claimed: Witness | None, run: Run, folder: Path) -> list[Replay]:
    """Runs of the counter-witness, or of the claim's witness with the refuter's inputs; none of a bare word.

    The counter-witness is written to `folder`. Raises what `run` raises."""
    name = refutation.sub
    runs: list[Replay] = []
    if refutation.counter:
        write_json(_file(folder, name), refutation.counter.model_dump(mode="json", by_alias=True))
        while len(runs) < MOST_RUNS and not _settled(runs):
            runs.append(run(refutation.counter, f"{name}-counter", "counter"))
    elif refutation.inputs and claimed:
        while len(runs) < MOST_RUNS and not _settled(runs):
            runs.append(run(claimed, f"{name}-attack", "attack", dict(refutation.inputs)))
    return runs


def probed_evidence(refutation: Refutation, claim: Claim, ground: Ground) -> ProbeFacts | None:
    """What the probe that is to agree with the refuter's citations finds; None without one, or when no citation is
    in the submission."""
    if not (refutation.probe and refutation.citations and claim.witness):
        return None
    return proved(ground, refutation.probe, claim.witness, refutation.citations, claim.citations)


def refutation_record(told: Refutation, probe: ProbeFacts | None, folder: Path, results: Path) -> RefutationRecord:
    """What the journal keeps of it; the counter-witness only where it was replayed."""
    kept = told.counter if told.outcome == "downgrade" else None
    return RefutationRecord(
        outcome=told.outcome,
        reason=told.reason,
        counter_witness=str(_file(folder, told.sub).relative_to(results)) if kept else None,
        counter_sha256=kept.digest() if kept else None,
        inputs=told.inputs,
        citations=list(told.citations),
        probe=probe,
    )


def _file(folder: Path, sub: str) -> Path:
    return folder / f"{sub}.counter.json"


def _settled(runs: list[Replay]) -> bool:
    return len(runs) == 2 and len({run.outcome for run in runs}) == 1
