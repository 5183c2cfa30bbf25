"""Harbor tasks hold the request and the application and nothing of a rubric; the real harbor loads them."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from judged_run import CASES, RUBRIC, JudgedRun

from bench.errors import UsageError
from bench.tree import digest, list_tree
from evaluator.exports.harbor_tasks import write_tasks


@pytest.fixture(scope="module")
def tasks(judged: JudgedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("harbor")
    found = write_tasks(judged.dataset, out / "out", entries=[judged.entry], rubrics=out / "rubrics")
    assert found == {"tasks": 3, "trajectories": 3}
    return out


def test_an_agent_gets_the_request_word_for_word_and_the_application_as_it_is(tasks: Path, judged: JudgedRun) -> None:
    task = tasks / "out/tasks/clock"
    assert (task / "instruction.md").read_text().startswith("Change clock: say “after” – bitte.\n\n---\n")
    assert "/workspace/_annotations/shot.png" in (task / "instruction.md").read_text()
    start = judged.dataset / "cases/clock/project"
    assert digest(list_tree(task / "environment/project")) == digest(list_tree(start))
    settings = tomllib.loads((task / "task.toml").read_text())
    assert settings["artifacts"][0]["source"] == settings["environment"]["workdir"] == "/workspace"
    assert settings["metadata"]["start_digest"] == digest(list_tree(start))
    assert os.access(task / "tests/test.sh", os.X_OK)


def test_c14_no_word_of_a_rubric_is_in_what_agents_are_given(tasks: Path) -> None:
    for path in (tasks / "out").rglob("*"):
        assert path.name != "rubric.json"
        if path.is_file():
            content = path.read_bytes()
            assert not [criterion for criterion in RUBRIC if criterion.encode() in content], path
    for case in CASES:
        assert json.loads((tasks / f"rubrics/{case}/rubric.json").read_text()) == RUBRIC


def test_trajectories_lie_beside_the_tasks(tasks: Path) -> None:
    content = json.loads((tasks / "out/trajectories/editor__none__1/list/trajectory.json").read_text())
    assert content["schema_version"] == "ATIF-v1.8"
    assert not list((tasks / "out/tasks").rglob("trajectory.json")), "Harbor would give it to the agent as context"


def test_rubrics_among_the_tasks_a_full_folder_and_an_odd_image_are_refused(
    judged: JudgedRun, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="choose a folder apart"):
        write_tasks(judged.dataset, tmp_path / "out", rubrics=tmp_path / "out/tasks/rubrics")
    with pytest.raises(UsageError, match="no image's name"):
        write_tasks(judged.dataset, tmp_path / "out", image="x\nRUN evil")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        write_tasks(judged.dataset, tmp_path)


LOAD = """
import json, pathlib, sys
from harbor.models.task.task import Task
from harbor.models.trajectories import Trajectory
out = pathlib.Path(sys.argv[1])
tasks = [Task(folder) for folder in sorted((out / "tasks").iterdir())]
steps = [len(Trajectory.model_validate_json(p.read_text()).steps) for p in (out / "trajectories").rglob("*.json")]
print(json.dumps({
    "names": [task.name for task in tasks], "valid": [Task.is_valid_dir(t.paths.task_dir) for t in tasks],
    "artifacts": tasks[0].config.artifacts[0].destination, "workdir": tasks[0].config.environment.workdir,
    "instruction": tasks[0].instruction.splitlines()[0], "steps": steps,
}))
"""


@pytest.mark.slow
def test_the_real_harbor_loads_tasks_and_trajectories(
    tasks: Path, tool_python: Callable[[str, str], Path], python_312: str
) -> None:
    python = tool_python("harbor", python_312)
    ended = subprocess.run(
        [python, "-c", LOAD, tasks / "out"], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout) == {
        "names": [f"co-design-bench/{case}" for case in CASES], "valid": [True] * 3, "artifacts": "workspace",
        "workdir": "/workspace", "instruction": "Change clock: say “after” – bitte.", "steps": [2, 2, 2],
    }  # fmt: skip
