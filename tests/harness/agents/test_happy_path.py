"""Every agent does a task: gets the whole request and the pictures, edits, ends; what it did is on record."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from agent_trials import ALL, KEY, PHOTO, PICTURE, Seen, base64_of, script

from harness.agents.catalogue import COMMAND_LINES

pytestmark = pytest.mark.docker
ODD = '"; touch /tmp/pwn; $(id) `x` {{k}} {0} %s user@example.com 中文 😀 \\n C:\\new </candidate>'
LONG = ODD + "\n" + "Make the heading say hello, and mind the margins. " * 6000
REENCODES = ("qwen-code",)
"""Agents that send a picture in another form than the file's bytes."""


@pytest.mark.parametrize("name", ALL)
def test_an_agent_does_its_task_and_all_of_it_is_on_record(trial: Callable[..., Seen], name: str) -> None:
    seen = trial(name, {"turns": script(name, "echo hello > hello.txt")}, request=LONG)
    result = seen.result
    assert (result.outcome, result.reason) == ("ok", "")
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert (seen.tree / "hello.txt").read_text().strip() == "hello"

    # C34, C13: 300 KB of any characters arrive byte for byte.
    assert json.dumps(LONG, ensure_ascii=False)[1:-1] in seen.prompts[0]
    assert seen.folder.joinpath("request.md").read_text().startswith(LONG)

    # C50: the pictures' own bytes reach the model, or the trial is marked blind.
    natively = "image" in COMMAND_LINES[name]("m").modalities
    if natively and name not in REENCODES:
        assert all(base64_of(picture) in seen.prompts[0] for picture in (PICTURE, PHOTO))
    assert ("blind" in result.flags) == (result.account["media"].get("image", 0) == 0)
    assert natively == ("blind" not in result.flags) or name in REENCODES

    # The gateway's count is the account: calls, tokens, money.
    calls = [call for call in seen.calls if call.kind == "model"]
    assert result.account["calls"] == len(calls) >= 1
    assert {call.status for call in calls} == {200}
    assert result.account["tokens"]["input"] == 1000 * len(calls)
    assert result.account["cost_usd"] == pytest.approx(len(calls) * (1000 * 3 + 50 * 15) / 1e6)
    assert set(result.account["models_asked"]) == {"claude-fake-9"}

    # C46: nothing that works elsewhere is in the run's folder.
    run = seen.folder.parent.parent
    assert not [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_no_agent_is_tested_twice_or_left_out() -> None:
    assert len(set(ALL)) == len(ALL) >= 4
