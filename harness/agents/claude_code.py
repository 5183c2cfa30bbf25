"""Claude Code."""

from __future__ import annotations

import base64
import json
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import last_event, number, text, whole
from harness.agents.media import Media, counts, native_media
from harness.prompt import typed_prompt
from sandboxes.sandbox import HOME

_CONFIG = ".claude"
_QUIET = {
    "CLAUDE_CONFIG_DIR": f"{HOME}/{_CONFIG}",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",  # it refuses to skip its questions as root unless told that it is contained
    "TERM": "dumb",
}
_WEB = "WebSearch,WebFetch"


class ClaudeCode(CommandLineAgent):
    """One user message on standard input in its stream-json format: the request's text, then the pictures.

    Its own side model is asked for as well (`claude-haiku-*`); what becomes of that is the gateway's policy.
    """

    name: ClassVar[str] = "claude-code"
    protocol: ClassVar[WireProtocol] = "anthropic"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image", "document"})
    own_logs: ClassVar[tuple[str, ...]] = (f"{_CONFIG}/projects",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        content = [{"type": "text", "text": typed_prompt(task)}, *(_block(one) for one in media)]
        message = {"type": "user", "message": {"role": "user", "content": content}}
        argv = [self.program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        argv += ["--permission-mode", "bypassPermissions", "--model", access.model]
        argv += [] if access.hosted_tools else ["--disallowedTools", _WEB]
        return Launch(
            argv=argv,
            env={**access.env, **_QUIET},
            stdin=json.dumps(message).encode() + b"\n",
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end = last_event(output.stdout, "result")
        if end is None:
            return Reported(ok=False, reason="it ended with no result event")
        # After a failed call `subtype` still says "success": only `is_error` counts.
        failed = bool(end.get("is_error"))
        why = [str(end.get("subtype", "")), text(end.get("api_error_status")), text(end.get("result"))]
        return Reported(
            ok=not failed,
            reason=": ".join(part for part in why if part) if failed else "",
            turns=whole(end.get("num_turns")),
            cost_usd=number(end.get("total_cost_usd")),
        )


def _block(media: Media) -> dict[str, Any]:
    data = base64.b64encode(media.source.read_bytes()).decode()
    source = {"type": "base64", "media_type": media.mime, "data": data}
    return {"type": "image" if media.kind == "image" else "document", "source": source}
