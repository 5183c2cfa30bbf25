"""Purely visual parts without a witness: two unlabelled pictures, both orders, and what the credit rests on."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import tool
from judge_desk import TEXT, Desk
from PIL import Image

from evaluator import pairs
from evaluator.adjudicate import SubFacts, decide_sub
from evaluator.judges.model import pairing
from evaluator.pairs import Chosen, blind_pair
from evaluator.probes.pictures import NoPicture, Pair
from evaluator.rerun import _Recorded

Claim = Callable[..., dict[str, Any]]
ANSWERS: list[str] = []
"""What the model chooses, one for each order."""
ASKED: list[dict[str, Any]] = []
"""The requests with pictures, as they arrived."""


@pytest.fixture
def visual(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A visual criterion before a judge that sees; the start is red, the submission blue."""

    def pictured(_running: Any, folder: Path) -> Pair:
        folder.mkdir(parents=True, exist_ok=True)
        for name, colour in (("start", "red"), ("submission", "blue")):
            Image.new("RGB", (40, 30), colour).save(folder / f"{name}.jpg")
        return Pair(folder / "start.jpg", folder / "submission.jpg")

    def choosing(*given: Any, **more: Any) -> Any:
        """The scripted server goes by the length of a conversation: each of ours gets a script of its own."""
        desk.server.play({"scenarios": {"scripted": {"turns": [choose(ANSWERS.pop(0))]}}})
        try:
            return pairing.choose(*given, **more)
        finally:
            ASKED.extend(desk.bodies())

    monkeypatch.setattr("evaluator.judges.model.judge.choose", choosing)
    monkeypatch.setattr(pairs, "pair_pictures", pictured)
    ANSWERS.clear()
    ASKED.clear()
    monkeypatch.setattr(type(desk.stage), "applications", None, raising=False)
    desk.kind, desk.settings = "visual", {"vision": True}
    return desk


def choose(choice: str) -> list[dict[str, Any]]:
    return [tool("choose", choice=choice, reason="It is blue.")]


def play(desk: Desk, claim: dict[str, Any], *choices: str) -> None:
    """The judge's verdict, given again when it is asked for again, and then its choices."""
    ANSWERS.extend(choices)
    desk.server.play({"scenarios": {"scripted": {"turns": [[tool("verdict", claims=[claim])]] * 2}}})


def colours(body: dict[str, Any]) -> list[str]:
    """The pictures of a request in order, by their colour."""
    [user] = [m for m in body["messages"] if m["role"] == "user"]
    found = []
    for part in user["content"]:
        if part["type"] == "image_url":
            data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
            red, _, blue = Image.open(io.BytesIO(data)).convert("RGB").getpixel((20, 15))  # type: ignore[misc]
            found.append("red" if red > blue else "blue")
    return found


@pytest.mark.parametrize(
    ("turns", "outcome", "verdict", "rule"),
    [
        (["second", "first"], "won", "PASS", "all_hold"),
        (["second", "second"], "disagreed", "FAIL", "pair_not_won"),
        (["second", "both"], "disagreed", "FAIL", "pair_not_won"),
        (["first"], "lost", "FAIL", "pair_not_won"),
        (["neither"], "lost", "FAIL", "pair_not_won"),
    ],
)
def test_only_the_submission_in_both_orders_is_a_credit(
    visual: Desk, claim: Claim, turns: list[str], outcome: str, verdict: str, rule: str
) -> None:
    play(visual, claim(witness=None), *turns)
    record = visual.judged()
    assert record.columns["witnessed"].model_dump() == {"verdict": verdict, "rule": rule}
    assert record.columns["judge"].verdict == "PASS"
    [part] = record.sub_requirements
    assert part.pair is not None
    assert (part.pair.outcome, len(part.pair.choices)) == (outcome, len(turns))
    assert ("blind_pair" in record.flags) == (outcome == "won")
    assert [colours(body) for body in ASKED] == [["red", "blue"], ["blue", "red"]][: len(turns)]
    assert record.usage["judge"].calls == 1 + len(turns)


def test_nothing_tells_the_model_which_picture_is_which(visual: Desk, claim: Claim) -> None:
    play(visual, claim(witness=None), "second", "first")
    visual.judged()
    texts = []
    for body in ASKED:
        for message in body["messages"]:
            content = message["content"]
            texts += [content] if isinstance(content, str) else [p["text"] for p in content if p["type"] == "text"]
    said = json.dumps(texts).lower()
    assert len(ASKED) == 2
    assert "the total follows the prices" in said
    assert not [word for word in ("submission", "start", "before", "after", "original") if word in said]


def test_a_witness_needs_no_pair_and_a_judge_without_eyes_gets_none(visual: Desk, claim: Claim) -> None:
    play(visual, claim())
    [part] = visual.judged().sub_requirements
    assert part.pair is None
    visual.settings = {"vision": False}
    play(visual, claim(witness=None))
    record = visual.judged()
    [part] = record.sub_requirements
    assert part.pair is not None
    assert (part.pair.outcome, record.columns["witnessed"].rule) == ("not_asked", "no_witness")


def test_a_behaviour_is_never_put_to_a_pair(visual: Desk, claim: Claim) -> None:
    visual.kind = "behaviour"
    play(visual, claim(witness=None))
    record = visual.judged()
    assert record.sub_requirements[0].pair is None
    assert record.columns["witnessed"].rule == "no_witness"


def test_no_picture_is_no_credit(visual: Desk, claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_running: Any, _folder: Path) -> Pair:
        raise NoPicture("the start application shows nothing")

    monkeypatch.setattr(pairs, "pair_pictures", broken)
    play(visual, claim(witness=None))
    [part] = visual.judged().sub_requirements
    assert part.pair is not None
    assert (part.pair.outcome, part.pair.reasons) == ("not_asked", ["the start application shows nothing"])


def test_choices_are_kept_by_name_and_not_by_place() -> None:
    answers = iter([Chosen("second"), Chosen("second")])
    record = blind_pair(lambda _first, _second: next(answers), b"start", b"submission")
    assert (record.outcome, record.choices) == ("disagreed", ["submission", "start"])


def test_the_refuters_word_takes_a_won_pair_from_the_card_column_only() -> None:
    facts = {"core": True, "preservation": False, "has_witness": False, "claimed": True, "pair": "won"}
    decision = decide_sub(SubFacts(**facts, refuter="downgrade"))  # type: ignore[arg-type]
    assert (decision.judge, decision.card, decision.witnessed) == (True, False, True)


def test_a_replay_takes_the_recorded_choice_while_both_look_as_they_did(visual: Desk, claim: Claim) -> None:
    play(visual, claim(witness=None), "second", "first")
    record = visual.judged()
    judge = _Recorded(visual.stage.results, record)
    proposal = judge.judge(visual.case, TEXT, visual.plan, lambda _sub, _witness: None)  # type: ignore[arg-type, return-value]
    assert [one.holds for one in proposal.claims] == [True]
    [part] = record.sub_requirements
    assert part.pair is not None
    then = [(visual.stage.results / name).read_bytes() for name in part.pair.pictures]
    same, usage = judge.pair(visual.case, TEXT, visual.plan, visual.plan.sub_requirements[0], (then[0], then[1]))
    assert (same, usage.calls) == (part.pair, 0)
    other, _ = judge.pair(visual.case, TEXT, visual.plan, visual.plan.sub_requirements[0], (then[0], then[0]))
    assert other.outcome == "not_asked"
    assert other.reasons[0].startswith("submission does not look as it did: likeness 0.0")
