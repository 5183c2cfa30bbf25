"""OpenHands."""

from __future__ import annotations

from typing import ClassVar

from bench.task import Task
from harness.agents.agent import PROMPT_FILE, Launch, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent


class OpenHands(CommandLineAgent):
    """The request as a task file; settings from the environment. Not seen to pass pictures, so none are claimed."""

    name: ClassVar[str] = "openhands"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    own_logs: ClassVar[tuple[str, ...]] = (".openhands/conversations",)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        argv = [self.program, "--headless", "--json", "--override-with-envs", "--always-approve", "-f", PROMPT_FILE]
        env = {
            "LLM_BASE_URL": f"{access.base_url}/v1",
            "LLM_API_KEY": access.token,
            "LLM_MODEL": f"openai/{access.model}",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "TERM": "dumb",
        }
        return Launch(argv=argv, env={**access.env, **env})

    def reported(self, output: Output) -> Reported:
        return Reported()
