"""Every agent does a task: gets the whole request and the pictures, edits, ends; what it did is on record."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from agent_trials import ALL, FOUR, KEY, PHOTO, PICTURE, Play, Seen, base64_of, played, script

from bench.task import read_task
from harness.agents.catalogue import COMMAND_LINES
from harness.trajectory.atif import Step, Trajectory

pytestmark = pytest.mark.docker
ODD = '/clear the "board; touch /tmp/pwn; $(id) `x` {{k}} {0} %s a @ b 中文 😀 \\n C:\\new </candidate>'
ADDRESS = "Write to anna@example.com when @index.html is done."
LONG = ODD + "\n" + ADDRESS + "\n" + "Make the heading say hello, and mind the margins. " * 6000
SAMPLE = Path(__file__).parent.parent.parent.parent / "harness/sample/cases"
HELLO = "echo hello > hello.txt"
SERVE = "nohup python3 -m http.server 8123 > /dev/null 2>&1 &"
SPACES_AT = ("gemini-cli", "qwen-code")
"""Agents that take `@word` for a path and set a space before it; the exact text lies in the container's home."""
AT_SPACED = ADDRESS.replace("anna@", "anna @")
REENCODES = ("qwen-code",)
"""Agents that send a picture in another form than the file's bytes."""


def _texts(step: Step) -> str:
    if isinstance(step.message, str):
        return step.message
    return "".join(part.text or "" for part in step.message)


def _task(name: str) -> Play:
    """The whole of it: 300 KB of any characters, pictures, and a server that is left running."""
    return Play(name, {"turns": script(name, HELLO if name == "aider" else f"{SERVE} {HELLO}")}, request=LONG)


@pytest.mark.parametrize("name", ALL)
@played(_task)
def test_an_agent_does_its_task_and_all_of_it_is_on_record(seen: Seen, name: str) -> None:
    result = seen.result
    assert (result.outcome, result.reason) == ("ok", "")
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert (seen.tree / "hello.txt").read_text().strip() == "hello"

    # C34, C13: 300 KB of any characters arrive byte for byte.
    long = LONG.replace(ADDRESS, AT_SPACED) if name in SPACES_AT else LONG
    assert json.dumps(long, ensure_ascii=False)[1:-1] in seen.prompts[0]
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

    # The trajectory: the same format for every agent, every call in it.
    told = Trajectory.model_validate_json((seen.folder / "trajectory.json").read_bytes())
    steps = [step for step in told.steps if step.source == "agent"]
    assert len(steps) == len(calls)
    assert told.final_metrics and told.final_metrics.total_cost_usd == pytest.approx(result.account["cost_usd"])
    assert all(step.metrics and step.metrics.prompt_tokens == 1000 for step in steps)
    assert long in "".join(_texts(step) for step in told.steps if step.source == "user")
    if name != "aider":  # it has no tools
        call = next(call for step in steps for call in step.tool_calls or ())
        assert HELLO in json.dumps(call.arguments)
        observed = next(step.observation for step in steps if step.tool_calls)
        assert observed and observed.results[0].source_call_id == call.tool_call_id
    if "blind" not in result.flags:
        pictures = [part for step in told.steps for part in step.message if not isinstance(part, str) and part.source]
        kept = {(seen.folder / part.source.path).read_bytes() for part in pictures}
        assert kept == {PICTURE, PHOTO} or name in REENCODES

    # C46: nothing that works elsewhere is in the run's folder.
    run = seen.folder.parent.parent
    assert not [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("name", [name for name in ALL if name != "aider"])
@played(_task)
def test_c22_a_server_left_running_does_not_hold_the_trial(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "ok", seen.result.reason  # not stopped at its time limit
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert seen.result.exit_code == 0


def _attachment(name: str, case: str, file: str) -> Play:
    look = f"sha256sum _attachments/{file} | cut -c 1-64 > seen.txt"
    return Play(name, {"turns": script(name, look)}, case=lambda _folder: read_task(SAMPLE / case))


@pytest.mark.parametrize(
    ("name", "case", "file", "kind"),
    [
        ("claude-code", "expense-report", "travel-policy-2026.pdf", "document"),
        ("gemini-cli", "expense-report", "travel-policy-2026.pdf", "document"),
        ("gemini-cli", "clinic-booking", "voice-note.mp3", "audio"),
        ("gemini-cli", "task-board", "old-board.mp4", "video"),
    ],
)
@played(_attachment)
def test_c50_an_attachment_reaches_a_model_that_takes_its_kind(
    seen: Seen, name: str, case: str, file: str, kind: str
) -> None:
    assert seen.result.outcome == "ok", seen.result.reason
    content = (SAMPLE / case / "project" / "_attachments" / file).read_bytes()
    assert base64_of(content) in seen.prompts[0]
    assert seen.result.account["media"][kind] >= 1
    assert "blind" not in seen.result.flags
    told = (seen.submissions / case / "seen.txt").read_text().strip()
    assert told == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("name", FOUR)
@played(_task)
def test_an_address_in_a_request_stays_readable(seen: Seen, name: str) -> None:
    assert (AT_SPACED if name in SPACES_AT else ADDRESS) in seen.prompts[0]
    assert ADDRESS in seen.folder.joinpath("request.md").read_text()
