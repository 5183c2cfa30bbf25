"""C14: nothing a solver can reach holds a criterion's text: file system, workspace, home, environment, mounts."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.release import extract, open_release
from bench.task import open_dataset
from evaluator.rubric import read_rubric
from evaluator.sample_release import make_sample_release
from harness.agents.catalogue import find_agent
from harness.run import SolveSettings, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import engine
from sandboxes.images import image_tag
from sandboxes.sandbox import HOME, WORKSPACE, SandboxSpec

pytestmark = [pytest.mark.docker, pytest.mark.slow]
NEEDLE_CHARS = 40
"""A criterion counts as leaked when its first 40 characters are found: enough to be no accident."""


class Watched(DockerSandbox):
    """A solver's sandbox that is searched while the agent's container is frozen, just before the copy."""

    found: dict[str, dict[str, bytes]]
    exported = False

    def freeze(self) -> None:
        super().freeze()
        container = engine().containers.get(self.id)
        seen = {"inspect": json.dumps(container.attrs).encode()}
        for folder in (WORKSPACE, HOME, "/tmp"):
            stream, _ = container.get_archive(folder)
            seen[folder] = b"".join(stream)
        seen["changed files outside"] = json.dumps(container.diff() or []).encode()
        type(self).found[container.labels["cdb.case"]] = seen
        if not type(self).exported:
            type(self).exported = True
            seen["file system"] = b"\n".join(_hits(container.export(), type(self).needles))

    needles: Sequence[bytes] = ()


def _hits(chunks: Iterable[bytes], needles: Sequence[bytes]) -> Iterator[bytes]:
    """Needles found in a stream, across the borders of its pieces."""
    longest = max(len(needle) for needle in needles)
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        for needle in needles:
            if needle in window:
                yield needle
        tail = window[-longest:]


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("leaks")
    return extract(open_release(make_sample_release(folder / "release")), folder / "work")


def needles(evaluation: Path) -> list[bytes]:
    cases = (evaluation / "cases").iterdir()
    texts = [c.text for case in cases for c in read_rubric(case)]
    plain = [text[:NEEDLE_CHARS].encode() for text in texts]
    return [*plain, *(json.dumps(text)[1 : NEEDLE_CHARS + 1].encode() for text in texts), b"rubric.json"]


def test_c14_no_solver_container_holds_a_criterion(
    roots: tuple[Path, Path], tmp_path: Path, make_dataset: Callable[..., Path]
) -> None:
    solver, evaluation = roots
    Watched.found, Watched.exported, Watched.needles = {}, False, needles(evaluation)
    dataset = open_dataset(solver)
    settings = SolveSettings(out=tmp_path / "runs", image=image_tag("solver"), concurrency=2)
    summary = solve(dataset, find_agent("replay-gold"), settings, Watched, lambda _line: None)
    assert set(summary.outcomes.values()) == {"ok"}
    assert set(Watched.found) == {task.case_id for task in dataset.tasks}
    for case, places in Watched.found.items():
        with tarfile.open(fileobj=io.BytesIO(places[WORKSPACE])) as workspace:
            assert len(workspace.getnames()) > 3, "the workspace was not seen"
        for place, content in places.items():
            hits = list(_hits([content], Watched.needles))
            assert hits == [], f"{case}: {place} holds {hits[:1]}"
            assert str(evaluation).encode() not in content, f"{case}: {place} names the evaluation root"


def test_the_search_finds_a_planted_criterion(roots: tuple[Path, Path]) -> None:
    planted = needles(roots[1])[0]
    spec: dict[str, Any] = {"role": "solver", "image": image_tag("solver"), "run": "leak-test"}
    with DockerSandbox(SandboxSpec(**spec)) as box:
        box.exec(["sh", "-c", 'printf %s "$1" > /workspace/notes.txt', "sh", planted.decode()], deadline_s=20)
        stream, _ = engine().containers.get(box.id).get_archive(WORKSPACE)
        assert list(_hits(stream, [planted])) == [planted]
