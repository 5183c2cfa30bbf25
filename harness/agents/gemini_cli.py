"""Gemini CLI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from harness.agents.agent import MediaKind, ModelAccess, WireProtocol
from harness.agents.gemini_family import GeminiFamily

_SETTINGS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},  # a base URL makes it choose one that fails headless
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


class GeminiCli(GeminiFamily):
    """Takes every kind of file. An answer that repeats itself it takes for a loop: it stops, and says success."""

    name: ClassVar[str] = "gemini-cli"
    protocol: ClassVar[WireProtocol] = "gemini"
    modalities: ClassVar[frozenset[MediaKind]] = frozenset({"image", "audio", "video", "document"})
    own_logs: ClassVar[tuple[str, ...]] = (".gemini/tmp",)
    settings_file: ClassVar[str] = ".gemini/settings.json"

    def _settings(self, access: ModelAccess) -> Mapping[str, Any]:
        return _SETTINGS if access.hosted_tools else {**_SETTINGS, "tools": {"exclude": ["google_web_search"]}}

    def _argv(self, access: ModelAccess) -> list[str]:
        return ["-m", access.model]

    def _env(self, access: ModelAccess) -> Mapping[str, str]:
        return {"GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def _failed(self, end: Mapping[str, Any]) -> bool:
        return end.get("status") != "success"
