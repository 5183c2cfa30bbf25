"""What a probe found, and what it may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluator.browser import AppBrowser
from evaluator.judges.judge import Running
from evaluator.records import Replay, Strict
from evaluator.replay import run_witness
from evaluator.witness import Witness

Finding = Literal["against", "nothing", "unclear"]


class ProbeFacts(Strict):
    """One probe's findings on one claim.

    `finding`: `against` (what was seen speaks against the claim), `nothing` (it does not), `unclear` (it could not
    be told). `facts` are sentences; `pictures` paths below the case's evidence folder. `visits`: pages opened."""

    probe: str
    sub: str = ""
    finding: Finding
    facts: list[str] = Field(default_factory=list)
    pictures: list[str] = Field(default_factory=list)
    visits: int = 0


@dataclass(frozen=True)
class Ground:
    """Both applications, running and as trees, and a folder for pictures."""

    running: Running
    submission: Path
    start: Path
    folder: Path

    def run(self, witness: Witness, *, on_start: bool = False, **how: object) -> Replay:
        """One run of a witness; `how` as run_witness takes it. A witness that compares gets its readings first."""
        browser: AppBrowser = self.running.start if on_start else self.running.submission
        if witness.compares_with_start and not on_start:
            how = {"reference": self.run(witness, on_start=True).readings, **how}
        return run_witness(
            browser,
            witness,
            app="start" if on_start else "submission",
            purpose="vacuity" if on_start else "attack",
            frames_dir=None,
            results_root=self.folder,
            **how,  # type: ignore[arg-type]
        )


def from_runs(probe: str, runs: Sequence[tuple[str, Replay]]) -> ProbeFacts:
    """Runs that all have to hold: one that fails speaks against the claim, one that broke leaves it unclear."""
    outcomes = {replay.outcome for _, replay in runs}
    finding: Finding = "against" if "failed" in outcomes else "unclear" if "error" in outcomes else "nothing"
    said = [f"{name}: {replay.outcome}" + (f": {replay.reason}" if replay.reason else "") for name, replay in runs]
    return ProbeFacts(probe=probe, finding=finding, facts=said, visits=len(runs))
