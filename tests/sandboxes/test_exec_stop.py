"""A caller's own reason ends a run as the deadline does: everything frozen, nothing lost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.sandbox import WORKSPACE, SandboxSpec, TreePolicy

pytestmark = pytest.mark.docker


def test_a_run_that_is_told_to_stop_is_frozen_with_its_work(tmp_path: Path) -> None:
    with DockerSandbox(SandboxSpec("solver", image_tag("base"), run="test-stop")) as box:

        def written() -> bool:
            with suppress(FileNotFoundError):
                return box.read_file(f"{WORKSPACE}/half.txt") == b"half\n"
            return False

        ended = box.exec(
            ["bash", "-c", "echo half > half.txt; trap '' TERM; while :; do date > tick; sleep 0.1; done"],
            deadline_s=60,
            stop=written,
        )
        assert (ended.exit_code, ended.timed_out) == (None, True)
        assert ended.duration_s < 50
        box.get_tree(WORKSPACE, tmp_path / "tree", TreePolicy())
    assert (tmp_path / "tree/half.txt").read_text() == "half\n"


def test_a_run_that_ends_by_itself_is_not_stopped() -> None:
    with DockerSandbox(SandboxSpec("solver", image_tag("base"), run="test-stop")) as box:
        ended = box.exec(["true"], deadline_s=60, stop=lambda: False)
    assert (ended.exit_code, ended.timed_out) == (0, False)
