"""Every command that README and documents show is one there is; what a newcomer types really runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import cdb
from bench.exit_codes import OWN, told

REPOSITORY = Path(__file__).parent.parent
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
COMMANDS = typer.main.get_command(cdb.app)
BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
HERE = re.compile(r"<<\s*'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)


def shown(document: Path) -> list[list[str]]:
    """The commands of a document's shell blocks that are ours, without comments, continuations and here-documents."""
    text = HERE.sub("", document.read_text(encoding="utf-8"))
    lines = [line for block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    ours = [line for line in lines if line.startswith(("cdb ", "scripts/"))]
    return [shlex.split(line, comments=True) for line in ours]


def verbs(group: Any = COMMANDS, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from verbs(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


@pytest.mark.parametrize(
    ("document", "words"),
    [pytest.param(d, words, id=f"{d.name}: {' '.join(words)[:60]}") for d in DOCUMENTS for words in shown(d)],
)
def test_every_shown_command_is_one_there_is(document: Path, words: list[str]) -> None:
    if words[0] != "cdb":
        assert (REPOSITORY / words[0]).is_file(), words
        return
    command: Any = COMMANDS
    rest = words[1:]
    while hasattr(command, "commands") and (rest or not command.invoke_without_command):
        assert rest and rest[0] in command.commands, f"{document.name}: no verb {rest[:1]} in {' '.join(words)}"
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context(command.name, list(rest))  # raises for an unknown option or a missing argument


def test_a_command_with_a_wrong_option_would_be_found() -> None:
    with pytest.raises(Exception, match="--modle"):
        test_every_shown_command_is_one_there_is(DOCUMENTS[0], ["cdb", "judge", "--modle", "x"])


def test_every_verb_that_is_named_in_passing_is_there() -> None:
    known = {name for name, _ in verbs()} | {name.partition(" ")[0] for name, _ in verbs()}
    for document in DOCUMENTS:
        for name in re.findall(r"`cdb ([a-z]+)", document.read_text(encoding="utf-8")):
            assert name in known, f"{document.name}: cdb {name}"


def test_every_verb_says_its_exit_codes() -> None:
    named = dict(verbs())
    for name, command in named.items():
        assert command.epilog == told(name), name
    assert set(OWN) <= set(named)


@pytest.mark.docker
@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("document", ["README.md", "docs/runs.md"])
def test_what_a_newcomer_types_runs_as_it_is_shown(document: str, tmp_path: Path) -> None:
    """The step-by-step block of README and the run of docs/runs.md, word for word, in an empty folder."""
    (tmp_path / "configs").symlink_to(REPOSITORY / "configs")
    for words in shown(REPOSITORY / document):
        if words[0] == "cdb" and "my-agent.yaml" not in words:
            argv = [sys.executable, "-m", "cdb", *words[1:]]
        elif words[0] == "scripts/make_sample_release":
            argv = [sys.executable, "-m", "evaluator.sample_release", *words[1:]]
        else:
            continue  # scripts/demo and scripts/test have tests of their own
        env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        ended = subprocess.run(
            argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip
        assert ended.returncode == 0, f"{' '.join(words)}\n{ended.stdout[-1500:]}{ended.stderr[-1500:]}"
