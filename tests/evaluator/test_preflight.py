"""Start applications are built, served and opened as in a judging, and each one that would be missing is named."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cache import cache_folder
from bench.errors import UsageError
from bench.task import open_dataset
from evaluator.applications import start_build_folder
from evaluator.build import build
from evaluator.preflight import CaseCheck, preflight
from evaluator.serve_plan import learn_plan
from sandboxes.mirror import Mirror

pytestmark = [pytest.mark.docker, pytest.mark.browser]

RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]
WRITE = "require('fs').mkdirSync('dist',{recursive:true});require('fs').writeFileSync('dist/index.html',TEXT);"


def package(start: str = "", build_script: str = "") -> str:
    scripts = {"start": start} if start else {"build": build_script}
    return json.dumps({"name": "app", "version": "1.0.0", "scripts": scripts})


CASES: dict[str, dict[str, str]] = {
    "good": {"index.html": "<title>Good</title><h1>Good</h1><script src='https://cdn.example/x.js'></script>"},
    "picture": {"index.html": "<svg width=9 height=9><rect width=9 height=9></rect></svg>"},
    "late": {"index.html": "<script>setTimeout(() => { document.body.textContent = 'late'; }, 2000)</script>"},
    "blank": {"index.html": "<div id=root></div><script>throw new Error('no root')</script>"},
    "nothing": {"readme.txt": "no application"},
    "unbuilt": {"package.json": package(build_script="node -e \"console.error('it broke here');process.exit(3)\"")},
    "built": {"package.json": package(build_script="node make.js"), "make.js": WRITE.replace("TEXT", "'<h1>Built</h1>'")},
    "ends": {"package.json": package(start="node -e \"console.log('no port given')\"")},
}  # fmt: skip
EXPECTED = {
    "good": ("ok", False), "picture": ("ok", False), "late": ("ok", False), "blank": ("blank", False),
    "nothing": ("unknown_application", True), "unbuilt": ("build_failed", True), "built": ("ok", False),
    "ends": ("serve_failed", True),
}  # fmt: skip


def test_c136_each_application_is_told_apart_and_the_next_call_goes_on(
    make_dataset: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    root = make_dataset(CASES, root="work/solver-inputs")
    command = ["dataset", "preflight", "--dataset", root, "--json"]
    first = run_cdb(command)
    told = json.loads(first.stdout)
    assert first.returncode == 3, first.stderr
    checks = {case["case"]: CaseCheck.model_validate(case) for case in told["cases"]}
    assert {case: (check.status, check.incomplete) for case, check in checks.items()} == EXPECTED
    assert checks["good"].title == "Good"
    assert checks["good"].refused_requests == ["https://cdn.example/x.js"]
    assert "no root" in checks["blank"].reason and "no root" in checks["blank"].console_errors[0]
    assert "it broke here" in checks["unbuilt"].log_tail
    assert (checks["ends"].code, "no port given" in checks["ends"].log_tail) == ("serve_exited", True)
    assert (tmp_path / "work" / str(checks["good"].picture)).stat().st_size > 500
    assert (checks["built"].build_reused, checks["unbuilt"].build_reused) == (False, False)

    (root / "cases/nothing/project/index.html").write_text("<h1>Now</h1>")
    second = run_cdb(command)
    again = {case["case"]: case for case in json.loads(second.stdout)["cases"]}
    assert again["nothing"]["status"] == "ok"
    before = {case["case"]: case for case in told["cases"]}
    for case in ("good", "built"):  # looked up, not made again
        assert again[case]["duration_s"] < before[case]["duration_s"] / 3
    only = run_cdb([*command, "--only", "good,built"])
    assert (only.returncode, json.loads(only.stdout)["ok"]) == (0, True)
    assert len(json.loads((tmp_path / "work/preflight.json").read_text())["cases"]) == len(CASES)


def test_what_preflight_built_is_not_built_again(make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    text = "'<h1>Built for " + tmp_path.name + "</h1>'"
    files = {"package.json": package(build_script="node make.js"), "make.js": WRITE.replace("TEXT", text)}
    root = make_dataset({"one": files})
    assert preflight(root, tmp_path / "preflight.json").ok
    task = open_dataset(root).tasks[0]
    out = start_build_folder(cache_folder("builds"), task.start_digest)
    plan = learn_plan(task.project)
    with Mirror() as mirror:
        built = build(plan, task.project, out, run="test", case="one", mirror=mirror, logs=tmp_path / "logs")
    assert (built.outcome, built.reused) == ("ok", True)


def test_a_report_of_something_else_is_not_overwritten(make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"a": 1}')
    with pytest.raises(UsageError, match="no preflight report"):
        preflight(make_dataset({"one": {"index.html": "x"}}), tmp_path / "mine.json")
    assert (tmp_path / "mine.json").read_text() == '{"a": 1}'
