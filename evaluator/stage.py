"""Where the witnesses of one criterion run: on submission and start, again where the machine failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.errors import InfraError
from evaluator.applications import Applications
from evaluator.browser import AppBrowser
from evaluator.evidence.recorder import VisitRecorder
from evaluator.probes.facts import Ground
from evaluator.records import Purpose, Replay
from evaluator.replay import RUN_S, TIME_OVER, run_witness
from evaluator.witness import Witness

TRIES = 2
"""How often a witness is run when the browser broke under it, or when it failed while everything was slow."""
SLOW_OPEN_MS = 1_500
"""A page that takes this long to open says that the machine is busy (0.3 to 0.5 s at rest on 2 cores)."""
SLOW_PATIENCE = 4.0
"""By how much every deadline of the second run is stretched."""


class ReplayError(InfraError):
    """Browser or machine broke under a witness, or its time was over, twice in a row. `purpose`: what it ran for."""

    def __init__(self, purpose: Purpose, reason: str) -> None:
        super().__init__(f"the browser failed during the {purpose} run: {reason}")
        self.purpose = purpose


@dataclass(frozen=True)
class Stage:
    """Where one witness may run, and where its evidence goes. `folder` lies below `results`.

    `records_visits`: a HAR and a trace are kept of every run that is pictured."""

    applications: Applications
    results: Path
    folder: Path
    records_visits: bool = False
    ground: Ground | None = None
    """Where probes may look; without it a refuter's citations are its bare word."""

    def run(self, witness: Witness, label: str, purpose: Purpose, inputs: dict[str, str] | None = None) -> Replay:
        """Run a witness on the submission. Raises ReplayError when the browser broke twice."""
        pictures = self.folder / f"{label}-{purpose}" if purpose == "propose" else None
        reference = None
        if witness.compares_with_start:
            reference = self.run_on_start(witness.with_inputs(inputs) if inputs else witness, label).readings
        return self._run(self.applications.submission, witness, "submission", purpose, pictures, inputs, reference)

    def run_on_start(self, witness: Witness, label: str) -> Replay:
        """What the witness does on the start application: taken over where it was seen before, else run now."""
        pictures = self.folder / f"{label}-vacuity"
        kept = self.applications.start_seen.replay(witness.digest(), self.results, pictures)
        if kept is None:
            kept = self._run(self.applications.start, witness, "start", "vacuity", pictures, None)
            self.applications.start_seen.keep_replay(witness.digest(), kept, self.results)
        return kept

    def _run(
        self,
        browser: AppBrowser,
        witness: Witness,
        app: Literal["submission", "start"],
        purpose: Purpose,
        pictures: Path | None,
        inputs: dict[str, str] | None,
        reference: dict[str, str] | None = None,
    ) -> Replay:
        patience = 1.0  # on the start as on the submission: a slow start must not look like one without the change
        for _ in range(TRIES):
            if self.records_visits and pictures:
                browser.recorder = VisitRecorder(pictures.with_name(f"{pictures.name}-visit"))
            replay = run_witness(
                browser,
                witness,
                app=app,
                purpose=purpose,
                inputs=inputs,
                frames_dir=pictures,
                results_root=self.results,
                patience=patience,
                deadline_s=RUN_S * patience,
                reference=reference,
            )
            browser.recorder = None
            if replay.outcome == "held" or (replay.outcome == "failed" and not _was_slow(replay)):
                return replay
            patience = SLOW_PATIENCE
        if replay.outcome != "error":
            return replay
        # A witness that needs more time than there is says nothing about the application.
        if app == "start" or replay.reason.endswith(TIME_OVER) or not browser.answers():
            raise ReplayError(purpose, replay.reason)
        reason = f"the application broke the page twice while the browser worked: {replay.reason}"
        return replay.model_copy(update={"outcome": "failed", "reason": reason})


def _was_slow(replay: Replay) -> bool:
    """Whether a failure may be the machine's: such a run is done again with more patience, and that one counts."""
    return bool(replay.steps) and replay.steps[0].ms > SLOW_OPEN_MS
