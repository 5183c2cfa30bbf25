"""The reference agent: our own small tool loop over litellm, with pictures, for any model litellm can speak to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bench.task import Task
from harness.agents.agent import PROMPT_FILE, Launch, MediaKind, ModelAccess, Output, Reported, WireProtocol
from harness.agents.command_line import CommandLineAgent
from harness.agents.events import events, last_event, text
from harness.agents.media import counts, native_media
from sandboxes.sandbox import HOME

_LOOP = Path(__file__).parent / "reference_loop"
_PLACE = "reference"
_PREFIXES = {"openai-chat": ("openai", "/v1"), "anthropic": ("anthropic", ""), "gemini": ("gemini", "/v1beta")}
"""litellm's provider and the path it expects in an address, for each protocol."""


@dataclass(frozen=True)
class ReferenceAgent(CommandLineAgent):
    """The loop runs in the container from two files of ours; litellm comes from its pack."""

    spoken: WireProtocol = "openai-chat"

    name: ClassVar[str] = "reference"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})

    @property
    def protocol(self) -> WireProtocol:  # type: ignore[override]  # a setting here, fixed for the others
        return self.spoken

    def _launch(self, task: Task, access: ModelAccess) -> Launch:
        media = native_media(task, self.modalities)
        provider, path = _PREFIXES[self.spoken]
        argv = [self.program, f"{HOME}/{_PLACE}/loop.py", "--request", PROMPT_FILE]
        argv += ["--model", f"{provider}/{access.model}", "--address", access.base_url + path]
        for one in media:
            argv += ["--image", one.home_path]
        return Launch(
            argv=argv,
            env={**access.env, "REFERENCE_KEY": access.token, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            home_files={
                **{f"{_PLACE}/{name}": _LOOP / name for name in ("loop.py", "tools.py")},
                **{one.home_name: one.source for one in media},
            },
            passed=counts(media),
        )

    def reported(self, output: Output) -> Reported:
        end = last_event(output.stdout, "end")
        if end is None:
            return Reported(ok=False, reason="it ended with no end event")
        turns = sum(1 for event in events(output.stdout) if event.get("type") == "step")
        return Reported(ok=bool(end.get("ok")), reason=text(end.get("reason")), turns=turns)

    def describe(self) -> dict[str, Any]:
        files = {name: (_LOOP / name).read_bytes() for name in ("loop.py", "tools.py")}
        return super().describe() | {"loop_sha256": _digest_of(files)}


def _digest_of(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
