"""Qwen Code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from harness.agents.agent import MediaKind, ModelAccess, WireProtocol
from harness.agents.gemini_family import GeminiFamily

_SETTINGS: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
}


class QwenCode(GeminiFamily):
    """Drops pictures silently for a model whose name it does not know to take pictures: the trial is then marked
    blind, from what the gateway saw."""

    name: ClassVar[str] = "qwen-code"
    protocol: ClassVar[WireProtocol] = "openai-chat"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image"})
    own_logs: ClassVar[tuple[str, ...]] = (".qwen/projects",)
    settings_file: ClassVar[str] = ".qwen/settings.json"

    def _settings(self, access: ModelAccess) -> Mapping[str, Any]:
        return _SETTINGS

    def _env(self, access: ModelAccess) -> Mapping[str, str]:
        return {"OPENAI_MODEL": access.model}

    def _failed(self, end: Mapping[str, Any]) -> bool:
        return bool(end.get("is_error"))
