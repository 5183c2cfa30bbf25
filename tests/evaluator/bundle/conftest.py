"""One bundle for the whole suite, unpacked anew for each test that spoils it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from judged_run import JudgedRun, make_judged_run

from bench.unpack import unpack
from evaluator.bundle.layout import CAPS, tree_of
from evaluator.bundle.write import write_bundle


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    return make_judged_run(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="session")
def bundle(judged: JudgedRun) -> Path:
    out = judged.root / "bundle.tar.gz"
    write_bundle([judged.results], out, start=True, trajectories=True, environment={})
    return out


@pytest.fixture
def unpacked(bundle: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    folder.mkdir()
    unpack(bundle, folder, CAPS, tree_of, any_name=True)
    return folder


@pytest.fixture
def forge(unpacked: Path) -> Callable[[Callable[[Path], None]], Path]:
    """Changes the unpacked bundle, then makes bundle.json and the scores fit again, as a careful forger would."""

    def make(change: Callable[[Path], None]) -> Path:
        from forging import seal_again

        change(unpacked)
        seal_again(unpacked)
        return unpacked

    return make
