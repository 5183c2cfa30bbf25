"""The gateway's own answers, each in the shape of the protocol that is spoken, so that agents understand them."""

from __future__ import annotations

import json
from typing import Any

from sandboxes.gateway.policy import Protocol

_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 502: "api_error", 503: "overloaded_error", 504: "timeout_error",
}  # fmt: skip
_GOOGLE = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    413: "INVALID_ARGUMENT", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def error_body(protocol: Protocol, status: int, message: str, code: str = "") -> bytes:
    """An error as this protocol's provider words one."""
    told: dict[str, Any]
    if protocol == "anthropic":
        told = {"type": "error", "error": {"type": _ANTHROPIC.get(status, "api_error"), "message": message}}
    elif protocol == "gemini":
        told = {"error": {"code": status, "message": message, "status": _GOOGLE.get(status, "UNKNOWN")}}
    else:
        kind = _ANTHROPIC.get(status, "api_error")
        told = {"error": {"message": message, "type": kind, "param": None, "code": code or kind}}
    return json.dumps(told).encode()


def models_body(protocol: Protocol, names: list[str], wanted: str) -> bytes | None:
    """The trial's models, or the one that is wanted; None when it is not among them."""
    if wanted and wanted not in names:
        return None
    chosen = [wanted] if wanted else names
    entries: list[dict[str, Any]]
    if protocol == "gemini":
        methods = ["generateContent", "countTokens"]
        entries = [
            {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in chosen
        ]
        told: Any = {"models": entries}
    elif protocol == "anthropic":
        entries = [
            {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}
            for name in chosen
        ]
        ends = {"first_id": chosen[0], "last_id": chosen[-1]} if chosen else {"first_id": None, "last_id": None}
        told = {"data": entries, "has_more": False, **ends}
    else:
        entries = [{"id": name, "object": "model", "created": 0, "owned_by": "gateway"} for name in chosen]
        told = {"object": "list", "data": entries}
    return json.dumps(entries[0] if wanted else told).encode()
