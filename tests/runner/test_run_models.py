"""A run asks every model for one word before its first entry begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.model_server import ModelServer

from bench.errors import UsageError
from runner.config import RunConfig
from runner.entries import entries
from runner.models import check_models

KEY = "the-operators-key-0123456789"
THERE = ["opus-9", "sonnet-9", "haiku-9"]


def test_c137_a_run_asks_every_model_before_its_first_entry_and_names_all_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    with ModelServer({"models": THERE}, key=KEY) as server:
        _check(server, tmp_path)


def _check(server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(json.dumps({
        "upstreams": {"fake": {"base_url": server.address, "protocols": ["anthropic"], "key_env": "FAKE_KEY"}},
    }))  # fmt: skip
    config = RunConfig.model_validate({
        "name": "r", "agents": [{"agent": "claude-code", "upstream": "fake"}], "models": ["opsu-9", "opus-9", "soinnet"],
        "attempts": 2, "judges": [{"model": "recorded"}], "gateway": tmp_path / "gateway.yaml", "out": tmp_path / "out",
    })  # fmt: skip
    with pytest.raises(UsageError) as told:
        check_models(config, entries(config), lambda _line: None)
    assert "no model 'opsu-9'" in str(told.value) and "no model 'soinnet'" in str(told.value)
    posts = [request for request in server.requests() if request["method"] == "POST"]
    assert [json.loads(request["body"])["model"] for request in posts] == ["opsu-9", "opus-9", "soinnet"]
