"""The sample release is made whole from the shipped case sources, twice alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from evaluator.sample_release import make_sample_release

ROOT = Path(__file__).resolve().parents[2]


def test_every_shipped_case_is_in_the_release_and_it_is_the_same_twice(tmp_path: Path) -> None:
    first, second = make_sample_release(tmp_path / "a"), make_sample_release(tmp_path / "b")
    assert (first / "SHA256SUMS").read_bytes() == (second / "SHA256SUMS").read_bytes()
    shipped = sorted(path.name for path in (ROOT / "harness/sample/cases").iterdir())
    manifest = json.loads((first / "manifest.json").read_bytes())
    assert manifest["case_ids"] == shipped
    assert manifest["scope"] == f"Sample-{len(shipped)}"


def test_making_it_reads_the_solvers_side_as_data_and_runs_none_of_its_code(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from evaluator.sample_release import make_sample_release as make; "
        "make(pathlib.Path(sys.argv[1])); print([m for m in sys.modules if m.split('.')[0] == 'harness'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_screenshots_are_small_enough_to_ship() -> None:
    sizes = {
        path: path.stat().st_size for path in (ROOT / "harness/sample/cases").glob("*/project/_annotations/*.png")
    }
    assert sizes
    assert [path.name for path, size_bytes in sizes.items() if size_bytes > 300_000] == []
