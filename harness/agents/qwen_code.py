"""Qwen Code."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import last_event, text, whole
from harness.agents.media import ATTACHED, attached_by_path, counts, native_media
from harness.prompt import typed_prompt
from sandboxes.sandbox import HOME

_SETTINGS: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
}


class QwenCode(CommandLineAgent):
    """The request on standard input; pictures by `@path`. It drops them silently for a model whose name it does
    not know to take pictures: the trial is then marked blind, from what the gateway saw."""

    name: ClassVar[str] = "qwen-code"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (".qwen/projects",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = [self.program, "-o", "stream-json", "-y"]
        if media:
            argv += ["--include-directories", f"{HOME}/{ATTACHED}", "-p", attached_by_path(media)]
        return Launch(
            argv=argv,
            env={**access.env, "OPENAI_MODEL": access.model, "TERM": "dumb"},
            home_files={
                ".qwen/settings.json": json.dumps(_SETTINGS).encode(),
                **{one.home_name: one.source for one in media},
            },
            stdin=typed_prompt(task).encode("utf-8", "surrogatepass"),
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end = last_event(output.stdout, "result")
        if end is None:
            return Reported(ok=False, reason="it ended with no result event")
        failed = bool(end.get("is_error"))
        error = end.get("error")
        why = text(error.get("message") if isinstance(error, dict) else error) or text(end.get("subtype"))
        return Reported(ok=not failed, reason=why if failed else "", turns=whole(end.get("num_turns")))
