"""OpenHands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import PROMPT_FILE, Launch, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import text

_CONVERSATIONS = ".openhands/conversations"


class OpenHands(CommandLineAgent):
    """The request as a task file; settings from the environment. Not seen to pass pictures, so none are claimed.

    What it prints is events between marks, over many lines; its conversation's own folder has each in a file,
    numbered, and is what its end is read from.
    """

    name: ClassVar[str] = "openhands"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    own_logs: ClassVar[tuple[str, ...]] = (_CONVERSATIONS,)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        argv = [self.program, "--headless", "--json", "--override-with-envs", "--always-approve", "-f", PROMPT_FILE]
        env = {
            "LLM_BASE_URL": f"{access.base_url}/v1",
            "LLM_API_KEY": access.token,
            "LLM_MODEL": f"openai/{access.model}",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "OPENHANDS_SUPPRESS_BANNER": "1",
            "TERM": "dumb",
        }
        return Launch(argv=argv, env={**access.env, **env})

    def reported(self, output: Output) -> Reported:
        answers: set[str] = set()
        failure, ended, seen = "", False, False
        for event in _conversation(output.own / _CONVERSATIONS):
            seen = True
            kind, by_the_agent = event.get("kind"), event.get("source") == "agent"
            if kind == "ConversationErrorEvent":
                failure = text(event.get("detail")) or text(event.get("code")) or "an error without words"
            elif kind in ("ActionEvent", "MessageEvent") and by_the_agent:
                answers.add(str(event.get("llm_response_id") or event.get("id")))
                # It ends by its tool `finish`, or by an answer that calls none.
                ended = kind == "MessageEvent" or event.get("tool_name") == "finish"
                failure = ""
        if not seen:
            return Reported(ok=False, reason="it kept no conversation")
        reason = failure or ("" if ended else "its last step did not end the work")
        return Reported(ok=not reason, reason=reason, turns=len(answers))


def _conversation(folder: Path) -> Iterator[dict[str, Any]]:
    """Its events in order, of the one conversation a trial has. A file that is no event is passed over."""
    for path in sorted(folder.glob("*/events/*.json"), key=lambda path: path.name):
        try:
            event = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event
