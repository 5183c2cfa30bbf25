"""Rules about the sources themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout.decode()
    return [REPOSITORY / name for name in listed.split("\0") if name]


def test_only_the_evaluator_speaks_of_rubric_files() -> None:
    speaking = [
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("bench", "sandboxes", "harness")
        for path in (REPOSITORY / folder).rglob("*.py")
        if re.search(r"rubric\.json|evaluation_root\s*/|RUBRIC\s*=", path.read_text(encoding="utf-8"))
    ]
    assert speaking == []


def test_the_solver_side_holds_no_criterion_text() -> None:
    import json

    for rubric in (REPOSITORY / "evaluator/sample/cases").glob("*/rubric.json"):
        criteria = [entry["criterion"] for entry in json.loads(rubric.read_text())["rubrics"]]
        for path in (REPOSITORY / "harness/sample").rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert not [c for c in criteria if c.encode() in content], path


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_c131_no_compromised_release_is_locked_and_every_line_has_hashes(lock: str) -> None:
    text = (REPOSITORY / lock).read_text()
    pinned = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", text, re.M))
    assert pinned.get("litellm") not in ("1.82.7", "1.82.8")
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
    assert all("--hash=sha256:" in entry for entry in entries if "==" in entry)
    assert "!=1.82.7" in (REPOSITORY / "pyproject.toml").read_text()


def test_no_registry_address_and_no_path_of_one_machine_is_written_down() -> None:
    names = [
        "registry." + "npmjs",
        "pypi." + "org",
        "deb." + "debian",
        "files." + "pythonhosted",
        str(REPOSITORY) + "/",
    ]
    for path in tracked("*.py", "*.md", "*.json", "*.yaml", "*.lock", "*Dockerfile", "scripts/*", ".ci/*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not [name for name in names if name in text], path


def test_the_wheel_holds_what_an_installed_copy_needs_and_no_more(tmp_path: Path) -> None:
    import sys
    import zipfile

    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert {
        "cdb.py", "configs/agents/noop.yaml", "sandboxes/images/base/Dockerfile", "sandboxes/seccomp/browser.json",
        "evaluator/templates/report.css", "harness/sample/cases/plant-shop/edits/gold.patch",
        "harness/sample/cases/expense-report/project/package-lock.json",
        "evaluator/sample/cases/plant-shop/witnesses.json", "evaluator/static_server.py",
    } <= set(names)  # fmt: skip
    tops = {"cdb.py", "bench", "sandboxes", "harness", "evaluator", "runner", "verbs", "configs"}
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == tops
