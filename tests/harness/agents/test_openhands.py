"""OpenHands as far as it can be tested where its Python is missing: what is started, and how its end is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_trials import make_task

from harness.agents.agent import AgentSetupError, ModelAccess, Output, Reported
from harness.agents.openhands import OpenHands

USER = {"kind": "MessageEvent", "source": "user"}
STEP = {"kind": "ActionEvent", "source": "agent", "tool_name": "terminal", "llm_response_id": "r1"}
SECOND = STEP | {"tool_name": "file_editor"}
FINISH = {"kind": "ActionEvent", "source": "agent", "tool_name": "finish", "llm_response_id": "r2"}
ANSWER = {"kind": "MessageEvent", "source": "agent", "llm_response_id": "r3"}
ERROR = {"kind": "ConversationErrorEvent", "source": "environment", "code": "LLMError", "detail": "403: budget"}
STATE = {"kind": "ConversationStateUpdateEvent", "source": "environment"}


def test_it_is_started_with_the_request_as_a_file_and_the_gateway_as_its_model(
    tmp_path: Path,
) -> None:
    class Installed(OpenHands):
        program = "/opt/agents/openhands/bin/openhands"

    access = ModelAccess("m-1", "http://127.0.0.1:8080", "cdb-token", {"OPENAI_API_KEY": "cdb-token"})
    launch = Installed("m-1").launch(make_task(tmp_path, "x" * 300_000), access)
    assert launch.argv[0] == "/opt/agents/openhands/bin/openhands"
    assert list(launch.argv[-2:]) == ["-f", "/home/agent/request.md"]
    assert {"--headless", "--json", "--override-with-envs", "--always-approve"} <= {*launch.argv}
    assert sum(map(len, launch.argv)) < 1000  # C34: the request is no argument
    assert launch.env["LLM_MODEL"] == "openai/m-1"
    assert launch.env["LLM_BASE_URL"] == "http://127.0.0.1:8080/v1"
    assert launch.env["LLM_API_KEY"] == launch.env["OPENAI_API_KEY"] == "cdb-token"
    assert launch.passed == {}
    with pytest.raises(AgentSetupError, match="--model"):
        Installed().launch(make_task(tmp_path))


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([USER, STEP, SECOND, FINISH, STATE], Reported(ok=True, turns=2)),
        ([USER, STEP, ANSWER], Reported(ok=True, turns=2)),
        ([USER, STEP, ERROR, STATE], Reported(ok=False, reason="403: budget", turns=1)),
        ([USER, STEP, ERROR, FINISH], Reported(ok=True, turns=2)),
        ([USER, STEP], Reported(ok=False, reason="its last step did not end the work", turns=1)),
        ([USER, ERROR | {"detail": ""}], Reported(ok=False, reason="LLMError", turns=0)),
        ([], Reported(ok=False, reason="it kept no conversation")),
    ],
)
def test_its_end_is_read_from_its_conversation(tmp_path: Path, events: list[dict[str, Any]], told: Reported) -> None:
    folder = tmp_path / "agent/.openhands/conversations/abc/events"
    folder.mkdir(parents=True)
    for number, event in enumerate(events):
        (folder / f"event-{number:05d}-x.json").write_text(json.dumps({"id": str(number), **event}))
    (folder / "event-99998-torn.json").write_text('{"kind": "Conv')
    (folder / "event-99999-odd.json").write_text("[1]")
    assert OpenHands("m").reported(Output(tmp_path / "o", tmp_path / "e", tmp_path / "agent")) == told
