"""C36: an agent's calls for a side model are denied or mapped by a recorded policy, and all are in the ledger."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import ModelServer

from bench.errors import UsageError
from harness.account import Account
from harness.agents.agent import Reported
from harness.agents.command import CommandAgent
from harness.models import Conditions, ModelWish, model_settings
from sandboxes.gateway.client import TrialGateway
from sandboxes.gateway.policy import TrialPolicy
from sandboxes.gateway.records import read_calls

MODEL, SIDE = "claude-opus-9", "claude-haiku-x"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    monkeypatch.setenv("FAKE_KEY", "the-operators-key")
    with ModelServer({"models": [MODEL]}) as running:
        price = {MODEL: {"input": 3.0, "output": 15.0}}
        told = {"base_url": running.address, "protocols": ["anthropic"], "key_env": "FAKE_KEY"}
        (tmp_path / "gateway.yaml").write_text(json.dumps({"upstreams": {"fake": told}, "prices": price}))
        yield running


def ask(trial: TrialGateway, model: str) -> int:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(trial.socket))
        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = line
        body = json.dumps({"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]})
        headers = {"x-api-key": trial.token, "anthropic-version": "2023-06-01"}
        connection.request("POST", "/v1/messages", body.encode(), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.fixture
def account_under(server: ModelServer, tmp_path: Path) -> Callable[[str], tuple[list[int], dict[str, Any]]]:
    """Asks for the main model and a side model under a policy; the statuses, and the trial's account."""

    def go(policy: str) -> tuple[list[int], dict[str, Any]]:
        agent = CommandAgent("mine", ("true",), model=MODEL, protocol="anthropic")
        wish = ModelWish(tmp_path / "gateway.yaml", "fake")
        with model_settings(agent, wish, Conditions(side_models=policy)) as settings:
            assert settings is not None
            told = TrialPolicy(trial="t", models=settings.rules, caps=settings.caps)
            with settings.gateway.open(told, tmp_path / "trial") as trial:
                statuses = [ask(trial, MODEL), ask(trial, SIDE)]
            summary = trial.summary()
        return statuses, Account(agent, tmp_path / "trial", Reported(), summary).record()

    return go


def test_c36_a_denied_side_model_is_refused_as_one_that_does_not_exist_and_is_on_record(
    account_under: Callable[[str], tuple[list[int], dict[str, Any]]], server: ModelServer, tmp_path: Path
) -> None:
    statuses, account = account_under("denied")
    assert statuses == [200, 404]
    assert account["models_asked"] == {MODEL: 1, SIDE: 1}
    assert account["models_sent"] == account["models_answered"] == {MODEL: 1}
    assert account["refused"] == {"model": 1}
    assert [call.refusal for call in read_calls(tmp_path / "trial")] == ["", "model"]
    assert len(server.requests()) == 1


def test_c36_a_mapped_side_model_is_answered_by_the_trials_model_and_billed(
    account_under: Callable[[str], tuple[list[int], dict[str, Any]]], server: ModelServer, tmp_path: Path
) -> None:
    statuses, account = account_under("mapped")
    assert statuses == [200, 200]
    assert account["models_asked"] == {MODEL: 1, SIDE: 1}
    assert account["models_sent"] == account["models_answered"] == {MODEL: 2}
    assert account["cost_usd"] == pytest.approx(2 * (1000 * 3 + 50 * 15) / 1e6)
    assert [json.loads(request["body"])["model"] for request in server.requests()] == [MODEL, MODEL]
    mapped = read_calls(tmp_path / "trial")[1]
    assert (mapped.model_asked, mapped.model_sent) == (SIDE, MODEL)
    assert {"edit": "map_model", "what": f"{SIDE} -> {MODEL}"} in mapped.edits


def test_c36_the_policy_is_one_of_two_and_in_the_lock() -> None:
    assert Conditions().describe()["side_models"] == "denied"
    assert Conditions(side_models="mapped").describe()["side_models"] == "mapped"
    with pytest.raises(UsageError, match="--side-models 'some' is not known; choose one of denied, mapped"):
        Conditions(side_models="some").check()
