"""The relay: requests as files, answers from files; whoever writes them judges."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from judge_desk import HELD, TEXT, Desk

from evaluator.criterion import judge_criterion
from evaluator.judges.model.chat import ChatFailed, picture_part, text_part
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.ledger import Ledger
from evaluator.judges.model.relay import RelayChat
from evaluator.stage import Stage


def answer(folder: Path, content: Any, deadline_s: float = 20) -> None:
    """What a person or program does: wait for a request, read it, answer by rename."""
    ends = time.monotonic() + deadline_s
    while not (folder / "request.json").is_file():
        assert time.monotonic() < ends, f"no request in {folder}"
        time.sleep(0.05)
    (folder / "draft").write_text(content if isinstance(content, str) else json.dumps(content))
    (folder / "draft").rename(folder / "answer.json")


def test_whoever_answers_the_files_is_the_judge(desk: Desk) -> None:
    relay = desk.root / "relay"
    chat = RelayChat(relay, deadline_s=30)
    chat.check()
    talk = relay / "shop/01/judge"
    claims = [{"sub": "a", "holds": True, "witness": HELD, "reason": "seen"}]

    def person() -> None:
        answer(talk / "0001", {"calls": [{"tool": "read_file", "input": {"path": "app.js"}}], "by": "somebody"})
        answer(talk / "0002", '{"calls": [')  # not JSON: refused, and the next one waited for
        ends = time.monotonic() + 20
        while not (talk / "0002/answer.error.txt").is_file() and time.monotonic() < ends:
            time.sleep(0.05)
        answer(talk / "0002", {"calls": [{"tool": "verdict", "input": {"claims": claims}}], "by": "somebody"})

    writer = threading.Thread(target=person, daemon=True)
    writer.start()
    judge = ModelJudge("relay", chat, Ledger(desk.caps)).in_case(desk.exhibits())
    record = judge_criterion(desk.case, TEXT, desk.plan, judge, cast(Stage, desk.stage))
    writer.join(20)
    assert record.verdict == "PASS"
    assert (record.usage["judge"].models, record.usage["judge"].cost_usd) == (["somebody"], None)
    second = json.loads((talk / "0002/request.json").read_text())
    assert "sum + item.price" in second["messages"][-1]["content"]
    assert {tool["name"] for tool in second["tools"]} >= {"read_file", "try_witness", "verdict"}
    assert "is not strict JSON" in (talk / "0002/answer.error.txt").read_text()


def test_pictures_are_files_beside_the_request(tmp_path: Path) -> None:
    chat = RelayChat(tmp_path, deadline_s=0.1)
    message = {"role": "user", "content": [text_part("look"), picture_part(b"jpeg", "image/jpeg")]}
    with pytest.raises(ChatFailed, match="nobody answered"):
        chat.reply("case/01/judge", [message], [])
    folder = tmp_path / "case/01/judge/0001"
    assert (folder / "pictures/01.jpg").read_bytes() == b"jpeg"
    assert json.loads((folder / "request.json").read_text())["messages"][0]["content"][1] == {
        "type": "picture", "file": "pictures/01.jpg",
    }  # fmt: skip
    assert "![pictures/01.jpg](pictures/01.jpg)" in (folder / "request.md").read_text()


def test_a_run_that_is_stopped_waits_for_nobody(tmp_path: Path) -> None:
    chat = RelayChat(tmp_path)
    threading.Timer(0.3, chat.stop).start()
    began = time.monotonic()
    with pytest.raises(ChatFailed, match="stopped"):
        chat.reply("case/01/judge", [{"role": "user", "content": "?"}], [])
    assert time.monotonic() - began < 5
