"""What a probe found, and what it may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.browser import AppBrowser
from evaluator.judges.judge import Running
from evaluator.records import ProbeFacts, ProbeFinding, Replay
from evaluator.replay import run_witness
from evaluator.witness import Witness


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
    finding: ProbeFinding = "against" if "failed" in outcomes else "unclear" if "error" in outcomes else "nothing"
    said = [f"{name}: {replay.outcome}" + (f": {replay.reason}" if replay.reason else "") for name, replay in runs]
    return ProbeFacts(probe=probe, finding=finding, facts=said, visits=len(runs))
