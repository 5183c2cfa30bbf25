"""Harbor task directories (schema 1.4): what an agent gets of each task, and nothing of a rubric.

`OUT/tasks/ID/` has `task.toml`, `instruction.md`, `environment/` (a Dockerfile and the starting application, which it
copies to `/workspace`) and `tests/test.sh`, which only says that something was left: judging is done here, on what
`cdb import harbor` brings back. `OUT/trajectories/` has solve entries' trajectories (ATIF).
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from bench.atomic import write_bytes, write_json
from bench.errors import DataError, UsageError
from bench.redact import Redactor
from bench.strict_json import read_json
from bench.task import Dataset, Task, open_dataset
from evaluator.attachments import primary_kind

WORKSPACE = "/workspace"
ARTIFACT = "workspace"
"""Name under a trial's `artifacts/` of what the agent left in the workspace."""
DEFAULT_IMAGE = "node:22-bookworm"
RUBRIC = "rubric.json"
_ORGANISATION = "co-design-bench"
_TEST = """#!/bin/sh
# Judges nothing: it says that the workspace is there to be collected. `cdb import harbor` takes what was collected,
# and `cdb judge` judges it. The reward is no score.
mkdir -p /logs/verifier
if [ -n "$(ls -A {workspace} 2>/dev/null)" ]; then collected=1; else collected=0; fi
printf '{{"collected": %s}}\\n' "$collected" > /logs/verifier/reward.json
"""


def write_tasks(
    dataset_root: Path,
    out: Path,
    *,
    only: tuple[str, ...] = (),
    image: str = DEFAULT_IMAGE,
    rubrics: Path | None = None,
    entries: list[Path] | None = None,
) -> dict[str, int]:
    """Write every task in scope below `out`, which must be missing or empty; gives counts.

    `image`: what the environment is built from; it needs node and git. `rubrics`: a folder apart that gets each
    task's rubric. `entries`: solve entries whose trajectories go beside. Raises UsageError for a place that will not
    do.
    """
    if not re.fullmatch(r"[A-Za-z0-9._/:@-]+", image):
        raise UsageError(f"--image {image!r} is no image's name")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; choose another --out")
    if rubrics and rubrics.resolve().is_relative_to(out.resolve()):
        raise UsageError(f"--rubrics {rubrics} lies in {out}, which agents are given; choose a folder apart")
    dataset = open_dataset(dataset_root, only)
    for task in dataset.tasks:
        _write_task(dataset, task, out / "tasks" / task.case_id, image)
    if rubrics:
        for task in dataset.tasks:
            _copy_rubric(task, rubrics / task.case_id)
    kept = sum(_trajectories(entry, out / "trajectories" / entry.resolve().name) for entry in entries or [])
    return {"tasks": len(dataset.tasks), "trajectories": kept}


def _write_task(dataset: Dataset, task: Task, folder: Path, image: str) -> None:
    shutil.copytree(
        task.project, folder / "environment/project", symlinks=True, ignore=shutil.ignore_patterns(".git")
    )
    dockerfile = f"FROM {image}\nCOPY project/ {WORKSPACE}/\nWORKDIR {WORKSPACE}\n"
    write_bytes(folder / "environment/Dockerfile", dockerfile.encode())
    write_bytes(folder / "instruction.md", _instruction(task).encode())
    write_bytes(folder / "task.toml", _settings(dataset, task).encode())
    write_bytes(folder / "tests/test.sh", _TEST.format(workspace=WORKSPACE).encode())
    (folder / "tests/test.sh").chmod(0o755)


def _instruction(task: Task) -> str:
    """The request as it is, then where things lie; as our own agents are told it, but for the network."""
    lines = [
        "---",
        f"The application's source is in {WORKSPACE}, which is also your current folder. In the request, a path",
        f"that begins with `project/` means {WORKSPACE}/. Change the application in place; leave the result there.",
        *(f"Annotated screenshot: {WORKSPACE}/{name}" for name in task.annotations),
        *(f"Attachment: {WORKSPACE}/{name}" for name in task.attachments),
    ]
    return "\n\n".join([*task.queries, "\n".join(lines) + "\n"])


def _settings(dataset: Dataset, task: Task) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", task.case_id).lstrip(".")
    about = {
        "case": task.case_id,
        "dataset": dataset.name,
        "start_digest": task.start_digest,
        "attachment": primary_kind(task.attachments),
    }
    return "\n".join(
        [
            'schema_version = "1.4"',
            "",
            "[[artifacts]]",
            f"source = {_text(WORKSPACE)}",
            f"destination = {_text(ARTIFACT)}",
            'exclude = ["node_modules", ".git"]',
            "",
            "[task]",
            f"name = {_text(f'{_ORGANISATION}/{name}')}",
            "",
            "[metadata]",
            *(f"{key} = {_text(value)}" for key, value in about.items()),
            "",
            "[agent]",
            "timeout_sec = 3600.0",
            "",
            "[verifier]",
            "timeout_sec = 60.0",
            "",
            "[environment]",
            "build_timeout_sec = 600.0",
            f"workdir = {_text(WORKSPACE)}",
            "cpus = 2",
            "memory_mb = 4096",
            "",
        ]
    )


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for a DEL that only TOML escapes."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _copy_rubric(task: Task, folder: Path) -> None:
    source = task.folder / RUBRIC
    if not source.is_file():
        raise UsageError(f"{source} does not exist; --rubrics needs the evaluation inputs, these are the solver's")
    write_bytes(folder / RUBRIC, source.read_bytes())


def _trajectories(entry: Path, out: Path) -> int:
    """Copy the last try's trajectory of each case, media with it, secrets taken out once more."""
    trials = entry / "trials"
    if not trials.is_dir():
        raise UsageError(f"{entry} has no trials/; pass a solve entry (runs/RUN/ENTRY)")
    kept = 0
    for case in sorted(trials.iterdir()):
        tries = [path for path in case.iterdir() if path.name.isdecimal()] if case.is_dir() else []
        last = max(tries, key=lambda path: int(path.name), default=None)
        if last is None or not (last / "trajectory.json").is_file():
            continue
        content: Any = read_json(last / "trajectory.json")
        if not isinstance(content, dict):
            raise DataError(f"{last / 'trajectory.json'} is no trajectory; move it away")
        write_json(out / case.name / "trajectory.json", Redactor().value(content))
        if (last / "media").is_dir():
            shutil.copytree(last / "media", out / case.name / "media")
        kept += 1
    return kept
