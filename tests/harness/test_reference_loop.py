"""The reference agent's tools and its window, without container or model."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agents.reference_loop import loop, tools


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.js").write_text("let a = 1\nlet b = 2\nlet a = 3\n")
    (tmp_path / "page.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    return tmp_path


def test_an_edit_must_name_its_place_exactly(here: Path) -> None:
    assert "stands 2 times" in tools.call("edit_file", {"path": "src/app.js", "old": "let a", "new": "let c"}).text
    assert "stands 0 times" in tools.call("edit_file", {"path": "src/app.js", "old": "", "new": "x"}).text
    tools.call("edit_file", {"path": "src/app.js", "old": "let a = 3", "new": "let c = 3"})
    assert (here / "src/app.js").read_text() == "let a = 1\nlet b = 2\nlet c = 3\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("read_file", {"path": "missing"}), ("read_file", {"nonsense": 1}), ("nothing", {}), ("view_image", {"path": "src/app.js"}), ("search", {"pattern": "("}), ("read_file", {"path": "src"}), ("write_file", {"path": "src", "content": "x"})],
)  # fmt: skip
def test_a_wrong_call_comes_back_as_text(name: str, arguments: dict[str, Any]) -> None:
    assert tools.call(name, arguments).text.startswith("error: ")


def test_what_is_long_keeps_its_two_ends() -> None:
    said = tools.call("run", {"command": "seq 100000"}).text
    assert said.startswith("1\n2\n")
    assert said.endswith("100000\n\n[exit code 0]")
    assert "left out" in said
    assert len(said) < 32_000


def test_a_command_that_does_not_end_is_stopped() -> None:
    assert "stopped after 1 s" in tools.call("run", {"command": "echo begun; sleep 30", "timeout_s": 1}).text


def test_files_are_listed_read_and_searched(here: Path) -> None:
    assert tools.call("list_files", {}).text == "page.png\nsrc/app.js"
    assert (
        tools.call("read_file", {"path": "src/app.js", "offset": 2, "limit": 1}).text
        == "2\tlet b = 2\n[1 more lines]"
    )
    assert tools.call("view_image", {"path": "page.png"}).image.startswith("data:image/png;base64,")


def test_every_tool_is_described_by_its_own_signature() -> None:
    told = {schema["function"]["name"]: schema["function"]["parameters"] for schema in tools.schemas()}
    assert told["read_file"]["required"] == ["path"]
    assert told["run"]["properties"]["timeout_s"] == {"type": "integer"}


def test_pictures_follow_the_results_in_a_message_of_the_user() -> None:
    calls = [SimpleNamespace(id=str(n), function=SimpleNamespace(name=name, arguments=told)) for n, (name, told) in enumerate([("view_image", '{"path": "page.png"}'), ("read_file", "no json")])]  # fmt: skip
    messages = loop.results(calls, tools.call)
    assert [message["role"] for message in messages] == ["tool", "tool", "user"]
    assert messages[1]["content"] == "error: the arguments are no JSON object"
    assert messages[2]["content"][1]["type"] == "image_url"


def test_old_results_are_dropped_and_the_request_and_the_last_turns_stay() -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": "request"}]
    for number in range(20):
        messages += [{"role": "assistant", "content": str(number)}, {"role": "tool", "content": f"result {number}"}]
    assert loop.drop_old(messages, 0.5) == 7
    assert messages[1]["content"] == "request"
    assert [m["content"] for m in messages if m["role"] == "tool"][:8] == [loop.DROPPED] * 7 + ["result 7"]
    while loop.drop_old(messages, 1.0):
        pass
    assert messages[-1]["content"] == "result 19"
