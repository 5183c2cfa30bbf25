"""What a container holds before its agent starts: the application, the request and the agent's own files."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from bench.errors import InfraError
from bench.task import VERSION_CONTROL, Task
from harness.agents.agent import PROMPT_FILE, Launch
from harness.digests import put_digests
from harness.prompt import prompt
from sandboxes.sandbox import HOME, WORKSPACE, Sandbox


def fill(sandbox: Sandbox, task: Task, launch: Launch, folder: Path) -> None:
    """Put the application into the workspace, prompt and the agent's own files into its home."""
    with tempfile.TemporaryDirectory(prefix="cdb-home-") as scratch:
        home = Path(scratch)
        prompt_file = folder / "request.md"
        prompt_file.write_bytes(prompt(task).encode("utf-8", "surrogatepass"))
        shutil.copyfile(prompt_file, home / Path(PROMPT_FILE).name)
        for name, source in launch.home_files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, bytes):
                (home / name).write_bytes(source)
            else:
                shutil.copyfile(source, home / name)
        put_digests(task, home)
        sandbox.put_tree(home, HOME)
        _put_application(sandbox, task)


def _put_application(sandbox: Sandbox, task: Task) -> None:
    """Copy the application in; its history, if it has one, is replaced by a single baseline commit (C18). Histories
    further down (of sub-modules) are left away."""
    sandbox.put_tree(task.project, WORKSPACE, without=frozenset({VERSION_CONTROL}))
    if not os.path.lexists(task.project / VERSION_CONTROL):
        return
    identity = ["-c", "user.name=baseline", "-c", "user.email=baseline@localhost"]
    for argv in (["init", "-q"], ["add", "-A", "-f"], [*identity, "commit", "-q", "-m", "baseline", "--allow-empty"]):
        ended = sandbox.exec(["git", *argv], deadline_s=120)
        if not ended.ok:
            raise InfraError(f"{task.case_id}: `git {argv[0]}` for the baseline commit ended with {ended.exit_code}")
