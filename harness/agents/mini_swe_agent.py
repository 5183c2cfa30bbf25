"""mini-swe-agent."""

from __future__ import annotations

import base64
import json
from typing import Any, ClassVar

import yaml

from bench.task import Task
from harness.agents.agent import Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import number, text, whole
from harness.agents.media import Media, counts, native_media
from harness.prompt import prompt
from sandboxes.sandbox import HOME

_LOGS = "mini"
_TRAJECTORY = f"{_LOGS}/trajectory.json"
_RUN = "run.yaml"
_TAG = (
    r"(?s)<MSWEA_MULTIMODAL_CONTENT><CONTENT_TYPE>(image_url)</CONTENT_TYPE>"
    r"(data:image/[a-z]+;base64,[A-Za-z0-9+/=]+)</MSWEA_MULTIMODAL_CONTENT>"
)
_ENV = {
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",  # the gateway counts; it would refuse a model whose price it lacks
    "MSWEA_SILENT_STARTUP": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "TERM": "dumb",
}


class MiniSweAgent(CommandLineAgent):
    """Its own mini.yaml, with the task and its pictures in a second configuration file merged over it."""

    name: ClassVar[str] = "mini-swe-agent"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (_LOGS,)

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        run = {
            "run": {"task": prompt(task) + "".join(_tag(one) for one in media)},
            # Its cache marks, on by default for claude models, break on a message that holds pictures.
            "model": {"multimodal_regex": _TAG, "set_cache_control": None} if media else {},
            "agent": {"cost_limit": 0},
        }
        argv = [self.program, "-y", "--exit-immediately", "-m", f"openai/{access.model}"]
        argv += ["-c", "mini.yaml", "-c", f"{HOME}/{_RUN}", "-o", f"{HOME}/{_TRAJECTORY}"]
        return Launch(
            argv=argv,
            env={**access.env, **_ENV},
            home_files={_RUN: yaml.safe_dump(run, allow_unicode=False).encode("ascii")},
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        try:
            told = json.loads((output.own / _TRAJECTORY).read_bytes())
            info: dict[str, Any] = told["info"]
            stats = info.get("model_stats") or {}
            status = str(info.get("exit_status", ""))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Reported(ok=False, reason="it ended with no trajectory")
        return Reported(
            ok=status == "Submitted",
            reason="" if status == "Submitted" else text(status) or "no exit status",
            turns=whole(stats.get("api_calls")),
            cost_usd=number(stats.get("instance_cost")),
        )


def _tag(media: Media) -> str:
    data = base64.b64encode(media.source.read_bytes()).decode()
    address = f"data:{media.mime};base64,{data}"
    return f"\n<MSWEA_MULTIMODAL_CONTENT><CONTENT_TYPE>image_url</CONTENT_TYPE>{address}</MSWEA_MULTIMODAL_CONTENT>"
