"""OpenCode."""

from __future__ import annotations

import json
from typing import ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import events, text
from harness.agents.media import counts, native_media
from harness.prompt import typed_prompt

_ENV = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "TERM": "dumb",
}
CONTEXT_TOKENS = 200_000
OUTPUT_TOKENS = 32_000
"""What a model that an agent does not know is taken to hold; part of the agent's description."""


class OpenCode(CommandLineAgent):
    """The request on standard input, pictures by `-f`; the model as one of a provider of our own."""

    name: ClassVar[str] = "opencode"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (".local/share/opencode/log",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = [self.program, "run", "--format", "json", "--title", task.case_id, "-m", f"gateway/{access.model}"]
        for one in media:
            argv += ["-f", one.home_path]
        return Launch(
            argv=argv,
            env={**access.env, **_ENV, "CDB_GATEWAY_TOKEN": access.token},
            home_files={
                ".config/opencode/opencode.json": json.dumps(_settings(access)).encode(),
                **{one.home_name: one.source for one in media},
            },
            stdin=typed_prompt(task).encode("utf-8", "surrogatepass"),
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        failure, finished, turns = "", False, 0
        for event in events(output.stdout):
            if event.get("type") == "error":
                failure = text(event.get("error")) or "an error event"
            elif event.get("type") == "step_finish":
                turns += 1
                part = event.get("part")
                finished = isinstance(part, dict) and part.get("reason") == "stop"
        if failure or not turns:
            return Reported(ok=False, reason=failure or "no step was finished", turns=turns)
        return Reported(ok=finished, reason="" if finished else "the last step did not end the work", turns=turns)


def _settings(access: ModelAccess) -> dict[str, object]:
    model = {
        "name": access.model,
        "tool_call": True,
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": CONTEXT_TOKENS, "output": OUTPUT_TOKENS},
    }
    options = {"baseURL": f"{access.base_url}/v1", "apiKey": "{env:CDB_GATEWAY_TOKEN}"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "gateway", "options": options}
    return {
        "autoupdate": False,
        "share": "disabled",
        "permission": "allow",
        "provider": {"gateway": {**provider, "models": {access.model: model}}},
    }
