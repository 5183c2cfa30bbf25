"""`evidence/CASE/serving.json`: how start and submission were built and served, phase by phase."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from bench.atomic import write_json
from evaluator.build import BuildResult
from evaluator.records import Strict
from evaluator.serve_plan import ServePlan

SERVING = "serving.json"
TAIL_CHARS = 4_000


class ServePhase(Strict):
    """The last phase: the application's own command or our static server, until it answered with a page."""

    outcome: Literal["served", "serve_failed"]
    deadline_s: float
    duration_s: float
    url: str = ""
    code: str = ""
    reason: str = ""
    log: str = ""
    """The end of what its server wrote, where it failed."""


class AppServing(Strict):
    """One application. `build` and `serve` are null when it did not come to them."""

    plan: ServePlan
    """As it was tried; what it turned out to be is in `build`."""
    changes: str = ""
    """What decides how a submission is served and is not as on the start application: its plan was learned anew."""
    build: BuildResult | None = None
    serve: ServePhase | None = None


class ServingRecord(Strict):
    """The whole file. `start.serve` is null as long as nothing had to be looked at on the start application."""

    schema_: Literal["cdb.serving/1"] = Field("cdb.serving/1", alias="schema")
    start: AppServing | None = None
    submission: AppServing | None = None

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / SERVING, self.model_dump(mode="json", by_alias=True))

    @property
    def flags(self) -> list[str]:
        """What a reader of the case should know: another plan, and what only the submission's build needed."""
        start, own = self.start, self.submission
        if own is None:
            return []
        usual = set(start.build.flags) if start and start.build else set()
        built = [flag for flag in (own.build.flags if own.build else []) if flag not in usual | {"lock_of_start"}]
        return [*(["serve_plan_changed"] if own.changes else []), *built]
