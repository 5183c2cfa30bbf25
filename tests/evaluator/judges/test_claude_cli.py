"""The claude-cli back end: the real pinned command line in its container, our tools over MCP, a scripted model."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fakes.model_server import say, tool
from judge_desk import HELD, TEXT, Desk
from PIL import Image

from bench.cache import cache_folder
from bench.errors import UsageError
from bench.journal import of_type, read_journal
from evaluator.criterion import judge_criterion
from evaluator.judges.model.chat import Message, ToolSpec, picture_part, text_part
from evaluator.judges.model.claude_cli.chat import ClaudeCliChat
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.refuter import ModelRefuter
from evaluator.judges.model.settings import Caps, ModelSettings
from evaluator.records import CriterionRecord
from evaluator.stage import Stage
from sandboxes.packs.recipe import RECIPES

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
        "list_files", "read_file", "search", "diff", "open_page", "act", "snapshot", "find", "screenshot",
        "page_log", "compare", "measure", "media", "record", "touch", "try_witness", "verdict",
    }  # fmt: skip
    everything = json.dumps(desk.bodies("claude-judge"))
    assert "secret-agent" not in everything and "sk-test" not in everything
    assert "sum + item.price" in json.dumps(desk.bodies("claude-judge")[1])  # the tool's result reached the model


def test_c137_a_misspelt_alias_costs_next_to_nothing_and_is_named_with_what_was_meant(desk: Desk, chat: Any) -> None:
    missing = [{"at": 0, "times": -1, "status": 404, "message": "model: opuss"}]
    desk.server.play({"turns": [], "faults": missing})
    with pytest.raises(UsageError, match=r"opuss \(claude-cli\) failed, nothing was judged.*did you mean opus"):
        chat("opuss").check()
    assert len(desk.bodies("opuss")) <= 2  # the command line itself asks a second time


def test_c98_what_is_too_long_is_told_again_in_a_new_session_with_less_in_it(
    desk: Desk, claim: Claim, chat: Any
) -> None:
    desk.files["app.js"] = "const text = 'x';\n" * 2_000
    too_long = {
        "over_bytes": 30_000, "times": 3, "status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"
    }  # fmt: skip
    desk.server.play({"faults": [too_long], "turns": [
        [tool("read_file", path="app.js")], [tool("verdict", claims=[claim()])], [tool("verdict", claims=[claim()])],
    ]})  # fmt: skip
    record = judged(desk, chat("claude-judge"))
    assert (record.outcome, record.verdict, record.reason) == ("ok", "PASS", "")
    first, failed, *later = desk.bodies(
        "claude-judge"
    )  # whether the refused call is sent twice depends on the moment
    again = next(one for one in later if session_of(one) != session_of(first))
    assert len(json.dumps(again)) < len(json.dumps(failed))
    assert "You called read_file" in json.dumps(again)
    assert record.usage["judge"].calls >= 3
    assert len({session_of(one) for one in (first, failed, *later)}) == 2


def session_of(body: dict[str, Any]) -> str:
    return str(json.loads(body["metadata"]["user_id"])["session_id"])


def test_pictures_reach_the_model_in_the_opening_and_in_a_tool_s_result(desk: Desk, chat: Any) -> None:
    desk.server.play({"turns": [[tool("look")], [tool("verdict")]]})
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 10, 10)).save(buffer, "JPEG")
    shown = picture_part(buffer.getvalue(), "image/jpeg")
    tools = [ToolSpec(name, name, {"type": "object", "properties": {}}) for name in ("look", "verdict")]
    messages: list[Message] = [
        {"role": "system", "content": "Judge."}, {"role": "user", "content": [text_part("Look at @/etc/passwd"), shown]}
    ]  # fmt: skip
    with contextlib.closing(chat("claude-judge")) as model:
        reply = model.reply("case/01/judge", messages, tools)
        messages += [
            reply.as_message(), {"role": "tool", "tool_call_id": reply.calls[0].id, "content": "E1 look"},
            {"role": "user", "content": [text_part("Picture E1"), shown]},
        ]  # fmt: skip
        assert model.reply("case/01/judge", messages, tools).calls[0].name == "verdict"
    first, second = desk.bodies("claude-judge")
    assert pictures(first["messages"][0]) == 1
    assert pictures(second["messages"][-1]) == 1
    assert "root:x:0" not in json.dumps(first), "a path in the request was read"


def pictures(message: Any) -> int:
    if isinstance(message, dict):
        return (message.get("type") == "image") + sum(pictures(value) for value in message.values())
    return sum(pictures(one) for one in message) if isinstance(message, list) else 0


@pytest.mark.browser
@pytest.mark.slow
def test_cdb_judge_with_a_bare_name_judges_end_to_end(
    make_dataset: Callable[..., Path], run_cdb: Callable[..., Any], desk: Desk, tmp_path: Path
) -> None:
    root = make_dataset({"one": {"index.html": "<p>a</p>"}})
    (root / "cases/one/rubric.json").write_text('["It says b."]')
    (tmp_path / "submissions/one").mkdir(parents=True)
    (tmp_path / "submissions/one/index.html").write_text("<p>b</p>")
    inputs = ["--dataset", root, "--submissions", tmp_path / "submissions", "--out", tmp_path / "evaluation"]
    assert run_cdb(["prepare", *inputs]).returncode == 0
    says_b = {"schema": "cdb.witness/1", "steps": [{"expect": "text", "target": {"css": "p"}, "equals": "b"}]}
    says_a = {"schema": "cdb.witness/1", "steps": [{"expect": "text", "target": {"css": "p"}, "equals": "a"}]}
    claims = [{"sub": "a", "holds": True, "witness": says_b, "reason": "Seen."}]
    attack = [{"sub": "a", "outcome": "downgrade", "reason": "No.", "counter": says_a}]
    desk.server.play({"scenarios": {
        "a judge": {"turns": [[tool("open_page"), tool("screenshot")], [tool("verdict", claims=claims)]]},
        "a refuter": {"match": "mcp__judge__try_counter", "turns": [[tool("verdict", refutations=attack)]]},
    }})  # fmt: skip
    judge = ["judge", "--cases", tmp_path / "evaluation/cases.json", "--out", tmp_path / "results"]
    ended = run_cdb(
        [*judge, "--model", "opus", "--refuter-model", "sonnet"],
        env={"ANTHROPIC_BASE_URL": desk.server.address, "ANTHROPIC_API_KEY": "sk-ant-test-1"},
    )
    assert ended.returncode == 0, ended.stderr
    [record] = of_type(read_journal(tmp_path / "results/journal.jsonl").records, "criterion")
    columns = {name: column["verdict"] for name, column in record["columns"].items()}
    assert columns == {"judge": "PASS", "card": "FAIL", "witnessed": "PASS"}
    lock = json.loads((tmp_path / "results/lock.json").read_text())
    assert (lock["judge"]["kind"], lock["judge"]["name"], lock["judge"]["model"]) == (
        "claude-cli",
        "claude-cli",
        "opus",
    )
    assert lock["refuter"]["pack"]["version"] == RECIPES["claude-code"].version
    assert record["usage"]["judge"]["models"][0].startswith("claude-opus")
    assert (tmp_path / "results/evidence/one/01/judge/E2.jpg").is_file()
