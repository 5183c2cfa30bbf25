"""Bad input ends in one message that names it, with the documented exit code and no traceback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["dataset", "verify", "{tmp}/nowhere"], 2, "no release"),
        (["dataset", "extract", "{tmp}", "--out", "{tmp}/out"], 2, "no release"),
        (["prepare", "--dataset", "{tmp}", "--submissions", "{tmp}", "--out", "{tmp}/o"], 2, "no cases/ folder"),
        (["judge", "--cases", "{tmp}/cases.json", "--out", "{tmp}/r", "--model", "recorded"], 2, "cdb prepare"),
        (["judge", "--cases", "{tmp}/file", "--out", "{tmp}/r", "--model", "no judge"], 2, "'no judge'"),
        (["score", "--cases", "{tmp}/file", "--results", "{tmp}/file", "--out", "{tmp}/s"], 1, "{tmp}/file"),
        (["seal", "{tmp}/nowhere"], 2, "no folder"),
        (["seal", "{tmp}/file"], 2, "no folder"),
        (["report", "{tmp}/nowhere"], 2, "nowhere"),
        (["replay", "{tmp}", "case", "1"], 2, "cases.json"),
        (["solve", "--dataset", "{tmp}", "--agent", "replay-gol", "--out", "{tmp}/r"], 2, "replay-gold"),
        (["solve", "--dataset", "{tmp}", "--agent", "noop", "--only", ",", "--out", "{tmp}/r"], 2, "names no case"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_bad_input_is_named_with_the_documented_exit_code(
    tmp_path: Path, run_cdb: RunCdb, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "file").write_text("no JSON at all")
    filled = [part.replace("{tmp}", str(tmp_path)) for part in arguments]
    ended = run_cdb(filled, deadline_s=60)
    assert ended.returncode == code, ended.stderr
    assert message.replace("{tmp}", str(tmp_path)) in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_misspelt_key_of_an_agent_is_suggested(tmp_path: Path, run_cdb: RunCdb) -> None:
    (tmp_path / "agent.yaml").write_text("kind: command\nname: a\nargv: [true]\nstdim: none\n")
    ended = run_cdb(["solve", "--dataset", tmp_path, "--agent", tmp_path / "agent.yaml"], deadline_s=60)
    assert (ended.returncode, "did you mean stdin?" in ended.stderr) == (2, True), ended.stderr


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path: Path, run_cdb: RunCdb) -> None:
    ended = run_cdb(["dataset", "verify", f"{tmp_path}/\x1b[31mred"], deadline_s=60)
    assert "\x1b" not in ended.stderr
    assert "\\x1b[31mred" in ended.stderr


def test_every_verb_explains_itself(run_cdb: RunCdb) -> None:
    verbs = ["solve", "prepare", "judge", "score", "replay", "seal", "report", "doctor", "clean", "agents", "demo"]
    help_text = run_cdb(["--help"], deadline_s=60).stdout
    assert [verb for verb in [*verbs, "dataset"] if f" {verb} " not in help_text] == []
