"""A small case on disk, a stage without a browser, and judges over the scripted model server's real HTTP protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from fakes.model_server import ModelServer

from evaluator.cases import Case, CriterionText, SubmissionFacts
from evaluator.criterion import judge_criterion
from evaluator.judges.judge import Exhibits
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.litellm_chat import LiteLlmChat
from evaluator.judges.model.refuter import ModelRefuter
from evaluator.judges.model.settings import Caps, ModelSettings
from evaluator.probes.facts import Ground
from evaluator.records import CriterionPlan, CriterionRecord, Replay, SubRequirement
from evaluator.stage import Stage
from evaluator.witness import Witness

START = {
    "index.html": "<h1>Shop</h1>\n<script src=app.js></script>\n",
    "app.js": "function total(items) {\n  return items.length;\n}\n",
    "_attachments/notes.txt": "Delivery costs 6.90 below 60.\n",
}
SUBMISSION = START | {
    "index.html": "<h1>Shop</h1>\n<p id=saved>Saved</p>\n<script src=app.js></script>\n",
    "app.js": "function total(items) {\n  return items.reduce((sum, item) => sum + item.price, 0);\n}\n",
}
TEXT = CriterionText(criterion_index=1, rubric_id="r1", criterion="The total follows the prices.")
HELD = {"schema": "cdb.witness/1", "steps": [{"expect": "text", "target": {"css": "#saved"}, "contains": "Saved"}]}
BROKEN = {"schema": "cdb.witness/1", "steps": [{"expect": "visible", "target": {"css": "#broken"}}]}


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


class NoBrowser:
    """Applications of a unit test: nobody may open a page."""

    @property
    def submission(self) -> Any:
        raise AssertionError("this test has no browser")

    start = submission


@dataclass
class FakeStage:
    """Stands for both applications. `outcomes`: (digest or *, purpose) → what a run gives; default as a right
    application behaves: witnesses hold on the submission unless they name `#broken`, and fail on the start."""

    results: Path
    runs: list[tuple[str, str]] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)
    """Purposes whose runs fail."""
    folder: Path = Path()
    ground: Ground | None = None

    def __post_init__(self) -> None:
        if self.folder == Path():
            self.folder = self.results / "evidence" / "shop" / "01"

    def run(self, witness: Witness, label: str, purpose: Any, inputs: dict[str, str] | None = None) -> Replay:
        self.runs.append((label, purpose))
        broken = "#broken" in witness.model_dump_json() or purpose in self.fails
        return Replay(
            app="submission", purpose=purpose, inputs=inputs or {}, outcome="failed" if broken else "held",
            reason="there is no such element on the page" if broken else "",
        )  # fmt: skip

    def run_on_start(self, _witness: Witness, label: str) -> Replay:
        self.runs.append((label, "vacuity"))
        return Replay(app="start", purpose="vacuity", outcome="failed")


@dataclass
class Desk:
    """One case and what judges it; `judged` gives the criterion's record."""

    server: ModelServer
    root: Path
    stage: FakeStage
    files: dict[str, str] = field(default_factory=lambda: dict(SUBMISSION))
    subs: tuple[tuple[str, bool], ...] = (("a", True),)
    caps: Caps = field(default_factory=Caps)
    settings: dict[str, Any] = field(default_factory=dict)
    kind: str = "behaviour"
    samples: int = 1

    @property
    def case(self) -> Case:
        return Case.model_validate(
            {
                "case": "shop", "request": "Let the total follow the prices.", "attachment": "document",
                "attachments": [{"path": "_attachments/notes.txt", "kind": "document", "bytes": 30, "sha256": "0"}],
                "annotation": None, "project": "start", "start_digest": "sha256:0", "serve_plan": None,
                "criteria": [TEXT.model_dump()], "plan": [self.plan.model_dump()], "planned": True,
                "submission": SubmissionFacts(
                    folder="runs/secret-agent__secret-model__1/submissions/shop", digest="sha256:1", changed_files=2,
                    outcome="ok",
                ).model_dump(),
            }
        )  # fmt: skip

    @property
    def plan(self) -> CriterionPlan:
        parts = [SubRequirement(id=name, text=f"part {name}", core=core) for name, core in self.subs]
        return CriterionPlan(criterion_index=1, kind=cast(Any, self.kind), sub_requirements=parts)

    def exhibits(self) -> Exhibits:
        submission = self.root / "runs/secret-agent__secret-model__1/submissions/shop"
        return Exhibits(
            case=self.case, submission=write_tree(submission, self.files),
            start=write_tree(self.root / "start", START), running=NoBrowser(),
            folder=self.root / "results/evidence/shop",
        )  # fmt: skip

    def chat(self, model: str = "openai/scripted") -> LiteLlmChat:
        base = self.server.address + ("/v1" if model.startswith("openai/") else "")
        given = {"api_base": base, "key_env": "CDB_TEST_KEY", "patience_s": 5, "call_timeout_s": 10, "vision": False}
        return LiteLlmChat(ModelSettings(model=model, **given | self.settings))

    def judged(self, refuter: bool = False, model: str = "openai/scripted") -> CriterionRecord:
        ledger = Ledger(self.caps)
        exhibits = self.exhibits()
        self.stage.ground = Ground(exhibits.running, exhibits.submission, exhibits.start, self.stage.folder / "probe")
        judge = ModelJudge("litellm", self.chat(model), ledger, samples=self.samples).in_case(exhibits)
        opponent = ModelRefuter(self.chat("openai/refuter"), ledger).in_case(exhibits) if refuter else None
        return judge_criterion(self.case, TEXT, self.plan, judge, cast(Stage, self.stage), opponent)

    def bodies(self, model: str = "scripted") -> list[dict[str, Any]]:
        """What arrived for one model, in order."""
        found = [json.loads(r["body"]) for r in self.server.requests() if r["method"] == "POST"]
        return [body for body in found if body.get("model") == model]
