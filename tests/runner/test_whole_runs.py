"""`cdb run` from one file: finished, asked for, retried, refused, and told about from another shell."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench.activity import Activity
from bench.journal import of_type, read_journal

pytestmark = [pytest.mark.docker, pytest.mark.browser, pytest.mark.timeout(600)]
REPOSITORY = Path(__file__).parent.parent.parent
RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


def test_c116_c119_c140_a_whole_run_is_one_command_and_the_same_command_repeats_nothing(
    small_run: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    noop = {"agents": [str(tmp_path / "editor.yaml"), "noop"]}
    config, folder = small_run("whole", **noop), tmp_path / "whole"
    first = run_cdb(["run", config, "--json"], deadline_s=300)
    assert first.returncode == 0, first.stderr[-2000:]
    assert "\x1b" not in first.stderr
    answer = json.loads(first.stdout)
    assert answer["complete"]
    assert [told["strict"] for told in answer["scores"].values()] == [100.0, 0.0]
    assert Path(answer["report"]).is_file()
    results = folder / "editor__none__1" / "results"
    assert "Public ME-96 is 96 of the paper's 273 tasks" in (results / "run_card.md").read_text()
    pair = json.loads((folder / "comparison.json").read_text())["pairs"][0]
    assert (pair["matched"], pair["metrics"]["strict"]["difference"]) == (2, 100.0)
    kept = {path: path.read_bytes() for path in folder.rglob("journal.jsonl")}
    again = run_cdb(["run", config], deadline_s=300)
    assert again.returncode == 0, again.stderr[-2000:]
    assert {path: path.read_bytes() for path in folder.rglob("journal.jsonl")} == kept
    told = run_cdb(["status", folder, "--json"])
    status = json.loads(told.stdout)
    assert (told.returncode, status["holder"], status["done"], status["of"]) == (0, "", 8, 8)

    # C140: judged and scored again without a solver: another results folder, the entry as it was.
    cases, again = folder / "editor__none__1/evaluation/cases.json", tmp_path / "again"
    judge = ["judge", "--cases", cases, "--out", again, "--model", "recorded", "--witnesses", tmp_path / "witnesses"]
    assert run_cdb(judge, deadline_s=200).returncode == 0
    score = ["score", "--cases", cases, "--results", again / "journal.jsonl", "--out", again / "scores.json"]
    assert run_cdb(score).returncode == 0
    assert (again / "scores.json").read_bytes() == (results / "scores.json").read_bytes()
    assert {path: path.read_bytes() for path in folder.rglob("journal.jsonl")} == kept

    # C119: another model, judge or budget is another run; concurrency is not.
    other = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump({**other, "concurrency": {"solve": 1, "judge": 1}}))
    assert run_cdb(["run", config], deadline_s=300).returncode == 0
    config.write_text(yaml.safe_dump({**other, "budget": {"timeout_s": 60}}))
    refused = run_cdb(["run", config])
    assert refused.returncode == 2
    assert "config.budget.timeout_s: was 3600.0, now 60.0" in refused.stderr


def test_c118_retry_infra_tries_exactly_what_infrastructure_failed(
    small_run: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    from bench.journal import Journal

    config, folder = small_run("retried"), tmp_path / "retried"
    entry = folder / "editor__none__1"
    with Journal(entry / "journal.jsonl") as journal:  # one trial that infrastructure failed, one nobody began
        journal.append(
            {"type": "trial", "case": "greeting", "outcome": "infra_error", "reason": "engine", "digest": None}
        )
    first = run_cdb(["run", config, "--retry", "infra"], deadline_s=300)
    assert first.returncode == 3, first.stderr[-2000:]
    trials = [(r["case"], r["outcome"]) for r in of_type(read_journal(entry / "journal.jsonl").records, "trial")]
    assert trials == [("greeting", "infra_error"), ("greeting", "ok")]
    assert "INCOMPLETE" in first.stdout
    rest = run_cdb(["run", config], deadline_s=300)
    assert rest.returncode == 0, rest.stderr[-2000:]
    trials = [r["case"] for r in of_type(read_journal(entry / "journal.jsonl").records, "trial")]
    assert trials == ["greeting", "greeting", "farewell"]
    scores = json.loads((entry / "results" / "scores.json").read_text())
    assert (scores["incomplete"], scores["columns"]["witnessed"]["strict"]["mean"]) == (False, 100.0)
    nobody = run_cdb(["run", config, "--retry", "nobody"])
    assert (nobody.returncode, "infra, judge, or a case" in nobody.stderr) == (2, True)


def test_c121_a_second_run_in_the_same_folder_is_refused(
    small_run: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    from bench.journal import take_lock

    config = small_run("held")
    (tmp_path / "held").mkdir()
    with take_lock(tmp_path / "held" / "run.lock"):
        refused = run_cdb(["run", config])
    assert refused.returncode == 2
    assert "pid " in refused.stderr


def test_c125_a_stuck_case_is_named_with_its_phase_and_age(
    small_run: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    from runner.standing import PlannedEntry, RunPlan

    folder = tmp_path / "stuck"
    RunPlan("stuck", [PlannedEntry("e", ["e/results"])], ["greeting"], "witnessed", {"trial": 10.0}).write(folder)
    activity = Activity(folder / "e")
    activity._doing["greeting"] = ("trial", time.time() - 4000)
    activity._write()
    told = run_cdb(["status", folder])
    assert told.returncode == 3
    assert "STUCK e: greeting in trial for 40" in told.stdout


def test_a_step_ends_when_its_run_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, subprocess, sys, time\nfrom bench.parent import PARENT\n"
        "child = subprocess.Popen([sys.executable, '-c', "
        "'from bench.parent import end_with_parent; end_with_parent(); print(1, flush=True); import time; time.sleep(60)'],"
        " env={**os.environ, PARENT: str(os.getpid())}, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\nprint(child.pid, flush=True)\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    until = time.monotonic() + 10
    while Path(f"/proc/{child}/stat").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < until, "the step outlived its run"
        time.sleep(0.05)
