"""A misspelt model, a wrong key and an absent provider are found by one cheap call, before any trial (C137)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import ModelServer

from bench.errors import InfraError, UsageError
from bench.journal import of_type, read_journal
from bench.task import open_solver_inputs
from harness.agents.command import CommandAgent
from harness.line import ModelSettings
from harness.model_check import check_model
from harness.run import SolveSettings, solve
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import PROTOCOLS, GatewayConfig, ModelRule, Price, Protocol, Upstream

KEY = "the-operators-key-0123456789"
THERE = ["opus-9", "sonnet-9", "haiku-9"]


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def line(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A gateway's settings for one model; the provider plays a scenario."""
    monkeypatch.setenv("FAKE_KEY", KEY)

    @contextmanager
    def open_line(model: str, scenario: dict[str, Any], protocol: Protocol, key: str = KEY, address: str = "") -> Any:
        place = address or server.open_stage("check", scenario, key)
        place += "/v1" if protocol.startswith("openai") else ""
        upstream = Upstream(base_url=place, auth="bearer", key_env="FAKE_KEY", protocols=(protocol,))
        with Gateway(GatewayConfig(upstreams={"fake": upstream})) as gateway:
            rule = ModelRule(asked=model, upstream="fake", price=Price(input=3.0, output=15.0))
            yield ModelSettings(gateway, (rule,))

    return open_line


def agent(model: str, protocol: Protocol = "anthropic") -> CommandAgent:
    return CommandAgent("mine", ("true",), model=model, protocol=protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_c137_one_small_call_tells_whether_a_model_is_there(
    line: Callable[..., Any], server: ModelServer, protocol: Protocol
) -> None:
    with line("opsu-9", {"models": THERE}, protocol) as settings:
        with pytest.raises(UsageError) as told:
            check_model(agent("opsu-9", protocol), settings)
        assert "'opsu-9'" in str(told.value) and "did you mean opus-9" in str(told.value)
        assert "known: opus-9, sonnet-9, haiku-9" in str(told.value)
        server.open_stage("check", {"models": ["opsu-9"], "usage": {"input": 10, "output": 2}}, KEY)
        found = check_model(agent("opsu-9", protocol), settings)
    assert (found.status, found.note, found.model_answered) == (200, "", "opsu-9")
    assert found.cost_usd == pytest.approx((10 * 3 + 2 * 15) / 1e6)
    (asked,) = server.requests("check")
    assert asked["bytes"] < 300


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ({"status": 404}, UsageError, "gives no list of its models"),
        ({"status": 400, "message": "m-1 is not a valid model ID"}, UsageError, "no model 'm-1'"),
        ({"status": 403}, UsageError, "refused the key"),
    ],
)
def test_what_cannot_work_is_refused_and_says_how_to_go_on(
    line: Callable[..., Any], fault: dict[str, Any], error: type[Exception], words: str
) -> None:
    scenario = {"faults": [{"times": -1, **fault}]}
    with line("m-1", scenario, "openai-chat") as settings, pytest.raises(error, match=words):
        check_model(agent("m-1", "openai-chat"), settings)


def test_a_wrong_key_and_a_provider_that_is_not_there_are_named(line: Callable[..., Any]) -> None:
    with (
        line("m-1", {}, "gemini", key="another") as settings,
        pytest.raises(UsageError, match="check the key of ups"),
    ):
        check_model(agent("m-1", "gemini"), settings)
    away = line("m-1", {}, "anthropic", address="http://127.0.0.1:9")
    with away as settings, pytest.raises(InfraError, match=r"cannot be reached.*--no-model-check"):
        check_model(agent("m-1"), settings)


@pytest.mark.parametrize("fault", [{"status": 429}, {"status": 529}, {"status": 400, "message": "too few tokens"}])
def test_a_provider_that_is_busy_or_dislikes_the_call_settles_nothing(
    line: Callable[..., Any], fault: dict[str, Any]
) -> None:
    with line("m-1", {"faults": [{"times": -1, **fault}]}, "anthropic") as settings:
        found = check_model(agent("m-1"), settings)
    assert found.note.startswith("not settled") and str(fault["status"]) in found.note


def test_a_listed_model_that_dislikes_the_call_is_there(line: Callable[..., Any]) -> None:
    scenario = {"models": THERE, "faults": [{"times": -1, "status": 400, "message": "opus-9 wants more tokens"}]}
    with line("opus-9", scenario, "openai-responses") as settings:
        assert "is listed" in check_model(agent("opus-9", "openai-responses"), settings).note


def test_c137_no_trial_begins_with_a_model_that_is_not_there(
    line: Callable[..., Any], make_dataset: Callable[..., Path], tmp_path: Path, server: ModelServer
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("no container may be started")

    tasks = open_solver_inputs(make_dataset({"a": {"index.html": "x"}}), ())
    said: list[str] = []
    with line("opsu", {"models": THERE}, "anthropic") as models:
        settings = SolveSettings(tmp_path / "runs", image="none", models=models, model_check=True)
        with pytest.raises(UsageError, match="opsu"):
            solve(tasks, agent("opsu"), settings, never, said.append)
        assert not (tmp_path / "runs").exists()
        assert [request["path"].rpartition("/")[2] for request in server.requests("check")] == [
            "messages", "models?limit=1000",
        ]  # fmt: skip


def test_the_check_is_recorded_and_charged_to_no_trial_and_not_made_when_nothing_waits(
    line: Callable[..., Any], make_dataset: Callable[..., Path], tmp_path: Path, server: ModelServer
) -> None:
    def broken(_spec: Any) -> Any:
        raise RuntimeError("no engine here")

    tasks = open_solver_inputs(make_dataset({"a": {"index.html": "x"}}), ())
    with line("opus-9", {}, "anthropic") as models:
        settings = SolveSettings(tmp_path / "runs", image="none", models=models, model_check=True)
        summary = solve(tasks, agent("opus-9"), settings, broken, lambda _line: None)
        records = read_journal(summary.entry / "journal.jsonl").records
        (check,) = of_type(records, "model_check")
        assert (check["model"], check["upstream"], check["status"]) == ("opus-9", "fake", 200)
        assert check["cost_usd"] == pytest.approx((1000 * 3 + 50 * 15) / 1e6)
        assert all(not trial["account"] for trial in of_type(records, "trial"))
        before = len(server.requests("check"))
        idle = SolveSettings(tmp_path / "runs", image="none", models=models, model_check=True, retry="judge")
        solve(tasks, agent("opus-9"), idle, broken, lambda _line: None)
        assert len(server.requests("check")) == before
