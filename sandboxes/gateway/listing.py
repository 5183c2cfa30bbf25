"""Which models an upstream says that it has. For a message to a person, so every failure is an empty list."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from bench.errors import UsageError
from sandboxes.gateway.policy import Protocol
from sandboxes.gateway.upstream import Route

ANSWER_S = 20.0
MOST_BYTES = 8 * 1024 * 1024
_TAILS: dict[Protocol, str] = {
    "anthropic": "/v1/models?limit=1000",
    "openai-chat": "/v1/models",
    "openai-responses": "/v1/models",
    "gemini": "/v1beta/models?pageSize=1000",
}


async def listed_models(route: Route, protocol: Protocol) -> list[str]:
    """Names in the upstream's own order."""
    try:
        async with asyncio.timeout(ANSWER_S):
            status, body = await route.look_up(_TAILS[protocol], protocol, MOST_BYTES)
        return _names(json.loads(body)) if status == 200 else []
    except (TimeoutError, aiohttp.ClientError, OSError, UsageError, ValueError):
        return []


def _names(told: Any) -> list[str]:
    if not isinstance(told, dict):
        return []
    entries = told.get("data") or told.get("models") or []
    names = [entry.get("id") or entry.get("name") for entry in entries if isinstance(entry, dict)]
    return [name.removeprefix("models/") for name in names if isinstance(name, str) and name]
