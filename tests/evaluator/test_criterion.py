"""How one criterion is worked on: which runs are made, in which order, and when no more are needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from evaluator.cases import Case, CriterionText
from evaluator.criterion import judge_criterion
from evaluator.judges.judge import Attempt, Claim, Proposal
from evaluator.judges.recorded import tried
from evaluator.records import CriterionPlan, CriterionRecord, Replay, SubRequirement
from evaluator.stage import Stage
from evaluator.start_replays import StartReplays
from evaluator.witness import Witness

TEXT = CriterionText(criterion_index=1, rubric_id="r1", criterion="It adds.")


def witness(name: str, *, vary: list[dict[str, str]] | None = None) -> Witness:
    steps = [{"expect": "text", "target": {"css": f"#{name}"}, "contains": "${n}"}]
    return Witness.model_validate(
        {"schema": "cdb.witness/1", "inputs": {"n": "1"}, "vary": vary or [], "steps": steps}
    )


@dataclass
class Applications:
    """Stands for both applications: `fails` names the runs (sub, purpose) that do not hold. Notes every run."""

    results: Path
    fails: set[tuple[str, str]] = field(default_factory=set)
    runs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.results

    def run(self, _witness: Witness, label: str, purpose: Any, inputs: dict[str, str] | None = None) -> Replay:
        return self._ran(label, purpose, inputs or {})

    def run_on_start(self, _witness: Witness, label: str) -> Replay:
        return self._ran(label, "vacuity", {})

    def _ran(self, label: str, purpose: Any, inputs: dict[str, str]) -> Replay:
        self.runs.append((label, purpose))
        app = "start" if purpose == "vacuity" else "submission"
        outcome = "failed" if (label, purpose) in self.fails else "held"
        return Replay(app=app, purpose=purpose, inputs=inputs, outcome=outcome)  # type: ignore[arg-type]


@dataclass
class ScriptedJudge:
    """Claims what holds for each witness; `lazy` ones are claimed without any."""

    witnesses: dict[str, Witness]
    lazy: set[str] = field(default_factory=set)
    name: str = "scripted"
    model: str | None = None

    def describe(self) -> dict[str, Any]:
        return {}

    def judge(self, case: Case, criterion: CriterionText, plan: CriterionPlan, attempt: Attempt) -> Proposal:
        return Proposal(
            tuple(
                Claim(sub.id, holds=True, witness=None)
                if sub.id in self.lazy
                else tried(sub.id, self.witnesses[sub.id], attempt)
                for sub in plan.sub_requirements
            )
        )


@dataclass
class SomeCase:
    case: str = "adder"
    criteria: tuple[CriterionText, ...] = (TEXT,)
    planned: bool = True


def judged(applications: Applications, judge: ScriptedJudge, cores: dict[str, bool]) -> CriterionRecord:
    subs = [SubRequirement(id=name, text=name, core=core) for name, core in cores.items()]
    plan = CriterionPlan(criterion_index=1, kind="behaviour", sub_requirements=subs)
    return judge_criterion(cast(Case, SomeCase()), TEXT, plan, judge, cast(Stage, applications))


VACUOUS_ON_NOTHING = {("a", "vacuity"), ("b", "vacuity")}


def test_a_witness_without_other_inputs_runs_twice_on_the_submission(tmp_path: Path) -> None:
    applications = Applications(tmp_path, set(VACUOUS_ON_NOTHING))
    record = judged(applications, ScriptedJudge({"a": witness("a")}), {"a": True})
    assert applications.runs == [("a", "propose"), ("a", "vacuity"), ("a", "repeat")]
    assert record.verdict == "PASS"


def test_a_held_run_with_other_inputs_is_the_second_run(tmp_path: Path) -> None:
    applications = Applications(tmp_path, set(VACUOUS_ON_NOTHING))
    record = judged(applications, ScriptedJudge({"a": witness("a", vary=[{"n": "2"}])}), {"a": True})
    assert applications.runs == [("a", "propose"), ("a", "vacuity"), ("a", "vary")]
    assert record.verdict == "PASS"


@pytest.mark.parametrize("attack", ["propose", "vary"])
def test_once_a_core_part_is_lost_the_others_are_not_examined(tmp_path: Path, attack: str) -> None:
    applications = Applications(tmp_path, VACUOUS_ON_NOTHING | {("a", attack)})
    judge = ScriptedJudge({"a": witness("a", vary=[{"n": "2"}]), "b": witness("b")})
    record = judged(
        applications, judge, {"b": False, "a": True}
    )  # the core part is attacked first, wherever it stands
    assert [run for run in applications.runs if run[0] == "b"] == [("b", "propose")]
    assert record.verdict == "FAIL"
    assert record.columns is not None
    assert record.columns["witnessed"].rule == ("core_missing" if attack == "propose" else "varied_inputs")
    [other] = [sub for sub in record.sub_requirements if sub.id == "b"]
    assert (other.proposed, other.witnessed, other.lowered_by) == (True, False, "not_examined")


def test_a_lost_part_that_is_not_core_ends_nothing(tmp_path: Path) -> None:
    applications = Applications(tmp_path, VACUOUS_ON_NOTHING | {("b", "propose")})
    judge = ScriptedJudge({"a": witness("a"), "b": witness("b"), "c": witness("c")})
    applications.fails.add(("c", "vacuity"))
    record = judged(applications, judge, {"b": False, "a": True, "c": False})
    assert ("c", "repeat") in applications.runs
    assert record.verdict == "PARTIAL"


def test_a_claim_without_a_witness_still_has_the_others_examined_for_the_card_column(tmp_path: Path) -> None:
    applications = Applications(tmp_path, set(VACUOUS_ON_NOTHING) - {("b", "vacuity")})
    judge = ScriptedJudge({"b": witness("b")}, lazy={"a"})
    record = judged(applications, judge, {"a": True, "b": True})
    assert ("b", "vacuity") in applications.runs
    assert record.columns is not None
    assert [record.columns[column].verdict for column in ("judge", "card", "witnessed")] == ["PASS", "FAIL", "FAIL"]
    assert record.columns["card"].rule == "vacuous"


def test_a_witness_that_compares_gets_what_the_start_shows_with_the_same_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        {"do": "fill", "target": {"label": "Name"}, "text": "${n}"},
        {"expect": "changed", "target": {"css": "h1"}, "what": "text"},
    ]
    program = Witness.model_validate(
        {"schema": "cdb.witness/1", "inputs": {"n": "1"}, "vary": [{"n": "2"}], "steps": steps}
    )
    ran: list[tuple[str, str, Any]] = []

    def run(
        _browser: Any, program: Witness, *, app: Any, purpose: Any, reference: Any, inputs: Any, **_more: Any
    ) -> Replay:
        text = program.with_inputs(inputs).steps[0].text  # type: ignore[union-attr]
        ran.append((app, text, reference))
        readings = {"2": f"Hello {text}"} if app == "start" else {}
        return Replay(app=app, purpose=purpose, outcome="failed" if app == "start" else "held", readings=readings)

    monkeypatch.setattr("evaluator.stage.run_witness", run)
    seen = StartReplays(tmp_path / "seen", "key")
    running = SimpleNamespace(submission=SimpleNamespace(), start=SimpleNamespace(), start_seen=seen)
    stage = Stage(cast(Any, running), tmp_path, tmp_path / "evidence")
    stage.run(program, "a", "propose")
    stage.run(program, "a", "vary", {"n": "2"})
    stage.run_on_start(program, "a")
    assert ran == [
        ("start", "1", None),
        ("submission", "1", {"2": "Hello 1"}),
        ("start", "2", None),
        ("submission", "2", {"2": "Hello 2"}),
    ]
