"""The judge without a model: recorded witnesses, really run. What holds is claimed, nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench.errors import DataError
from bench.strict_json import read_json
from evaluator.cases import Case, CriterionText
from evaluator.judges.judge import Attempt, Claim, Exhibits, JudgeError, Proposal
from evaluator.records import CriterionPlan, Strict
from evaluator.witness import Witness

SAMPLE = Path(__file__).parent.parent / "sample" / "cases"


class RecordedWitness(Strict):
    """One line of `witnesses.json`."""

    criterion_index: int
    sub: str
    witness: Witness


class RecordedWitnesses(Strict):
    """`CASE/witnesses.json`: the recorded witnesses of one case."""

    case: str
    witnesses: list[RecordedWitness]


@dataclass(frozen=True)
class RecordedJudge:
    """Reads `folder/CASE/witnesses.json`; by default those of the sample release."""

    folder: Path = SAMPLE
    name: str = "recorded"
    model: str | None = None

    def describe(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for path in sorted(self.folder.glob("*/witnesses.json")):
            digest.update(path.parent.name.encode() + b"\0" + path.read_bytes())
        return {"kind": "recorded", "witnesses_sha256": digest.hexdigest()}

    def check(self) -> None:
        """There is nothing that could be missing."""

    def carry(self, criteria: Sequence[dict[str, Any]]) -> None:
        """Nothing is spent."""

    def stop(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """Nothing is held."""

    def in_case(self, exhibits: Exhibits) -> RecordedJudge:
        return self

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        recorded = self.witnesses(case.case)
        if not any(key[0] == criterion.criterion_index for key in recorded):
            raise JudgeError(f"no recorded witness for criterion {criterion.criterion_index} of {case.case}")
        claims: dict[str, Claim] = {}
        lost = False
        for sub in sorted(plan.sub_requirements, key=lambda sub: not sub.core):
            witness = recorded.get((criterion.criterion_index, sub.id))
            if witness is None or lost:
                why = "not tried: a core part is not met, which decides the criterion" if lost else ""
                claims[sub.id] = Claim(sub.id, holds=False, witness=None, reason=why)
            else:
                claims[sub.id] = tried(sub.id, witness, attempt)
            lost = lost or (sub.core and not claims[sub.id].holds)
        return Proposal(tuple(claims[sub.id] for sub in plan.sub_requirements))

    def witnesses(self, case: str) -> dict[tuple[int, str], Witness]:
        """A case's witnesses by criterion and sub-requirement. Raises JudgeError when there are none."""
        return _witnesses(self.folder / case / "witnesses.json")


def tried(sub: str, witness: Witness, attempt: Attempt) -> Claim:
    """What holds is claimed."""
    replay = attempt(sub, witness)
    return Claim(sub, holds=replay.outcome == "held", witness=witness, attempts=(replay,))


@cache
def _witnesses(path: Path) -> dict[tuple[int, str], Witness]:
    if not path.is_file():
        raise JudgeError(f"the recorded judge has no witnesses for this case ({path}); use a judge with a model")
    try:
        found = RecordedWitnesses.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path}: {error}") from error
    return {(line.criterion_index, line.sub): line.witness for line in found.witnesses}
