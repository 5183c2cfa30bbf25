"""Gemini CLI."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import last_event, text
from harness.agents.media import ATTACHED, attached_by_path, counts, native_media
from harness.prompt import typed_prompt
from sandboxes.sandbox import HOME

_SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},  # a base URL makes it choose one that fails headless
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


class GeminiCli(CommandLineAgent):
    """The request on standard input; files by its `@path`, in an argument of their own behind the request.

    It takes any `@word` for a path, in the request too: it sets a space before it, and adds the file if there is one.
    """

    name: ClassVar[str] = "gemini-cli"
    protocol: ClassVar[WireProtocol] = "gemini"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image", "audio", "video", "document"})
    own_logs: ClassVar[tuple[str, ...]] = (".gemini/tmp",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        settings = _SETTINGS if access.hosted_tools else {**_SETTINGS, "tools": {"exclude": ["google_web_search"]}}
        argv = [self.program, "-o", "stream-json", "-y", "-m", access.model]
        if media:
            argv += ["--include-directories", f"{HOME}/{ATTACHED}", "-p", attached_by_path(media)]
        return Launch(
            argv=argv,
            env={**access.env, "GEMINI_CLI_TRUST_WORKSPACE": "true", "TERM": "dumb"},
            home_files={
                ".gemini/settings.json": json.dumps(settings).encode(),
                **{one.home_name: one.source for one in media},
            },
            stdin=typed_prompt(task).encode("utf-8", "surrogatepass"),
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end = last_event(output.stdout, "result")
        if end is None:
            return Reported(ok=False, reason="it ended with no result event")
        failed = end.get("status") != "success"
        error = end.get("error")
        why = text(error.get("message") if isinstance(error, dict) else error) or text(end.get("status"))
        return Reported(ok=not failed, reason=why if failed else "")
