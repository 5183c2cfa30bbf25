"""`cdb solve` as a user types it, with agents that have a model; the model is scripted, the rest is real."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from fakes.model_server import ModelServer, run, say

from bench.cache import cache_folder
from sandboxes.packs.recipe import RECIPES
from sandboxes.packs.store import find_pack

pytestmark = pytest.mark.docker
REPOSITORY = Path(__file__).parent.parent.parent
USERS_PACKS = cache_folder("agents")
DOCUMENT = (REPOSITORY / "docs/agents.md").read_text(encoding="utf-8")
SCENARIO = {"turns": [[run("echo hello > hello.txt")], [say("Done.")]]}
Cdb = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def packs(own_cache: None) -> None:
    shown = Path(os.environ["CDB_CACHE"]) / "agents"
    if not shown.exists():
        shown.symlink_to(USERS_PACKS, target_is_directory=True)


@pytest.mark.parametrize(("name", "protocol"), [("claude-code", "anthropic"), ("codex", "openai-responses")])
def test_an_agent_solves_the_sample_cases_two_at_a_time(
    run_cdb: Cdb, tmp_path: Path, packs: None, name: str, protocol: str
) -> None:
    assert find_pack(RECIPES[name]), f"{name} is not installed: cdb agents install {name}"
    with ModelServer(SCENARIO, key="the-real-key") as server:
        upstream = {"base_url": server.address, "protocols": [protocol], "key_env": "FAKE_KEY"}
        (tmp_path / "gateway.yaml").write_text(yaml.safe_dump({"upstreams": {"fake": upstream}}))
        args = ["solve", "--dataset", REPOSITORY / "harness/sample", "--agent", name, "--model", "model-1"]
        args += ["--gateway", tmp_path / "gateway.yaml", "--upstream", "fake", "--out", tmp_path / "run"]
        done = run_cdb([*args, "--concurrency", "2", "--json"], env={"FAKE_KEY": "the-real-key"})
        again = run_cdb([*args, "--concurrency", "2", "--json"], env={"FAKE_KEY": "the-real-key"})
        asked = len([request for request in server.requests() if request["bytes"] > 1000])
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["outcomes"].values()) == {"ok"}
    assert len(told["outcomes"]) == 5
    for case in told["outcomes"]:
        assert (Path(told["submissions"]) / case / "hello.txt").read_text() == "hello\n"
    assert asked == 10  # two calls a case, and none when the same command is given again
    assert json.loads(again.stdout) == told
    lock = json.loads((Path(told["entry"]) / "lock.json").read_text())
    assert lock["conditions"] == {
        "egress": "none", "hosted_tools": "off", "media": "native", "packages": "none", "side_models": "denied",
    }  # fmt: skip
    assert lock["agent"]["pack"]["version"] == RECIPES[name].version
    assert lock["model"]["upstream"] == "fake"
    manifest = json.loads((Path(told["submissions"]) / "task-board.manifest.json").read_text())
    assert manifest["usage"]["tokens"]["input"] == 2000
    assert manifest["flags"] == ["cost_unknown"]


def test_c144_the_documents_recipe_works_word_for_word(run_cdb: Cdb, tmp_path: Path, packs: None) -> None:
    agent, gateway = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL)[:2]
    assert len(agent.splitlines()) < 10
    command = next(line for line in DOCUMENT.splitlines() if line.startswith("cdb solve") and "one-shot.yaml" in line)
    (tmp_path / "one-shot.yaml").write_text(agent)
    with ModelServer({"turns": [[say("Done.")]]}, key="the-real-key") as server:
        (tmp_path / "gateway.yaml").write_text(gateway.replace("http://127.0.0.1:8099", server.address))
        (tmp_path / "work").mkdir()
        (tmp_path / "work/solver-inputs").symlink_to(REPOSITORY / "harness/sample", target_is_directory=True)
        done = run_cdb(
            [*shlex.split(command)[1:], "--json"],
            env={"MY_KEY": "the-real-key", "PYTHONPATH": str(REPOSITORY)},
            cwd=tmp_path,
        )
        asked = [request for request in server.requests() if request["path"].endswith("/chat/completions")]
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["outcomes"].values()) == {"ok"}
    assert len(asked) == 1 + 5  # the model is asked for one word first
    answer = json.loads((tmp_path / told["submissions"] / "task-board" / "answer.json").read_text())
    assert answer["choices"][0]["message"]["content"] == "Done."


def test_c137_a_misspelt_model_is_found_by_one_call_and_no_trial_begins(
    run_cdb: Cdb, tmp_path: Path, packs: None
) -> None:
    with ModelServer({"models": ["opus", "sonnet"]}, key="the-real-key") as server:
        upstream = {"base_url": server.address, "protocols": ["anthropic"], "key_env": "FAKE_KEY"}
        (tmp_path / "gateway.yaml").write_text(yaml.safe_dump({"upstreams": {"fake": upstream}}))
        named = [
            "--agent",
            "claude-code",
            "--model",
            "opsu",
            "--gateway",
            tmp_path / "gateway.yaml",
            "--upstream",
            "fake",
        ]
        solving = ["solve", "--dataset", REPOSITORY / "harness/sample", "--out", tmp_path / "run", *named]
        done = run_cdb(solving, env={"FAKE_KEY": "the-real-key"})
        calls = [request for request in server.requests() if request["method"] == "POST"]
        doctor = run_cdb(["doctor", *named, "--json"], env={"FAKE_KEY": "the-real-key"})
    assert done.returncode == 2
    assert "did you mean opus" in done.stderr and "known: opus, sonnet" in done.stderr
    assert len(calls) == 1 and not (tmp_path / "run").exists()
    check = next(check for check in json.loads(doctor.stdout)["checks"] if check["name"] == "model")
    assert (check["ok"], doctor.returncode) == (False, 1) and "did you mean opus" in check["detail"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "needs a model"),
        (["--model", "m", "--egress", "frozen"], "--frozen STORE"),
        (["--model", "m", "--egress", "opne"], "choose one of none, frozen, open"),
        (["--model", "m", "--upstream", "opneai"], "no upstream 'opneai'"),
        (["--model", "m", "--upstream", "openai"], "does not speak anthropic"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_before_anything_starts(
    run_cdb: Cdb, tmp_path: Path, packs: None, more: list[str], said: str
) -> None:
    args = ["solve", "--dataset", REPOSITORY / "harness/sample", "--agent", "claude-code", "--out", tmp_path / "run"]
    done = run_cdb([*args, *more])
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "run").exists()


def test_c129_a_key_that_is_not_set_ends_the_run_with_its_name(run_cdb: Cdb, tmp_path: Path, packs: None) -> None:
    args = ["solve", "--dataset", REPOSITORY / "harness/sample", "--agent", "claude-code", "--model", "m"]
    done = run_cdb([*args, "--out", tmp_path / "run", "--only", "task-board"], env={"ANTHROPIC_API_KEY": ""})
    assert done.returncode == 2
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_the_agents_are_listed_with_what_they_need(run_cdb: Cdb, packs: None) -> None:
    rows = {row["name"]: row for row in json.loads(run_cdb(["agents", "--json"]).stdout)["agents"]}
    assert rows["claude-code"]["key_env"] == "ANTHROPIC_API_KEY"
    assert rows["claude-code"]["native"] == ["document", "image"]
    assert rows["codex"]["installed"] is True
    assert rows["noop"]["installed"] is None
    assert "Python 3.12" in rows["openhands"]["needs"]
    unknown = run_cdb(["agents", "install", "claude-cod"])
    assert unknown.returncode == 2
    assert "claude-code" in unknown.stderr


def test_a_pack_that_was_changed_is_not_run(tmp_path: Path, packs: None) -> None:
    import shutil

    from bench.errors import DataError
    from sandboxes.packs.store import Pack

    pack = find_pack(RECIPES["gemini-cli"])
    assert pack
    pack.check()
    copy = tmp_path / "pack"
    shutil.copytree(pack.folder, copy, symlinks=True)
    changed = next((copy / "tree").rglob("package.json"))
    changed.write_text(changed.read_text() + " ")
    with pytest.raises(DataError, match="--again"):
        Pack(pack.recipe, copy, pack.record).check()


def test_the_document_names_the_pinned_versions() -> None:
    for name, recipe in RECIPES.items():
        assert re.search(rf"\| `{name}` \| {re.escape(recipe.version)} \|", DOCUMENT), name
