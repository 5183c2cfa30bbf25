"""C28 at every stage of a trial: a run that is stopped or killed there leaves no container, and never another's."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from engine_proxy import EngineProxy, Rule

from bench.journal import of_type, read_journal
from bench.submission import check_seal, read_manifest
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.reap import leftovers, reap
from sandboxes.sandbox import SandboxSpec

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.alone,
]  # what a dead run left is looked at, and any other run removes it
REPOSITORY = Path(__file__).parent.parent
CREATE = r"POST .*/containers/create\?name=cdb-solver"
STAGES = {
    "create": (CREATE, signal.SIGINT),
    "start": (r"POST .*/start", signal.SIGTERM),
    "put": (r"PUT .*/archive", signal.SIGINT),
    "exec-create": (r"POST .*/containers/\w+/exec", signal.SIGTERM),
    "exec": (r"GET .*/exec/\w+/json", signal.SIGINT),
    "pause": (r"POST .*/pause", signal.SIGTERM),
    "get": (r"GET .*/archive", signal.SIGINT),
    "remove": (r"DELETE .*/containers", signal.SIGTERM),
}
"""Stage → the request that is held while the signal is sent, and the signal."""


@pytest.fixture(scope="module")
def bystander() -> Iterator[DockerSandbox]:
    """Somebody else's container, alive all the while."""
    with DockerSandbox(SandboxSpec("solver", image_tag("base"), "bystander")) as box:
        yield box
        assert box.exec(["true"], deadline_s=10).ok


@contextlib.contextmanager
def held_at(stage: str, tmp_path: Path, dataset: Path, run: str) -> Iterator[tuple[subprocess.Popen[bytes], Rule]]:
    """A solve run of one trial whose engine holds its request at `stage`."""
    with EngineProxy(Path(f"/tmp/cdb-{uuid.uuid4().hex[:8]}.sock")) as proxy:
        begun = proxy.add(CREATE, "hold")
        if stage == "create":
            rule = begun
        else:
            begun.released.set()
            rule = proxy.add(STAGES[stage][0], "hold", after=begun)
        process = subprocess.Popen(
            [sys.executable, "-m", "cdb", "solve", "--dataset", str(dataset), "--agent", "noop", "--out", str(tmp_path / run)],
            cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "DOCKER_HOST": f"unix://{proxy.path}"},
        )  # fmt: skip
        try:
            assert rule.hit.wait(60), f"the run never came to {stage}"
            yield process, rule
        finally:
            rule.released.set()
            process.kill()
            process.wait()
    proxy.path.unlink(missing_ok=True)


def ours(run: str) -> list[str]:
    return [found.kind for found in leftovers() if found.run == run]


@pytest.mark.parametrize("stage", STAGES)
def test_c28_a_run_stopped_at_any_stage_leaves_nothing(
    tmp_path: Path, make_dataset: Callable[..., Path], bystander: DockerSandbox, stage: str
) -> None:
    run, number = f"stage-{uuid.uuid4().hex[:8]}", STAGES[stage][1]
    with held_at(stage, tmp_path, make_dataset({"one": {"index.html": "x"}}), run) as (process, rule):
        process.send_signal(number)
        time.sleep(0.3)  # the run hears of it while its request is still under way
        rule.released.set()
        began = time.monotonic()
        assert process.wait(timeout=15) == 128 + number
        until = began + 15
        while ours(run) and time.monotonic() < until:
            time.sleep(0.1)
        assert ours(run) == []
    whole_or_nothing(tmp_path / run)


@pytest.mark.parametrize("stage", STAGES)
def test_c28_what_a_run_killed_at_any_stage_leaves_is_reaped_by_the_next(
    tmp_path: Path, make_dataset: Callable[..., Path], bystander: DockerSandbox, stage: str
) -> None:
    run = f"stage-{uuid.uuid4().hex[:8]}"
    with held_at(stage, tmp_path, make_dataset({"one": {"index.html": "x"}}), run) as (process, rule):
        process.kill()
        process.wait()
        rule.released.set()
        removed, until, quiet = [], time.monotonic() + 30, 0
        while quiet < 8 and time.monotonic() < until:  # the engine carries out what was held: until nothing comes
            time.sleep(0.25)
            removed += reap()
            quiet = 0 if ours(run) else quiet + 1
        assert bystander.id not in {found.id for found in removed}
        assert ours(run) == []
    whole_or_nothing(tmp_path / run)


def whole_or_nothing(out: Path) -> None:
    """The journal reads back, and a submission is there only with a seal that fits."""
    (journal,) = out.glob("*/journal.jsonl")
    trials = list(of_type(read_journal(journal).records, "trial"))
    manifest = read_manifest(journal.parent / "submissions", "one")
    if manifest:
        check_seal(journal.parent / "submissions", manifest)
    assert {trial["outcome"] for trial in trials} <= ({"ok"} if manifest else {"cancelled"})
