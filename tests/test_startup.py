"""`cdb --help` stays light, and the solve process never touches a rubric."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ALLOWED = {
    "typer",
    "click",
    "shellingham",
    "annotated_doc",
    "typing_extensions",
    "cdb",
    "verbs",
    "bench",
    "rich",
    "colorama",
}
"""Packages outside the standard library that `cdb --help` may load."""
HEAVY = {"litellm", "docker", "playwright", "pyarrow", "numpy", "pydantic", "jinja2", "aiohttp", "yaml", "git"}

LIST_MODULES = """
import json, sys
before = set(sys.modules)
sys.argv = ["cdb", "--help"]
from cdb import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})), file=sys.stderr)
"""

WATCH_OPENS = """
import os, sys
seen = []
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        seen.append(os.fsdecode(args[0]))
sys.addaudithook(watch)
sys.argv = ["cdb", *sys.argv[2:]]
from cdb import main
try:
    main()
finally:
    with open(LOG, "w") as log:
        log.write("\\n".join(seen))
""".replace("LOG", "os.environ['CDB_TEST_OPENS']")


def test_help_loads_nothing_heavy() -> None:
    ended = subprocess.run([sys.executable, "-c", LIST_MODULES], capture_output=True, text=True, check=True)
    loaded = set(json.loads(ended.stderr.strip().splitlines()[-1]))
    outside = loaded - set(sys.stdlib_module_names)
    assert not outside & HEAVY
    assert {name.lstrip("_") for name in outside} <= ALLOWED, sorted(outside - ALLOWED)


@pytest.mark.docker
def test_the_solve_process_opens_no_rubric_and_nothing_of_the_evaluation_root(
    make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    root = make_dataset({"one": {"index.html": "x"}}, root="work/solver-inputs")
    evaluation = make_dataset({"one": {"index.html": "x"}}, root="work/evaluation-inputs")
    (evaluation / "cases/one/rubric.json").write_text('["A secret criterion."]')
    log = tmp_path / "opens.txt"
    arguments = ["--", "solve", "--dataset", str(root), "--agent", "noop", "--out", str(tmp_path / "runs")]
    ended = subprocess.run(
        [sys.executable, "-c", WATCH_OPENS, *arguments], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "CDB_TEST_OPENS": str(log)}, cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    opened = log.read_text().splitlines()
    assert any(str(root) in path for path in opened), "the hook saw nothing: the test is blind"
    assert [p for p in opened if "evaluation-inputs" in p or "rubric" in p.lower().rpartition("/")[2]] == []
    assert [p for p in opened if "/evaluator/sample/" in p] == []
