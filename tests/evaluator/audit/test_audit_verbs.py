"""The verbs as a user runs them: files, exit codes, one line of error."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from told_judgings import make_judging
from told_trials import make_run

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_leaks_answers_with_3_when_a_person_has_to_look(run_cdb: Run, tmp_path: Path) -> None:
    run = make_run(tmp_path, ["task-board"])
    (run.trial("task-board") / "trajectory.json").unlink()
    ended = run_cdb(["audit", "leaks", run.results, "--json"])
    assert ended.returncode == 3, ended.stderr
    assert json.loads(ended.stdout)["statuses"] == {"CLEAN": 0, "FLAGGED": 0, "INCONCLUSIVE": 1}
    assert json.loads((run.results / "leak_audit.json").read_text()) == json.loads(ended.stdout)


def test_sample_tells_the_two_files_apart_and_a_wrong_column_is_one_line(run_cdb: Run, tmp_path: Path) -> None:
    folder = make_judging(tmp_path / "r", {"alpha": ["PASS", "FAIL"]})
    made = run_cdb(["audit", "sample", folder, "--out", tmp_path / "a", "--labels", "2"])
    assert made.returncode == 0, made.stderr
    assert "for-labellers/audit.html to labellers; keep" in made.stdout and "design.json from them" in made.stdout
    wrong = run_cdb(["audit", "sample", folder, "--out", tmp_path / "b", "--column", "best"])
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and "choose one of judge, card" in wrong.stderr
