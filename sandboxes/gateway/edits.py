"""What the policy changes in a request, and the requests it refuses. Everything else passes byte for byte."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import NamedTuple

from sandboxes.gateway.hosted import Edits, strip_hosted, strip_side_doors
from sandboxes.gateway.json_text import Document, NotEditable
from sandboxes.gateway.media import Media, find_media
from sandboxes.gateway.policy import ModelRule, Price, Protocol, TrialPolicy, Upstream
from sandboxes.gateway.routes import Ask

_STEERING = ("model", "tools", "stream", "stream_options", "messages", "input", "contents", "background", "n")
LONGEST_NAME = 200
_PLAIN_TIERS = frozenset({"auto", "default", "standard", "standard_only", "flex"})
DEFAULT_OUTPUT_TOKENS = 32_000
TEXT_BYTES_PER_TOKEN = 2
MEDIA_BYTES_PER_TOKEN = 50


class Refused(Exception):
    """The request is answered by us: `status`, and `code` for the record (`model`, `request`)."""

    def __init__(self, status: int, code: str, message: str, *, model: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.model = status, code, model


class Prepared(NamedTuple):
    """A request as it will be sent."""

    rule: ModelRule
    asked: str
    sent: str
    body: bytes
    stream: bool
    edits: Edits
    media: Media
    output_tokens: int | None
    """The most it may give, all candidates together; None when it says nothing."""


def asked_model(ask: Ask, document: Document) -> str:
    """The model a request names. Raises Refused when it names none."""
    model = ask.model or document.get("model")
    if not isinstance(model, str) or not 0 < len(model) <= LONGEST_NAME:
        raise Refused(400, "request", f"the request names no model (a text of at most {LONGEST_NAME} characters)")
    return model


def rule_for(policy: TrialPolicy, model: str) -> ModelRule:
    """The first rule that fits. Raises Refused (404, as a provider answers for a model that does not exist)."""
    for rule in policy.models:
        if rule.asked == model or fnmatchcase(model, rule.asked):
            return rule
    listed = ", ".join(rule.asked for rule in policy.models)
    raise Refused(404, "model", f"model {model[:200]!r} is not on this trial's list ({listed})", model=model)


def prepare(raw: bytes, ask: Ask, policy: TrialPolicy, upstreams: dict[str, Upstream]) -> Prepared:
    """Read a request, refuse it or make the policy's edits. Raises Refused."""
    try:
        document = Document(raw)
        _unambiguous(document)
        asked = asked_model(ask, document)
        rule = rule_for(policy, asked)
        upstream = upstreams[rule.upstream]
        if ask.protocol not in upstream.protocols:
            raise Refused(404, "model", f"model {asked!r} is not served over {ask.protocol} here", model=asked)
        media = find_media(document, ask.protocol)
        edits = strip_side_doors(document)
        if not policy.hosted_tools:
            edits += strip_hosted(document, ask.protocol)
            if media.fetched:
                raise Refused(
                    400, "request", f"addresses are not fetched for this trial, send the bytes: {media.fetched[0]}"
                )
        edits += _money(document)
        edits += _one_model(document, rule, asked, in_path=bool(ask.model))
        stream = ask.verb == "streamGenerateContent" or document.get("stream") is True
        edits += _usage(document, ask, upstream, stream=stream)
    except NotEditable as error:
        raise Refused(400, "request", f"the request's body cannot be used: {error}") from error
    sent = rule.send or asked
    return Prepared(rule, asked, sent, document.bytes(), stream, edits, media, _output_tokens(document, ask.protocol))


def _unambiguous(document: Document) -> None:
    """Some servers ignore a key's case or underscores. One that would be read as another steers past the policy."""
    for key in document.members:
        folded = key.casefold()
        for name in _STEERING:
            if folded == name and key != name:
                raise Refused(400, "request", f"the key {key!r} is not {name!r}, but some servers would take it so")
    if document.get("background") is True:
        raise Refused(400, "request", "background responses are off: their usage cannot be seen")


def _money(document: Document) -> Edits:
    """Price classes that the price table cannot follow."""
    edits: Edits = []
    tier = document.get("service_tier")
    if tier is not None and not (isinstance(tier, str) and tier in _PLAIN_TIERS):
        document.drop("service_tier")
        edits.append({"edit": "drop_service_tier", "what": str(tier)[:80]})
    if document.get("speed") is not None:
        edits.append({"edit": "drop_speed", "what": str(document.get("speed"))[:80]})
        document.drop("speed")
    return edits


def _one_model(document: Document, rule: ModelRule, asked: str, *, in_path: bool) -> Edits:
    """Map the model where the rule says so. In a Gemini call it stands in the path, and a body must not differ."""
    edits: Edits = []
    if in_path and "model" in document.members and document.get("model") not in (asked, f"models/{asked}"):
        edits.append({"edit": "drop_model", "what": str(document.get("model"))[:80]})
        document.drop("model")
    if rule.send is None or rule.send == asked:
        return edits
    if not in_path or "model" in document.members:
        document.put("model", json.dumps(f"models/{rule.send}" if in_path else rule.send))
    return [*edits, {"edit": "map_model", "what": f"{asked} -> {rule.send}"}]


def _usage(document: Document, ask: Ask, upstream: Upstream, *, stream: bool) -> Edits:
    """A chat stream tells its usage only when asked."""
    if ask.protocol != "openai-chat" or not stream or not upstream.asks_usage:
        return []
    options = document.get("stream_options")
    if isinstance(options, dict):
        if options.get("include_usage") is True:
            return []
        document.put("stream_options", json.dumps({**options, "include_usage": True}))
    else:
        document.put("stream_options", '{"include_usage":true}')
    return [{"edit": "include_usage", "what": "stream_options.include_usage"}]


def _output_tokens(document: Document, protocol: Protocol) -> int | None:
    if protocol == "gemini":
        config = document.get("generationConfig") or document.get("generation_config")
        config = config if isinstance(config, dict) else {}
        limit, copies = config.get("maxOutputTokens", config.get("max_output_tokens")), config.get("candidateCount")
    else:
        names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
        limit = next((document.get(name) for name in names if document.get(name) is not None), None)
        copies = document.get("n")
    if not isinstance(limit, int) or limit < 0:
        return None
    return limit * (copies if isinstance(copies, int) and copies > 1 else 1)


def estimate(prepared: Prepared, price: Price | None) -> tuple[float | None, int]:
    """USD (None: no price) and tokens this call may cost at most, as far as that can be told from its bytes."""
    text = max(0, len(prepared.body) - prepared.media.size_bytes)
    given = text // TEXT_BYTES_PER_TOKEN + prepared.media.size_bytes // MEDIA_BYTES_PER_TOKEN
    made = prepared.output_tokens
    if made is None:
        made = (price.max_output_tokens if price else None) or DEFAULT_OUTPUT_TOKENS
    if price is None:
        return None, given + made
    dearest = max(price.input, price.cache_write or 0.0)
    return (given * dearest + made * price.output) / 1_000_000, given + made
