"""The judge over a model, with scripted judges over the real HTTP protocol: what counts as an answer, what not."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from fakes.model_server import say, tool
from judge_desk import BROKEN, HELD, START, SUBMISSION, TEXT, Desk

from evaluator.judges.judge import OutOfBudget
from evaluator.judges.model.chat import ChatFailed, Reply, ToolCall, ToolSpec, picture_part, text_part
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.settings import Caps, Price

Claim = Callable[..., dict[str, Any]]


def verdict(*claims: dict[str, Any]) -> list[dict[str, Any]]:
    return [tool("verdict", claims=list(claims))]


def raw(text: str) -> str:
    """The body of an OpenAI answer whose only tool call has these arguments, valid JSON or not."""
    call = {"id": "call_raw", "type": "function", "function": {"name": "verdict", "arguments": text}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json.dumps({
        "id": "x", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })  # fmt: skip


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
def test_a_judge_that_looks_tries_and_claims_gets_its_credit_by_replays(desk: Desk, claim: Claim, model: str) -> None:
    desk.server.play({
        "turns": [
            [tool("list_files"), tool("diff", path="app.js")],
            [tool("try_witness", sub="a", witness=HELD)],
            verdict(claim(evidence=["E2", "E3"], citations=[{"path": "app.js", "quote": "sum + item.price"}])),
        ],
        "usage": {"input": 100, "output": 20, "cache_read": 900},
    })  # fmt: skip
    record = desk.judged(model=model)
    assert (record.outcome, record.verdict) == ("ok", "PASS")
    assert [purpose for _, purpose in desk.stage.runs] == ["propose", "vacuity", "repeat"]
    [sub] = record.sub_requirements
    assert (sub.proposed, sub.citations[0].line, sub.reason) == (True, 2, "I saw it.")
    usage = record.usage["judge"]
    assert (usage.calls, usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (3, 3000, 2700, 60)
    assert (desk.stage.folder / "judge/E3.txt").read_text().startswith("try_witness")


def test_a_fail_stands_on_the_attempt_that_fails(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(holds=False, witness=BROKEN))]})
    record = desk.judged()
    assert (record.verdict, record.flags) == ("FAIL", [])
    assert record.sub_requirements[0].lowered_by == ""
    assert len(desk.bodies()) == 1


def test_a_fail_without_any_attempt_is_asked_for_once_more_then_kept_and_flagged(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(holds=False, witness=None))] * 3})
    record = desk.judged()
    assert (record.outcome, record.verdict, record.flags) == ("ok", "FAIL", ["unattempted"])
    assert "without an attempt that fails" in desk.bodies()[1]["messages"][-1]["content"]


def test_a_lazy_judge_s_claim_counts_in_its_own_column_only(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(witness=None))] * 3})
    record = desk.judged()
    columns = {name: (found.verdict, found.rule) for name, found in record.columns.items()}
    assert columns == {
        "judge": ("PASS", "all_hold"),
        "card": ("PASS", "all_hold"),
        "witnessed": ("FAIL", "no_witness"),
    }


def test_a_witness_that_does_not_hold_is_no_credit_however_sure_the_judge_is(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(witness=BROKEN))] * 3})
    record = desk.judged()
    assert (record.columns["judge"].verdict, record.verdict) == ("PASS", "FAIL")
    assert record.columns["witnessed"].rule == "not_held"


def test_a_judge_that_says_no_although_its_attempt_holds_is_flagged(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(holds=False))] * 3})
    record = desk.judged()
    assert (record.verdict, record.flags) == ("FAIL", ["attempt_holds"])


def test_c101_a_reason_that_denies_its_own_claim_is_flagged(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(reason="This is not implemented."))]})
    assert "contradicts_reason" in desk.judged().flags


YES, NO = {"holds": True, "witness": HELD}, {"holds": False, "witness": BROKEN}


@pytest.mark.parametrize(
    ("votes", "verdict_", "flags"),
    [
        ((YES, YES, NO), "PASS", ["samples_disagree"]),
        ((NO, YES, NO), "FAIL", ["samples_disagree"]),
        ((YES, NO), "FAIL", ["samples_disagree"]),
        ((YES, YES), "PASS", []),
        ((YES, None, YES), "PASS", ["sample_failed"]),
        ((YES, None, NO), "FAIL", ["sample_failed", "samples_disagree"]),
    ],
)
def test_c101_of_several_samples_the_majority_counts_a_tie_is_lower_a_failed_one_is_left_out(
    desk: Desk, claim: Claim, votes: tuple[Any, ...], verdict_: str, flags: list[str]
) -> None:
    desk.samples = len(votes)
    bodies = []
    for vote in votes:  # one call a sample that answers, three prose ones for a sample that fails
        bodies += [raw(json.dumps({"claims": [claim(**vote)]}))] if vote else [raw("[]")] * 3
    faults = [{"at": n, "status": 200, "body": body} for n, body in enumerate(bodies)]
    desk.server.play({"turns": [], "faults": faults})
    record = desk.judged()
    assert (record.verdict, record.flags) == (verdict_, flags)
    assert record.sub_requirements[0].samples == [vote["holds"] for vote in votes if vote]
    assert record.usage["judge"].calls == len(bodies)


def test_c101_when_every_sample_fails_there_is_no_verdict(desk: Desk) -> None:
    desk.samples = 2
    desk.server.play({"turns": [[say("PASS")]] * 4})
    record = desk.judged()
    assert (record.outcome, record.verdict, record.usage["judge"].calls) == ("judge_error", None, 6)


@pytest.mark.parametrize(
    "turns",
    [
        [[say("")]] * 4,
        [[say("Everything works, so: PASS.")]] * 4,
        [[say('{"verdict": "PASS"}')]] * 4,
        [[say('```json\n{"verdict": "PASS", "verdict": "FAIL"}\n```')]] * 4,
        [verdict({"sub": "a", "holds": "PASS", "witness": None, "reason": "x"})] * 4,
        [verdict({"sub": "a", "holds": "N/A", "witness": None, "reason": "x"})] * 4,
        [verdict({"sub": "a", "holds": None, "witness": None, "reason": "x"})] * 4,
        [verdict({"sub": "a", "witness": HELD, "reason": "no word on whether it holds"})] * 4,
        [[tool("verdict", verdict="PASS")]] * 4,
        [[tool("verdict")]] * 4,
    ],
    ids=["empty", "prose", "bare-json", "two-verdict-keys", "pass-text", "n-a", "null", "no-verdict", "other-key", "nothing"],
)  # fmt: skip
def test_c96_what_is_no_verdict_is_asked_for_again_and_then_a_judge_error(desk: Desk, turns: list[Any]) -> None:
    desk.server.play({"turns": turns})
    record = desk.judged()
    assert (record.outcome, record.verdict, record.columns) == ("judge_error", None, {})
    assert len(desk.bodies()) == 3
    assert record.usage["judge"].calls == 3


@pytest.mark.parametrize(
    "arguments",
    ['{"claims": [{"sub": "a", "holds": true, "rea', '{"claims": NaN}', "[]",
     '{"claims": [{"sub": "a", "holds": true, "holds": false, "reason": "x"}]}'],
    ids=["cut", "nan", "list", "holds-twice"],
)  # fmt: skip
def test_c96_a_call_whose_json_is_broken_is_never_a_verdict(desk: Desk, arguments: str) -> None:
    desk.server.play({"turns": [], "faults": [{"at": 0, "times": -1, "status": 200, "body": raw(arguments)}]})
    record = desk.judged()
    assert (record.outcome, record.verdict) == ("judge_error", None)
    assert len(desk.bodies()) == 3


def test_c96_one_fenced_block_with_an_epilogue_is_read(desk: Desk, claim: Claim) -> None:
    block = json.dumps({"claims": [claim()]})
    desk.server.play({"turns": [[say(f"My verdict:\n```json\n{block}\n```\nI hope this helps.")]]})
    assert desk.judged().verdict == "PASS"


def test_c96_an_answer_cut_at_the_output_limit_is_not_taken(desk: Desk, claim: Claim) -> None:
    body = json.loads(raw(json.dumps({"claims": [claim()]})))
    body["choices"][0]["finish_reason"] = "length"
    desk.server.play({"turns": [], "faults": [{"at": 0, "times": -1, "status": 200, "body": json.dumps(body)}]})
    assert desk.judged().outcome == "judge_error"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a"], "b is missing"),
        (["a", "b", "a"], "a is given 2 times"),
        (["a", "b", "c"], "'c' is no id here"),
        (["A", "b"], "a is missing"),
    ],
)
def test_c97_missing_doubled_and_unknown_ids_are_asked_for_again(
    desk: Desk, claim: Claim, given: list[str], said: str
) -> None:
    desk.subs = (("a", True), ("b", False))
    right = verdict(claim("b", holds=False, witness=BROKEN), claim("a"))  # shuffled: matched by id
    desk.server.play({"turns": [verdict(*(claim(one) for one in given)), right]})
    record = desk.judged()
    assert said in desk.bodies()[1]["messages"][-1]["content"]
    assert record.verdict == "PARTIAL"
    assert [(sub.id, sub.proposed) for sub in record.sub_requirements] == [("a", True), ("b", False)]


def test_c97_text_and_order_in_the_record_are_the_rubric_s_whatever_the_judge_calls_them(
    desk: Desk, claim: Claim
) -> None:
    desk.server.play({"turns": [verdict(claim(reason="The criterion 'totals are right' (index 6) holds."))]})
    record = desk.judged()
    assert (record.criterion, record.rubric_id, record.criterion_index) == (TEXT.criterion, "r1", 1)


def test_c99_evidence_that_does_not_exist_is_refused(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim(evidence=["E7"]))] * 4})
    record = desk.judged()
    assert record.outcome == "judge_error"
    assert "E7 is no evidence" in record.reason


def test_a_quotation_that_is_not_in_the_source_is_asked_for_once_more_then_left_out(desk: Desk, claim: Claim) -> None:
    made_up = [{"path": "app.js", "quote": "return items.sumOfPrices()"}]
    desk.server.play({"turns": [verdict(claim(citations=made_up))] * 3})
    record = desk.judged()
    assert "unverified_citation" in record.flags
    assert record.sub_requirements[0].citations == []


def test_a_slow_model_is_waited_for(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim())], "faults": [{"at": 0, "slow_s": 1.5}]})
    assert desk.judged().verdict == "PASS"


def test_a_model_that_never_answers_is_given_up_within_our_patience(desk: Desk) -> None:
    desk.settings = {"call_timeout_s": 1, "patience_s": 1}
    desk.server.play({"turns": [], "faults": [{"at": 0, "times": -1, "hang_after": 0}]})
    began = time.monotonic()
    assert desk.judged().outcome == "judge_error"
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
@pytest.mark.parametrize("status", [429, 500, 529])
def test_transport_trouble_is_tried_again_after_the_time_the_provider_asks_for(
    desk: Desk, claim: Claim, model: str, status: int
) -> None:
    faults = [{"at": 0, "times": 2, "status": status, "retry_after": "0.4"}]
    desk.server.play({"turns": [verdict(claim())], "faults": faults})
    record = desk.judged(model=model)
    arrived = [r["at"] for r in desk.server.requests() if r["method"] == "POST"]
    assert record.verdict == "PASS"
    assert len(arrived) == 3
    assert all(0.4 <= later - earlier < 2 for earlier, later in itertools.pairwise(arrived))
    assert record.usage["judge"].waited_s == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("fault", [{"hang_after": 0}, {"status": 429, "retry_after": "200"}])
def test_a_run_that_is_stopped_does_not_wait_for_its_model(desk: Desk, fault: dict[str, Any]) -> None:
    desk.settings = {"call_timeout_s": 200, "patience_s": 600}
    desk.server.play({"turns": [], "faults": [{"at": 0, "times": -1, **fault}]})
    chat = desk.chat()
    threading.Timer(1, chat.stop).start()
    began = time.monotonic()
    with pytest.raises(ChatFailed):
        chat.reply("shop/01/judge", [{"role": "user", "content": "?"}], [])
    assert time.monotonic() - began < 20


def test_a_storm_of_429_ends_as_a_judge_error_and_never_as_a_verdict(desk: Desk) -> None:
    desk.settings = {"patience_s": 5}
    desk.server.play({"turns": [], "faults": [{"at": 0, "times": -1, "status": 429, "retry_after": "0.5"}]})
    record = desk.judged()
    assert (record.outcome, record.verdict) == ("judge_error", None)
    assert 3 <= len(desk.server.requests()) <= 12


def test_a_refused_key_is_not_tried_again(desk: Desk) -> None:
    desk.server.play({"turns": [], "faults": [{"at": 0, "times": -1, "status": 401}]})
    assert desk.judged().outcome == "judge_error"
    assert len(desk.server.requests()) == 1


LONG = "function filler() { return 'a line that is there to fill the room'; }\n" * 400


def test_c98_a_conversation_too_long_is_sent_smaller_once(desk: Desk, claim: Claim) -> None:
    desk.files = SUBMISSION | {"big.js": LONG}
    looks = [[tool("read_file", path="big.js", first_line=1 + 100 * n)] for n in range(4)]
    faults = [{"at": 4, "status": 400, "message": "This model's maximum context length is 8192 tokens"}]
    desk.server.play({"turns": [*looks, verdict(claim())], "faults": faults})
    record = desk.judged()
    sizes = [r["bytes"] for r in desk.server.requests()]
    assert record.verdict == "PASS"
    assert sizes[5] < sizes[4] / 2
    assert "[cut by the harness]" in json.dumps(desk.bodies()[5])


def test_c98_a_conversation_that_stays_too_long_is_a_judge_error(desk: Desk) -> None:
    faults = [{"at": 0, "times": -1, "status": 400, "message": "prompt is too long: 250000 tokens > 200000 maximum"}]
    desk.server.play({"turns": [], "faults": faults})
    record = desk.judged()
    assert (record.outcome, record.verdict, len(desk.server.requests())) == ("judge_error", None, 2)
    assert "does not fit" in record.reason


def test_c98_the_mark_of_a_cut_can_be_cited_by_nobody(desk: Desk, claim: Claim) -> None:
    cited = [{"path": "big.js", "quote": "[cut by the harness]: read on from line 230 of 400"}]
    desk.files = SUBMISSION | {"big.js": LONG}
    desk.server.play({"turns": [[tool("read_file", path="big.js")], *[verdict(claim(citations=cited))] * 3]})
    record = desk.judged()
    assert "[cut by the harness]: read on from line" in json.dumps(desk.bodies()[1])
    assert record.sub_requirements[0].citations == []
    assert "unverified_citation" in record.flags


def test_the_cap_on_calls_ends_a_judge_that_never_decides(desk: Desk) -> None:
    desk.caps = Caps(criterion_calls=5)
    desk.server.play({"turns": [[tool("list_files")]] * 9})
    record = desk.judged()
    assert (record.outcome, record.verdict, len(desk.bodies())) == ("budget", None, 5)
    assert "give your answer by `verdict` now" in desk.bodies()[4]["messages"][-1]["content"]


def test_the_cap_in_money_stops_after_at_most_one_call_too_many(desk: Desk) -> None:
    desk.caps = Caps(case_usd=0.01)
    desk.settings = {"price": Price(input=3, output=15)}
    desk.server.play(
        {"turns": [[tool("list_files")]] * 9, "usage": {"input": 1000, "output": 100}}
    )  # 0.0045 USD a call
    record = desk.judged()
    assert (record.outcome, len(desk.bodies())) == ("budget", 3)
    assert record.usage["judge"].cost_usd == pytest.approx(0.0135)


def test_the_cap_of_the_run_counts_what_earlier_calls_of_it_spent(desk: Desk) -> None:
    ledger = Ledger(Caps(run_usd=1.0, case_usd=None))
    spent = {"calls": 3, "cost_usd": 0.6}
    ledger.carry([{"case": "other", "usage": {"judge": spent, "refuter": spent}}])
    with pytest.raises(OutOfBudget, match="cap of 1 USD is used up"):
        ledger.purse("shop").check()
    Ledger(Caps(run_usd=2.0)).purse("shop").check()


def test_a_model_whose_price_nobody_knows_has_unknown_costs_never_none(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim())]})
    assert desk.judged().usage["judge"].cost_usd is None


def test_cached_tokens_are_priced_as_such(desk: Desk, claim: Claim) -> None:
    desk.settings = {"price": Price(input=10, output=0, cache_read=1)}
    desk.server.play({"turns": [verdict(claim())], "usage": {"input": 1000, "output": 1, "cache_read": 9000}})
    assert desk.judged().usage["judge"].cost_usd == pytest.approx(0.019)


def test_nothing_that_names_agent_model_or_run_reaches_a_judge_or_refuter(desk: Desk, claim: Claim) -> None:
    desk.files = SUBMISSION | {
        "CLAUDE.md": "I am secret-agent", ".aider.chat.history.md": "secret-model said", ".claude/settings.json": "{}",
    }  # fmt: skip
    looks = [
        tool("list_files"), tool("diff"), tool("search", text="secret"), tool("read_file", path="CLAUDE.md"),
        tool("read_file", path="../../lock.json"), tool("list_files", app="start"),
    ]  # fmt: skip
    refuted = [tool("verdict", refutations=[{"sub": "a", "outcome": "uphold", "reason": "x"}])]
    desk.server.play({"scenarios": {
        "scripted": {"turns": [looks, verdict(claim())]}, "refuter": {"turns": [looks, refuted]},
    }})  # fmt: skip
    assert desk.judged(refuter=True).verdict == "PASS"
    arrived = [r["body"] for r in desk.server.requests() if r["method"] == "POST"]
    assert len(arrived) == 4
    for body in arrived:
        own = body.replace('\\"CLAUDE.md\\"', "").replace(
            '\\"secret\\"', ""
        )  # what the scripted judge asked for itself
        for name in ("secret-agent", "secret-model", "aider", ".claude", str(desk.root), "runs/", "sha256:1"):
            assert name not in own, name


def test_criteria_of_a_case_share_a_prefix_and_anthropic_is_told_where_it_ends(desk: Desk, claim: Claim) -> None:
    desk.files = SUBMISSION | {f"src/part{n}.js": "x" for n in range(120)}
    desk.server.play({"turns": [verdict(claim())]})
    ledgered = desk.chat("anthropic/scripted")
    judge = ModelJudge("litellm", ledgered, Ledger(Caps())).in_case(desk.exhibits())
    for index in (1, 2, 3):
        text = TEXT.model_copy(update={"criterion_index": index, "criterion": f"Criterion number {index}."})
        plan = desk.plan.model_copy(update={"criterion_index": index})
        judge.judge(desk.case, text, plan, lambda sub, witness: desk.stage.run(witness, sub, "propose"))
    bodies = [json.loads(r["body"]) for r in desk.server.requests()]
    prefixes = [json.dumps([b["system"], b["tools"], b["messages"][0]["content"][:-1]]) for b in bodies]
    assert len(set(prefixes)) == 1
    assert bodies[0]["messages"][0]["content"][-2]["cache_control"] == {"type": "ephemeral"}
    for body in bodies[1:]:
        assert len(prefixes[0]) / len(json.dumps([body["system"], body["tools"], body["messages"]])) >= 0.8


def test_thinking_goes_back_to_anthropic_which_refuses_a_conversation_without_it(desk: Desk) -> None:
    thinking = {"type": "thinking", "thinking": "Let me look.", "signature": "sig=="}
    call = {"type": "tool_use", "id": "toolu_1", "name": "list_files", "input": {}}
    first = {
        "id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": [thinking, call],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    desk.caps = Caps(criterion_calls=2)
    desk.settings = {"extra": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
    desk.server.play({"turns": [[say("x")]] * 3, "faults": [{"at": 0, "status": 200, "body": json.dumps(first)}]})
    desk.judged(model="anthropic/claude-sonnet-4-5")
    assistant = desk.bodies("claude-sonnet-4-5")[1]["messages"][1]
    assert [part["type"] for part in assistant["content"]] == ["thinking", "tool_use"]
    assert assistant["content"][0]["signature"] == "sig=="


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
def test_pictures_come_after_all_results_of_a_turn_in_the_shape_each_provider_takes(desk: Desk, model: str) -> None:
    desk.server.play({"turns": [[say("seen")]]})
    picture = {"role": "user", "content": [text_part("Picture E2"), picture_part(b"jpeg", "image/jpeg")]}
    calls = tuple(ToolCall(f"call_{n}", "screenshot", "{}") for n in (1, 2))
    messages = [
        {"role": "system", "content": "You judge."}, {"role": "user", "content": [text_part("Look.")]},
        Reply("", calls).as_message(),
        *({"role": "tool", "tool_call_id": call.id, "content": "E1 screenshot"} for call in calls), picture,
    ]  # fmt: skip
    desk.chat(model).reply(
        "shop/01/judge", messages, [ToolSpec("screenshot", "", {"type": "object", "properties": {}})]
    )
    [body] = desk.bodies()
    roles = [message["role"] for message in body["messages"]]
    if model.startswith("anthropic/"):
        assert roles == ["user", "assistant", "user"]
        kinds = [part["type"] for part in body["messages"][-1]["content"]]
        assert kinds == ["tool_result", "tool_result", "text", "image"]
        assert body["messages"][-1]["content"][-1]["source"]["media_type"] == "image/jpeg"
    else:
        assert roles == ["system", "user", "assistant", "tool", "tool", "user"]


def test_attachments_are_in_the_opening_and_the_start_is_kept_apart(desk: Desk, claim: Claim) -> None:
    desk.server.play({"turns": [verdict(claim())]})
    desk.judged()
    said = json.dumps(desk.bodies()[0]["messages"], ensure_ascii=False)
    assert START["_attachments/notes.txt"].strip() in said
    assert "changed: app.js" in said
