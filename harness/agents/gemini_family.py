"""What Gemini CLI and Qwen Code, which grew out of it, have in common: how they are started and how they end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import Launch, ModelAccess, Output, Reported
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import last_event, text, whole
from harness.agents.media import ATTACHED, attached_by_path, counts, native_media
from harness.prompt import typed_prompt
from sandboxes.sandbox import HOME


class GeminiFamily(CommandLineAgent):
    """The request on standard input; files by `@path`, in an argument of their own behind the request.

    They take any `@word` for a path, in the request too: they set a space before it, and add the file if there is
    one. Adapters say where their settings lie and what stands in them, how they are told the model, and what their
    last event looks like when they failed.
    """

    settings_file: ClassVar[str]

    def _settings(self, access: ModelAccess) -> Mapping[str, Any]:
        raise NotImplementedError

    def _argv(self, access: ModelAccess) -> list[str]:
        return []

    def _env(self, access: ModelAccess) -> Mapping[str, str]:
        raise NotImplementedError

    def _failed(self, end: Mapping[str, Any]) -> bool:
        raise NotImplementedError

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = [self.program, "-o", "stream-json", "-y", *self._argv(access)]
        if media:
            argv += ["--include-directories", f"{HOME}/{ATTACHED}", "-p", attached_by_path(media)]
        return Launch(
            argv=argv,
            env={**access.env, **self._env(access), "TERM": "dumb"},
            home_files={
                self.settings_file: json.dumps(self._settings(access)).encode(),
                **{one.home_name: one.source for one in media},
            },
            stdin=typed_prompt(task).encode("utf-8", "surrogatepass"),
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end = last_event(output.stdout, "result")
        if end is None:
            return Reported(ok=False, reason="it ended with no result event")
        failed = self._failed(end)
        error = end.get("error")
        why = text(error.get("message") if isinstance(error, dict) else error)
        why = why or text(end.get("subtype")) or text(end.get("status"))
        return Reported(ok=not failed, reason=why if failed else "", turns=whole(end.get("num_turns")))
