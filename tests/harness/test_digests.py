"""The condition `media: digest`: the same digests for every agent, at the paths the prompt names, and no file natively."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.errors import UsageError
from bench.journal import of_type, read_journal
from bench.media.settings import Settings
from bench.task import Dataset, open_dataset
from harness.agents.catalogue import find_agent
from harness.agents.media import native_media
from harness.digests import hashes, identity, put_digests, text_paths, with_digests
from harness.models import Conditions
from harness.prompt import prompt
from harness.run import SolveSettings, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag

SAMPLE = Path(__file__).parents[2] / "harness/sample"
KINDS: Any = {"image", "audio", "video", "document"}


@pytest.fixture(scope="module")
def native() -> Dataset:
    return open_dataset(SAMPLE)


@pytest.fixture(scope="module")
def digested(native: Dataset) -> Dataset:
    return with_digests(native, Settings(), lambda _line: None)


def test_the_prompt_names_each_digest_beside_its_attachment_and_nothing_else_changes(
    native: Dataset, digested: Dataset
) -> None:
    for plain, task in zip(native.tasks, digested.tasks, strict=True):
        before, after = prompt(plain).splitlines(), prompt(task).splitlines()
        added = [line for line in after if line not in before]
        assert [line for line in after if line in before] == before
        assert [line.rpartition(": ")[2] for line in added] == list(text_paths(task).values())
        assert len(added) == len(task.attachments)
    board = next(task for task in digested.tasks if task.case_id == "task-board")
    assert text_paths(board) == {"_attachments/old-board.mp4": "/home/agent/digest/01-old-board.mp4/digest.md"}


def test_no_attachment_is_handed_over_natively_but_the_annotation_is(native: Dataset, digested: Dataset) -> None:
    for plain, task in zip(native.tasks, digested.tasks, strict=True):
        assert len(native_media(plain, KINDS)) == len(task.annotations) + len(task.attachments)
        assert [one.workspace_path for one in native_media(task, KINDS)] == [
            f"/workspace/{name}" for name in task.annotations
        ]


def test_names_that_need_quoting_and_names_alike_are_kept_apart(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    names = ["_attachments/a b.txt", "_attachments/a,b.txt", "_attachments/deep/a b.txt", "_attachments/中.txt"]
    dataset = open_dataset(make_dataset({"one": {"index.html": "x", **dict.fromkeys(names, "x")}}))
    (task,) = with_digests(dataset, Settings(), lambda _line: None).tasks
    put_digests(task, tmp_path / "home")
    assert sorted(text_paths(task)) == sorted(names)
    for path in text_paths(task).values():
        assert path.isascii() and not set(" ,'\"") & set(path)
        assert (tmp_path / "home" / path.removeprefix("/home/agent/")).is_file()
    assert len(set(text_paths(task).values())) == 4


def test_the_lock_tells_runs_with_other_digests_apart(digested: Dataset) -> None:
    told = identity(digested, Settings())
    assert told["schema"] == "cdb.digest/1"
    assert set(told["digests"]) == {"clinic-booking", "expense-report", "podcast-player", "task-board"}
    assert told["settings"]["key_frames"] == 12
    assert set(told["settings"]["readers"]) == {"av", "pillow", "pypdfium2"}
    assert identity(digested, Settings(asr=("whisper",))) != told


def test_conditions_know_both_media_and_no_third() -> None:
    Conditions(media="digest").check()
    with pytest.raises(UsageError, match="choose one of native, digest"):
        Conditions(media="digset").check()


@pytest.mark.docker
def test_the_digests_lie_in_the_container_byte_for_byte_and_never_in_the_submission(
    tmp_path: Path, digested: Dataset
) -> None:
    script = (
        "cd /home/agent/digest && find . -type f -exec sha256sum {} + | sort > /workspace/seen.txt; "
        "cp /home/agent/request.md /workspace/seen.md; touch 01-*/new && echo writable > /workspace/mine.txt"
    )
    agent = tmp_path / "looker.yaml"
    agent.write_text(yaml.safe_dump({"kind": "command", "name": "looker", "argv": ["bash", "-c", script]}))
    dataset = open_dataset(SAMPLE, ["task-board", "plant-shop"])
    settings = SolveSettings(
        out=tmp_path / "runs", image=image_tag("solver"), timeout_s=120, conditions=Conditions(media="digest")
    )
    summary = solve(dataset, find_agent(str(agent)), settings, DockerSandbox, lambda _line: None)
    task = next(one for one in digested.tasks if one.case_id == "task-board")
    assert task.digests
    (digest,) = task.digests
    expected = sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  ./01-old-board.mp4/{path.name}"
        for path in digest.folder.iterdir()
    )
    submission = summary.submissions / "task-board"
    assert (submission / "seen.txt").read_text().splitlines() == expected
    assert len(expected) == 15
    assert (submission / "seen.md").read_text() == prompt(task)
    assert not [path for path in submission.rglob("*") if path.name in ("digest.md", "digest.json", "new")]
    lock = json.loads((summary.entry / "lock.json").read_text())
    assert lock["conditions"]["media"] == "digest"
    assert lock["conditions"]["digest"]["digests"] == {"task-board": {"_attachments/old-board.mp4": digest.sha256}}
    trials = {r["case"]: r for r in of_type(read_journal(summary.entry / "journal.jsonl").records, "trial")}
    assert trials["task-board"]["digests"] == hashes(task)
    assert trials["plant-shop"]["digests"] == {}
    with pytest.raises(UsageError, match=r"conditions\.media: was \"digest\", now \"native\""):
        solve(
            dataset, find_agent(str(agent)), replace(settings, conditions=Conditions()), DockerSandbox, lambda _: None
        )


@pytest.mark.docker
def test_the_command_line_takes_it(run_cdb: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    args = ["solve", "--dataset", SAMPLE, "--agent", "noop", "--out", tmp_path / "run", "--only", "podcast-player"]
    done = run_cdb([*args, "--media", "digest", "--json"])
    assert done.returncode == 0, done.stderr
    assert "podcast-player: digests of 1 attachments" in done.stderr
    lock = json.loads((Path(json.loads(done.stdout)["entry"]) / "lock.json").read_text())
    assert list(lock["conditions"]["digest"]["digests"]["podcast-player"]) == ["_attachments/sketch.png"]
    shutil.rmtree(tmp_path / "run")
    refused = run_cdb([*args, "--media", "digest"], env={"CDB_ASR": "no-such-recogniser {wav}"})
    assert refused.returncode == 2
    assert "no-such-recogniser" in refused.stderr
