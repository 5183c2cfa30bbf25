"""Under `media: digest` a real command line is told of digests, and hands its model the annotation and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_trials import PHOTO, PICTURE, Play, Seen, base64_of, make_task, played, script

from bench.media.settings import Settings
from bench.task import Dataset, Task
from harness.agents.agent import ModelAccess
from harness.agents.catalogue import COMMAND_LINES
from harness.digests import hashes, with_digests


def _with_digests(folder: Path) -> Task:
    plain = make_task(folder)
    dataset = with_digests(Dataset(plain.folder, "one", (plain,), ("one",)), Settings(), lambda _line: None)
    return dataset.tasks[0]


def _digests(name: str) -> Play:
    return Play(name, {"turns": script(name, "echo hello > hello.txt")}, case=_with_digests)


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_no_adapter_hands_an_attachment_over_that_comes_with_a_digest(name: str, tmp_path: Path) -> None:
    class Installed(COMMAND_LINES[name]):  # type: ignore[misc, valid-type]
        program = "/opt/agents/it"

    agent = Installed("m")
    access = ModelAccess("m", "http://127.0.0.1:8080", "token")
    plainly = agent.launch(make_task(tmp_path / "plain"), access).passed
    digested = agent.launch(_with_digests(tmp_path / "digest"), access).passed
    assert (plainly, digested) == (({"image": 2}, {"image": 1}) if "image" in agent.modalities else ({}, {}))


@pytest.mark.docker
@pytest.mark.parametrize("name", ["claude-code", "aider"])
@played(_digests)
def test_the_photo_is_a_digest_and_only_the_annotation_is_native(seen: Seen, name: str, tmp_path: Path) -> None:
    assert (seen.result.outcome, seen.result.reason) == ("ok", "")
    assert seen.result.digests == hashes(_with_digests(tmp_path))
    assert "/home/agent/digest/01-photo-.png/digest.md" in seen.prompts[0]
    assert base64_of(PHOTO) not in "".join(seen.prompts)
    if "image" in COMMAND_LINES[name]("m").modalities and name != "qwen-code":  # which re-encodes pictures
        assert base64_of(PICTURE) in seen.prompts[0]
        assert seen.result.account["media"]["image"] >= 1
    if name == "aider":
        assert "- Size: 50 × 70 pixels" in json.dumps(json.loads(seen.requests[-1]["body"]), ensure_ascii=False)
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
