"""aider."""

from __future__ import annotations

from typing import ClassVar

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.media import counts, native_media
from harness.prompt import typed_prompt
from sandboxes.sandbox import HOME

_HISTORY = "aider"


class Aider(CommandLineAgent):
    """One turn: the request as its message file, edits as text blocks, no git, its own files outside the workspace.

    It says nothing that tells success from failure: whether there was a reply is the gateway's to know.
    """

    name: ClassVar[str] = "aider"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (_HISTORY,)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        argv = [self.program, "--yes-always", "--no-check-update", "--analytics-disable", "--no-show-model-warnings"]
        argv += ["--no-show-release-notes", "--no-detect-urls", "--no-pretty", "--no-git", "--edit-format", "diff"]
        argv += ["--model", f"openai/{access.model}", "--message-file", f"{HOME}/{_HISTORY}/message.md"]
        for kind in ("chat", "input", "llm"):
            argv += [f"--{kind}-history-file", f"{HOME}/{_HISTORY}/{kind}.md"]
        return Launch(
            argv=[*argv, *(one.home_path for one in media)],
            env={**access.env, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "TERM": "dumb"},
            home_files={
                f"{_HISTORY}/message.md": typed_prompt(task).encode("utf-8", "surrogatepass"),
                **{one.home_name: one.source for one in media},
            },
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        return Reported()
