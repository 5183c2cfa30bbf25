"""pi."""

from __future__ import annotations

import json
from typing import ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import last_event, text
from harness.agents.media import counts, native_media
from harness.agents.opencode import CONTEXT_TOKENS, OUTPUT_TOKENS
from harness.prompt import typed_prompt


class Pi(CommandLineAgent):
    """The request on standard input, pictures as `@path` arguments. Its exit code says nothing: it is always 0."""

    name: ClassVar[str] = "pi"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (".pi/agent/sessions",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = [self.program, "-p", "--mode", "json", "--provider", "gateway", "--model", access.model]
        return Launch(
            argv=[*argv, *(f"@{one.home_path}" for one in media)],
            env={**access.env, "CDB_GATEWAY_TOKEN": access.token, "PI_OFFLINE": "1", "TERM": "dumb"},
            home_files={
                ".pi/agent/models.json": json.dumps(_models(access)).encode(),
                **{one.home_name: one.source for one in media},
            },
            stdin=typed_prompt(task).encode("utf-8", "surrogatepass"),
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end = last_event(output.stdout, "agent_end")
        messages = end.get("messages") if end else None
        if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
            return Reported(ok=False, reason="it ended with no agent_end event")
        last = messages[-1]
        failed = last.get("stopReason") in ("error", "aborted")
        turns = sum(1 for one in messages if isinstance(one, dict) and one.get("role") == "assistant")
        return Reported(ok=not failed, reason=text(last.get("errorMessage")) if failed else "", turns=turns)


def _models(access: ModelAccess) -> dict[str, object]:
    model = {
        "id": access.model,
        "name": access.model,
        "reasoning": False,
        "input": ["text", "image"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": CONTEXT_TOKENS,
        "maxTokens": OUTPUT_TOKENS,
    }
    provider = {"baseUrl": f"{access.base_url}/v1", "api": "openai-completions", "apiKey": "CDB_GATEWAY_TOKEN"}
    return {"providers": {"gateway": {**provider, "models": [model]}}}
