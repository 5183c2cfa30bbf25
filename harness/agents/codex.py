"""Codex."""

from __future__ import annotations

import json
from typing import ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import events, text
from harness.agents.media import counts, native_media
from harness.prompt import prompt
from sandboxes.sandbox import HOME

_CONFIG = ".codex"


class Codex(CommandLineAgent):
    """The request on standard input, pictures by `-i`, everything else in its config.toml."""

    name: ClassVar[str] = "codex"
    protocol: ClassVar[WireProtocol] = "openai-responses"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (f"{_CONFIG}/sessions",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = [self.program, "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        for one in media:
            argv += ["-i", one.home_path]  # under plain names: a comma in a path would be taken for two
        config = _config(access).encode()
        return Launch(
            argv=[*argv, "-"],
            env={**access.env, "CDB_GATEWAY_TOKEN": access.token, "CODEX_HOME": f"{HOME}/{_CONFIG}", "TERM": "dumb"},
            home_files={f"{_CONFIG}/config.toml": config, **{one.home_name: one.source for one in media}},
            stdin=prompt(task).encode("utf-8", "surrogatepass"),
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end, turns = None, 0
        for event in events(output.stdout):  # an item of type `error` may be a mere warning
            if event.get("type") in ("turn.completed", "turn.failed"):
                end, turns = event, turns + 1
        if end is None:
            return Reported(ok=False, reason="it completed no turn")
        failed = end["type"] == "turn.failed"
        error = end.get("error")
        why = text(error.get("message") if isinstance(error, dict) else error)
        return Reported(ok=not failed, reason=why if failed else "", turns=turns)


def _config(access: ModelAccess) -> str:
    """Its settings in TOML. JSON strings are TOML strings."""
    return f"""\
model = {json.dumps(access.model)}
model_provider = "gateway"
check_for_update_on_startup = false
web_search = "{"live" if access.hosted_tools else "disabled"}"

[analytics]
enabled = false

[otel]
exporter = "none"
metrics_exporter = "none"
trace_exporter = "none"

[features]
apps = false
plugins = false

[model_providers.gateway]
name = "gateway"
base_url = {json.dumps(access.base_url + "/v1")}
env_key = "CDB_GATEWAY_TOKEN"
wire_api = "responses"
"""
