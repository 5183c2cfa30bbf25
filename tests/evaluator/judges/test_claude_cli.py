"""The claude-cli back end: the real pinned command line in its container, our tools over MCP, a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fakes.model_server import say, tool
from judge_desk import HELD, TEXT, Desk

from bench.cache import cache_folder
from bench.errors import UsageError
from evaluator.criterion import Stage, judge_criterion
from evaluator.judges.model.claude_cli.chat import ClaudeCliChat
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.refuter import ModelRefuter
from evaluator.judges.model.settings import Caps, ModelSettings
from evaluator.records import CriterionRecord

pytestmark = [pytest.mark.docker, pytest.mark.timeout(240)]
USERS_PACKS = cache_folder("agents")
Claim = Callable[..., dict[str, Any]]
PRICE = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}


@pytest.fixture(autouse=True)
def packs(own_cache: None) -> None:
    shown = Path(os.environ["CDB_CACHE"]) / "agents"
    if not shown.exists():
        shown.symlink_to(USERS_PACKS, target_is_directory=True)


@pytest.fixture
def chat(desk: Desk) -> Iterator[Callable[..., ClaudeCliChat]]:
    made = []

    def make(model: str, **more: Any) -> ClaudeCliChat:
        given = {"api_base": desk.server.address, "key_env": "CDB_TEST_KEY", "price": PRICE, "call_timeout_s": 30}
        made.append(ClaudeCliChat(ModelSettings.model_validate({"model": model, **given, **more})))
        return made[-1]

    yield make
    for one in made:
        one.close()


def judged(desk: Desk, judge: ClaudeCliChat, refuter: ClaudeCliChat | None = None) -> CriterionRecord:
    ledger, exhibits = Ledger(Caps()), desk.exhibits()
    opponent = ModelRefuter(refuter, ledger).in_case(exhibits) if refuter else None
    return judge_criterion(
        desk.case, TEXT, desk.plan, ModelJudge("claude-cli", judge, ledger).in_case(exhibits),
        cast(Stage, desk.stage), opponent,
    )  # fmt: skip


def test_judge_and_refuter_work_through_the_real_command_line(desk: Desk, claim: Claim, chat: Any) -> None:
    uphold = {"sub": "a", "outcome": "uphold", "reason": "It stands."}
    given = claim(evidence=["E1", "E2"], citations=[{"path": "app.js", "quote": "sum + item.price"}])
    usage = {"input": 100, "output": 20, "cache_read": 900}
    desk.server.play({"scenarios": {
        "claude-judge": {"usage": usage, "turns": [
            [tool("read_file", path="app.js")],
            [tool("try_witness", sub="a", witness=HELD)],
            [tool("verdict", claims=[{**given, "holds": "yes"}])],  # sent back: no boolean
            [tool("verdict", claims=[given])],
        ]},
        "claude-refuter": {"turns": [[say("I uphold it.")], [tool("verdict", refutations=[uphold])]]},
    }})  # fmt: skip
    record = judged(desk, chat("claude-judge"), chat("claude-refuter"))
    assert (record.outcome, record.verdict, record.reason) == ("ok", "PASS", "")
    [sub] = record.sub_requirements
    assert (sub.citations[0].line, sub.refutation and sub.refutation.outcome) == (2, "uphold")
    told = record.usage["judge"]
    assert (told.calls, told.input_tokens, told.cached_tokens, told.output_tokens) == (4, 4000, 3600, 80)
    assert told.cost_usd == pytest.approx(4 * (100 * 3 + 900 * 0.3 + 20 * 15) / 1e6)
    assert record.usage["refuter"].calls == 2
    first, *_ = desk.bodies("claude-judge")
    assert {one["name"].removeprefix("mcp__judge__") for one in first["tools"]} == {
        "list_files", "read_file", "search", "diff", "open_page", "act", "snapshot", "find", "page_log",
        "try_witness", "verdict",
    }  # fmt: skip
    everything = json.dumps(desk.bodies("claude-judge"))
    assert "secret-agent" not in everything and "sk-test" not in everything
    assert "sum + item.price" in json.dumps(desk.bodies("claude-judge")[1])  # the tool's result reached the model
