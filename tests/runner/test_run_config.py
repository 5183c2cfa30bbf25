"""A run's file is read strictly, chooses its tasks the same way each time, and says what it may cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench.errors import UsageError
from runner import steps
from runner.config import DatasetPart, RunConfig, read_config
from runner.entries import entries
from runner.preview import preview
from runner.scope import choose

REPOSITORY = Path(__file__).parent.parent.parent
SHIPPED = sorted((REPOSITORY / "configs/runs").glob("*.yaml"))
MINIMAL = {"name": "r", "agents": ["noop"], "judges": [{"model": "recorded"}]}
RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"jugdes": []}, "jugdes: no such key; did you mean judges?"),
        ({"dataset": {"atachment": ["audio"]}}, "dataset.atachment: no such key; did you mean attachment?"),
        ({"budget": {"max_dollars": 1}}, "budget.max_dollars: no such key; known here: max_requests, max_tokens"),
        ({"agents": [{"agent": "noop", "modles": []}]}, "agents.0.modles: no such key; did you mean models?"),
        ({"judges": [{"model": "a", "refuters": "b"}]}, "judges.0.refuters: no such key; did you mean refuter?"),
        ({"attempts": 0}, "attempts: Input should be greater than or equal to 1"),
        ({"dataset": {"shard": "3/2"}}, "there is no part 3 of 2"),
        ({"conditions": {"egress": "some"}}, "conditions.egress: Input should be 'none', 'frozen' or 'open'"),
        ({"judges": [{"model": "a"}, {"model": "a"}]}, "two judges have the same name"),
    ],
)
def test_c138_a_misspelt_key_or_value_is_an_error_that_says_what_was_meant(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(MINIMAL | changed))
    with pytest.raises(UsageError) as refused:
        read_config(path)
    assert message in str(refused.value)


def test_c138_a_key_given_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(MINIMAL) + "name: other\n")
    with pytest.raises(UsageError, match="'name' is given twice"):
        read_config(path)


def test_c138_limits_that_cannot_be_meant_are_warned_of() -> None:
    config = RunConfig.model_validate(
        MINIMAL | {"budget": {"max_usd": 0, "max_tokens": 0, "max_requests": 0}, "dataset": {"seed": 1}}
    )
    said = "\n".join(config.warnings())
    assert "every cap is lifted" in said
    assert "dataset.seed does nothing" in said


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_run_can_be_read_and_explains_itself(path: Path) -> None:
    config = read_config(path)
    assert config.name == path.stem
    assert path.read_text().startswith("# ")


def test_the_paper_like_and_the_strict_profile_differ_where_the_protocol_says() -> None:
    paper, strict = (read_config(REPOSITORY / f"configs/runs/me96-{name}.yaml") for name in ("paper", "strict"))
    assert (paper.conditions.egress, paper.conditions.hosted_tools, paper.column) == ("open", True, "card")
    assert paper.budget.max_usd == 0
    assert (strict.conditions.egress, strict.conditions.hosted_tools, strict.column) == ("none", False, "witnessed")


def test_the_matrix_is_agents_by_models_by_attempts() -> None:
    config = RunConfig.model_validate(
        MINIMAL
        | {"agents": [{"agent": "noop", "models": []}, {"agent": "replay-gold", "attempts": 3}], "attempts": 2}
    )
    assert [e.name for e in entries(config)] == [
        "noop__none__1", "noop__none__2", "gold__none__1", "gold__none__2", "gold__none__3",
    ]  # fmt: skip


def test_an_agent_that_takes_no_model_is_one_entry_whatever_models_there_are() -> None:
    config = RunConfig.model_validate(MINIMAL | {"models": ["big", "small"]})
    assert [(e.name, e.model) for e in entries(config)] == [("noop__none__1", None)]


def test_only_settings_that_differ_become_options_and_no_evaluation_path_reaches_the_solver() -> None:
    config = RunConfig.model_validate(MINIMAL | {"conditions": {"hosted_tools": True}, "budget": {"max_usd": 3}})
    argv = steps.solve(config, entries(config)[0], ["a", "b"], "infra")
    assert argv[-7:] == ["--max-usd", "3.0", "--hosted-tools", "--only", "a,b", "--retry", "infra"]
    assert not [part for part in argv if "evaluation" in part]
    frozen = RunConfig.model_validate(MINIMAL | {"dataset": {"frozen": "store"}})
    judged = steps.judge(frozen, entries(config)[0], frozen.judges[0], Path("results"), None)
    assert judged[-2:] == steps.preflight(frozen, [])[-2:] == ["--frozen", "store"]
    conditions = {"conditions": {"egress": "frozen", "block": ["example.org"]}}
    solving = RunConfig.model_validate(MINIMAL | {"dataset": {"frozen": "store"}} | conditions)
    argv = steps.solve(solving, entries(config)[0], [], None)
    assert argv[-6:] == ["--egress", "frozen", "--frozen", "store", "--block", "example.org"]
    plain = steps.solve(RunConfig.model_validate(MINIMAL), entries(config)[0], [], None)
    assert not {"--max-usd", "--egress", "--hosted-tools", "--media", "--only", "--retry"} & set(plain)


@pytest.fixture
def root(make_dataset: Callable[..., Path]) -> Path:
    files = {f"c{n}": {"index.html": "x"} for n in range(6)}
    files["c1"]["_attachments/a.mp3"] = files["c4"]["_attachments/a.mp3"] = "x"
    return make_dataset(files, root="work/solver-inputs").parent


@pytest.mark.parametrize(
    ("part", "ids"),
    [
        ({}, []),
        ({"attachment": ["audio"]}, ["c1", "c4"]),
        ({"limit": 2}, ["c0", "c1"]),
        ({"shard": "2/3"}, ["c1", "c4"]),
        ({"only": ["c5", "c2"]}, ["c2", "c5"]),
    ],
)
def test_a_scope_is_chosen_the_same_way_each_time(root: Path, part: dict[str, object], ids: list[str]) -> None:
    dataset, only = choose(DatasetPart.model_validate({"root": root} | part))
    assert only == ids
    assert dataset.scope["whole"] == (not ids)


def test_a_seed_draws_tasks_and_shards_share_them_out(root: Path) -> None:
    first = choose(DatasetPart(root=root, limit=3, seed=7))[1]
    assert first == choose(DatasetPart(root=root, limit=3, seed=7))[1]
    assert len(first) == 3
    assert {tuple(choose(DatasetPart(root=root, limit=3, seed=s))[1]) for s in range(20)} != {tuple(first)}
    shards = [choose(DatasetPart(root=root, shard=f"{n}/4"))[1] for n in (1, 2, 3, 4)]
    assert sorted(case for shard in shards for case in shard) == [f"c{n}" for n in range(6)]


def test_a_scope_without_a_task_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="leave no task"):
        choose(DatasetPart(root=root, attachment=["video"]))


def test_c139_an_unknown_price_is_unknown_and_a_known_one_is_priced(root: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent.yaml"
    agent.write_text("kind: command\nname: mine\nargv: ['true']\n")

    gateway = tmp_path / "gateway.yaml"
    gateway.write_text("prices: {priced: {input: 3, output: 15, cache_read: 0.3}}\n")
    common = {"dataset": {"root": str(root)}, "gateway": str(gateway)}
    agents = [{"agent": str(agent), "models": ["priced"]}]
    found = preview(RunConfig.model_validate(MINIMAL | {"agents": agents, **common}))
    role = found["roles"][0]
    assert role["calls"] == {"low": 90, "expected": 360, "worst": 2400}
    assert role["usd"]["expected"] == pytest.approx(6 * (0.75 + 0.75 + 0.525), abs=0.02)
    assert role["usd"]["worst"] == 60.0
    agents = [{"agent": str(agent), "models": ["unheard-of"]}]
    unknown = preview(RunConfig.model_validate(MINIMAL | {"agents": agents, **common}))
    assert (unknown["usd"]["low"], unknown["usd"]["expected"], unknown["usd"]["worst"]) == (None, None, 60.0)


def test_c139_a_dry_run_starts_nothing_and_calls_nobody(run_cdb: RunCdb, tmp_path: Path) -> None:
    # An engine that cannot be reached and a folder that cannot be written: neither is needed.
    config = yaml.safe_load((REPOSITORY / "configs/runs/sample.yaml").read_text())
    config |= {"out": str(tmp_path / "out"), "dataset": {"release": "sample", "root": str(tmp_path / "work")}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    env = {"DOCKER_HOST": "unix:///nowhere.sock"}
    found = run_cdb(["run", tmp_path / "run.yaml", "--dry-run"], env=env)
    assert found.returncode == 0, found.stderr
    assert "20 trials" in found.stdout
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "work").exists()


def test_a_folder_that_is_no_run_is_named(run_cdb: RunCdb, tmp_path: Path) -> None:
    told = run_cdb(["status", tmp_path])
    assert (told.returncode, "run.json is missing" in told.stderr) == (2, True)


def test_no_control_code_is_written_to_a_pipe(run_cdb: RunCdb) -> None:
    for arguments in (["--help"], ["run", "--help"], ["run", "configs/runs/sample.yaml", "--dry-run"]):
        told = run_cdb(arguments, env={"FORCE_COLOR": "", "TERM": "xterm-256color"})
        assert "\x1b" not in told.stdout + told.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_completion(run_cdb: RunCdb, shell: str) -> None:
    name = {"bash": "complete_bash", "zsh": "complete_zsh", "fish": "complete_fish"}[shell]
    env = {**os.environ, "_CDB_COMPLETE": name, "COMP_WORDS": "cdb comp", "COMP_CWORD": "1"}
    env |= {"_TYPER_COMPLETE_ARGS": "cdb comp", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    argv = ["-c", "from cdb import app; app(prog_name='cdb')"]
    told = subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, env=env, cwd=REPOSITORY, check=False
    )
    assert "compare" in told.stdout, told


def test_c136_a_run_refuses_first_on_a_machine_that_is_not_ready(run_cdb: RunCdb, root: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(MINIMAL | {"out": str(tmp_path / "out"), "dataset": {"root": str(root)}}))
    refused = run_cdb(["run", path], env={"DOCKER_HOST": "unix:///nowhere.sock"})
    assert refused.returncode == 1
    assert "this machine is not ready" in refused.stderr
    assert "engine: " in refused.stderr
    assert not list((tmp_path / "out").glob("noop__none__1/journal.jsonl"))
