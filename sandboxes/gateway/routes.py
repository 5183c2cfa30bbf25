"""Which paths exist. Everything that is not one of them, letter for letter, is refused.

Paths are compared as they came, undecoded: no spelling of another path (`..`, `%2f`, `//`) can match.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from sandboxes.gateway.policy import Protocol

Kind = Literal["model", "count", "models", "probe", "refused"]

_GEMINI = re.compile(r"/(v1|v1beta|v1alpha)/models/([A-Za-z0-9._-]{1,200}):([A-Za-z]+)\Z")
_MODELS = re.compile(r"/(v1|v1beta)/models(?:/([A-Za-z0-9._:@-]{1,200}))?\Z")
_QUERY = re.compile(r"[A-Za-z0-9._~=&%$:,+*-]*\Z")
_POST: dict[str, tuple[Kind, Protocol]] = {
    "/v1/messages": ("model", "anthropic"),
    "/v1/messages/count_tokens": ("count", "anthropic"),
    "/v1/chat/completions": ("model", "openai-chat"),
    "/v1/responses": ("model", "openai-responses"),
}
_VERBS: dict[str, Kind] = {"generateContent": "model", "streamGenerateContent": "model", "countTokens": "count"}
_PROBES = frozenset({"/", "/api/hello", "/health", "/v1"})


class Ask(NamedTuple):
    """What a request line asks for. `tail` is the path below the upstream's base address (see `upstream.py`),
    `query` what of the query goes along; `model` stands in the path (Gemini, model list) or is empty."""

    kind: Kind
    protocol: Protocol
    tail: str = ""
    query: str = ""
    model: str = ""
    verb: str = ""
    token: str = ""
    """A token in the query (`?key=`)."""
    reason: str = ""


def parse(method: str, raw_path: str, *, anthropic: bool = False) -> Ask:
    """Read a request line. `anthropic`: the request carries `anthropic-version`, which tells the two model
    lists at `/v1/models` apart."""
    path, _, told = raw_path.partition("?")
    query, token = _query(told)
    protocol = _protocol(path, anthropic=anthropic)
    if not _QUERY.match(told):
        return Ask(
            "refused", protocol, token=token, reason="the query holds characters that no call of a model needs"
        )
    if method == "POST" and path in _POST:
        kind, protocol = _POST[path]
        return Ask(kind, protocol, path, query, token=token)
    gemini = _GEMINI.match(path)
    if method == "POST" and gemini and gemini[3] in _VERBS:
        return Ask(_VERBS[gemini[3]], "gemini", gemini[1], query, gemini[2], gemini[3], token)
    if method in {"GET", "HEAD"} and path in _PROBES:
        return Ask("probe", protocol)
    models = _MODELS.match(path)
    if method in {"GET", "HEAD"} and models:
        return Ask("models", protocol, token=token, model=models[2] or "")
    return Ask("refused", protocol, token=token, reason=f"{method} {path[:200]} is no path of this gateway")


def _protocol(path: str, *, anthropic: bool) -> Protocol:
    """Whose error format a refusal should have."""
    if path.startswith(("/v1beta", "/v1alpha")):
        return "gemini"
    if anthropic or path.startswith(("/v1/messages", "/api/")):
        return "anthropic"
    return "openai-responses" if path.startswith("/v1/responses") else "openai-chat"


def _query(told: str) -> tuple[str, str]:
    """The query without what authenticates, and the token that stood in it."""
    if not told:
        return "", ""
    token, kept = "", []
    for pair in told.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() in {"key", "access_token", "api_key", "%24key", "$key"}:
            token = value
        else:
            kept.append(pair)
    return "&".join(kept), token
