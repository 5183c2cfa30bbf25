"""aider."""

from __future__ import annotations

import json
from typing import ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.media import counts, native_media
from harness.agents.opencode import CONTEXT_TOKENS, OUTPUT_TOKENS
from harness.digests import text_paths
from harness.prompt import typed_prompt
from sandboxes.sandbox import HOME

_HISTORY = "aider"


_MODEL = {
    "mode": "chat",
    "litellm_provider": "openai",
    "max_input_tokens": CONTEXT_TOKENS,
    "max_output_tokens": OUTPUT_TOKENS,
    "supports_vision": True,
}
"""It sends pictures only to a model that it is told can see."""
_START = (
    "test -e .git || { git init -q && git add -Af && "
    "git -c user.name=baseline -c user.email=baseline@localhost commit -qm baseline; } >/dev/null 2>&1; "
    '"$@"; code=$?; rm -rf .aider.tags.cache*; exit $code'
)
"""It knows no files but those of a repository, so there is one (no snapshot takes it along). Its index of the
sources, which it can only put into the workspace, is removed at its end. The text is constant, the command its
arguments."""


class Aider(CommandLineAgent):
    """One turn: the request as its message file, edits as text blocks, its own files outside the workspace. Pictures
    are files to read: as files to edit they would make their own folder the place where it writes.

    It says nothing that tells success from failure: whether there was a reply is the gateway's to know.
    """

    name: ClassVar[str] = "aider"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (_HISTORY,)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = ["bash", "-c", _START, "aider", self.program, "--yes-always", "--no-check-update"]
        argv += ["--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes", "--no-detect-urls"]
        argv += ["--no-pretty", "--no-gitignore", "--no-auto-commits", "--no-dirty-commits", "--edit-format", "diff"]
        argv += ["--model-metadata-file", f"{HOME}/{_HISTORY}/models.json", "--model", f"openai/{access.model}"]
        argv += ["--message-file", f"{HOME}/{_HISTORY}/message.md"]
        for kind in ("chat", "input", "llm"):
            argv += [f"--{kind}-history-file", f"{HOME}/{_HISTORY}/{kind}.md"]
        for one in media:
            argv += ["--read", one.home_path]
        for path in text_paths(task).values():  # it opens no file outside the application by itself
            argv += ["--read", path]
        return Launch(
            argv=argv,
            env={**access.env, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "TERM": "dumb"},
            home_files={
                f"{_HISTORY}/models.json": json.dumps({f"openai/{access.model}": _MODEL}).encode(),
                f"{_HISTORY}/message.md": typed_prompt(task).encode("utf-8", "surrogatepass"),
                **{one.home_name: one.source for one in media},
            },
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        return Reported()
