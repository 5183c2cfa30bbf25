"""Under `packages: mirror` npm and pip find what their registries have, over the read-only mirror, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_index import Index, serving
from fake_registry import Registry, running

from bench.errors import InfraError, UsageError
from bench.journal import read_journal
from bench.task import open_solver_inputs
from harness.agents.catalogue import find_agent
from harness.models import Conditions
from harness.packages import check_registries
from harness.run import SolveSettings, SolveSummary, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag

SCRIPT = r"""
npm install --no-save one 2> npm.err; node -p 'require("one/package.json").version' > npm.txt; rm -rf node_modules
pip install -q two 2> pip.err; python3 -c 'import two; print(two.version)' > pip.txt 2>> pip.err
curl -sS -o /dev/null -w '%{http_code}' -X POST -d x=1 http://127.0.0.1:3141/legacy/ > post.status
curl -sS -o /dev/null -w '%{http_code}' http://127.0.0.1:4873/-/v1/search?text=x > search.status
curl -sS -o /dev/null -w '%{http_code}' http://example.org/ > else.status 2> /dev/null
true
"""


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Registry, Index]]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with running(Registry()) as npm, serving(Index()) as pypi:
        npm.add("one", "1.2.3")
        pypi.add("two", "4.5.6")
        monkeypatch.setenv("CDB_NPM_REGISTRY", npm.address)
        monkeypatch.setenv("CDB_PIP_INDEX", f"{pypi.address}/simple")
        yield npm, pypi


def solved(
    make_dataset: Callable[..., Path], tmp_path: Path, script: str, conditions: Conditions
) -> tuple[SolveSummary, dict[str, Any]]:
    (tmp_path / "mine.yaml").write_text(
        yaml.safe_dump({"kind": "command", "name": "mine", "argv": ["bash", "-c", script]})
    )
    conditions.check()
    tasks = open_solver_inputs(make_dataset({"a": {"index.html": "x"}}), ())
    settings = SolveSettings(tmp_path / "runs", image=image_tag("solver"), timeout_s=120, conditions=conditions)
    summary = solve(tasks, find_agent(str(tmp_path / "mine.yaml")), settings, DockerSandbox, lambda _line: None)
    records = read_journal(summary.entry / "journal.jsonl").records
    (trial,) = (record for record in records if record["type"] == "trial")
    return summary, trial


@pytest.mark.docker
def test_npm_and_pip_install_over_the_mirror_and_every_package_is_on_record(
    registries: tuple[Registry, Index], make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    summary, trial = solved(make_dataset, tmp_path, SCRIPT, Conditions(packages="mirror"))
    assert trial["outcome"] == "ok", trial["reason"]
    left = summary.submissions / "a"
    said = {
        path.name: path.read_text().strip() for path in left.iterdir() if path.suffix in (".txt", ".status", ".err")
    }
    assert (said["npm.txt"], said["pip.txt"]) == ("1.2.3", "4.5.6"), said
    assert (said["post.status"], said["search.status"], said["else.status"]) == ("403", "403", "000")
    lock = json.loads((summary.entry / "lock.json").read_text())["conditions"]
    assert (lock["packages"], lock["egress"], lock["side_models"]) == ("mirror", "none", "denied")
    told = trial["packages"]
    assert (told["npm"], told["pypi"], told["refused"], told["failed"]) == (["one"], ["two"], 2, 0)
    lines = [json.loads(line) for line in (summary.entry / "trials/a/1" / told["log"]).read_text().splitlines()]
    assert len(lines) == told["asked"]
    files = {(line["registry"], line["item"]) for line in lines if line["kind"] in ("tarball", "file")}
    assert files == {("npm", "one-1.2.3.tgz"), ("pypi", "two-4.5.6-py3-none-any.whl")}


@pytest.mark.docker
def test_without_the_condition_there_is_no_registry(
    registries: tuple[Registry, Index], make_dataset: Callable[..., Path], tmp_path: Path
) -> None:
    script = "ls / > root.txt; env > env.txt; curl -s http://127.0.0.1:3141/simple/two/; echo $? > curl.status; true"
    summary, trial = solved(make_dataset, tmp_path, script, Conditions())
    left = summary.submissions / "a"
    assert "packages" not in trial
    assert (
        "mirror" not in left.joinpath("root.txt").read_text()
        and "PIP_INDEX_URL" not in (left / "env.txt").read_text()
    )
    assert left.joinpath("curl.status").read_text().strip() == "7"


def test_a_condition_that_does_not_exist_and_a_machine_without_registries_are_refused_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="--packages 'all' is not known; choose one of none, mirror"):
        Conditions(packages="all").check()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CDB_NPM_REGISTRY", "http://127.0.0.1:9")
    monkeypatch.delenv("CDB_PIP_INDEX", raising=False)
    with pytest.raises(InfraError, match="CDB_PIP_INDEX"):
        check_registries()
