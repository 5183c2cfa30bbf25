"""Real containers for these tests; each is removed by leaving its `with` block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.sandbox import MIB, Exec, Limits, SandboxSpec

RUN = "test-sandboxes"
LIMITS = Limits(
    memory_bytes=256 * MIB,
    cpus=1.0,
    pids=64,
    workspace_bytes=32 * MIB,
    home_bytes=8 * MIB,
    tmp_bytes=16 * MIB,
    shm_bytes=16 * MIB,
)

BACK_ENDS = {"docker": DockerSandbox}
"""Name → class; each must pass the conformance suite (docs/security.md says which were tried and did not)."""

MakeBox = Callable[..., DockerSandbox]
Run = Callable[..., tuple[Exec, str, str]]


@pytest.fixture(params=BACK_ENDS.values(), ids=BACK_ENDS)
def back_end(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def small_spec() -> SandboxSpec:
    return SandboxSpec(role="solver", image=image_tag("base"), run=RUN, case="case-1", limits=LIMITS)


@pytest.fixture
def make_box(back_end: Any, small_spec: SandboxSpec) -> Iterator[MakeBox]:
    """Starts small containers; keyword arguments replace fields of their `SandboxSpec`."""
    with ExitStack() as stack:

        def make(**changes: Any) -> DockerSandbox:
            return stack.enter_context(back_end(replace(small_spec, **changes)))

        yield make


@pytest.fixture
def box(make_box: MakeBox) -> DockerSandbox:
    return make_box()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """run(box, argv…) → how it ended, and what it printed on both streams."""

    def run(
        box: DockerSandbox, *argv: str, deadline_s: float = 20.0, stdin: Path | None = None
    ) -> tuple[Exec, str, str]:
        out, err = tmp_path / "stdout", tmp_path / "stderr"
        ended = box.exec(list(argv), deadline_s=deadline_s, stdin=stdin, stdout=out, stderr=err)
        return ended, out.read_text(errors="replace"), err.read_text(errors="replace")

    return run
