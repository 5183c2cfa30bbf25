"""The leak audit is a step of every run, before scoring; where it is required, a trial that is not clean counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.pool import StopFlag
from runner import conduct
from runner.config import JudgePart, RunConfig, read_config
from runner.entries import Entry

METRIC = {"mean": 1.0, "low": 1.0, "high": 1.0}


@pytest.mark.parametrize(("policy", "complete"), [("record", True), ("required", False)])
def test_a_flagged_trial_makes_a_run_incomplete_only_where_the_audit_is_required(
    policy: str, complete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def step(argv: list[str], log: Path, progress: Any) -> tuple[dict[str, Any], bool]:
        ran.append(argv)
        columns = {"witnessed": dict.fromkeys(("strict", "graded", "full"), METRIC)}
        return {"columns": columns, "label": "x", "coverage": {}}, argv[0] != "audit"

    monkeypatch.setattr(conduct, "run_step", step)
    monkeypatch.setattr(conduct, "_is_judged", lambda _results: True)
    config = RunConfig.model_validate(
        {"name": "r", "agents": ["noop"], "judges": [{"model": "recorded"}], "leak_audit": policy, "out": tmp_path}
    )
    run = conduct._Run(config, None, lambda _line: None, StopFlag())
    result = conduct.RunResult(tmp_path)
    entry = Entry("noop", None, 1, None, tmp_path / "noop__none__1")
    run._evaluate(entry, JudgePart(model="recorded"), entry.folder / "results", [], result, resolved=False)
    assert [argv[0] for argv in ran] == ["audit", "score"]
    assert ran[0] == ["audit", "leaks", str(entry.folder / "results")]
    assert result.complete is complete


def test_the_paper_profile_requires_it() -> None:
    shipped = Path(__file__).parents[2] / "configs" / "runs"
    assert read_config(shipped / "me96-paper.yaml").leak_audit == "required"
    assert read_config(shipped / "sample.yaml").leak_audit == "record"
