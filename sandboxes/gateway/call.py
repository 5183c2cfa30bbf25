"""One request on its way through the gateway: what is known of it so far, and the record it becomes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sandboxes.gateway.edits import MEDIA_BYTES_PER_TOKEN, Prepared
from sandboxes.gateway.ledger import Reservation
from sandboxes.gateway.policy import Price
from sandboxes.gateway.prices import cost_usd
from sandboxes.gateway.records import Ended, Refusal
from sandboxes.gateway.routes import Ask
from sandboxes.gateway.usage import Tokens, UsageReader

REQUEST_HEADERS = ("User-Agent", "Content-Type", "anthropic-version", "anthropic-beta", "x-stainless-retry-count")
RESPONSE_HEADERS = ("Content-Type", "Content-Encoding", "request-id", "x-request-id", "Retry-After", "retry-after-ms")
"""The headers that records keep. None of them carries a credential."""
MOST_EDITS = 100
LONGEST_KEPT_BYTES = 64 * 1024 * 1024
STREAM_BYTES_PER_TOKEN = 32
TEXT_BYTES_PER_TOKEN = 4
"""Guesses for what an answer without a usage has cost; they go to the cap only, never to the cost."""


@dataclass
class Call:
    """Filled in as the request proceeds."""

    n: int
    ask: Ask
    method: str
    path: str
    began: float = field(default_factory=time.monotonic)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    raw: bytes = b""
    held_bytes: int = 0
    model_asked: str = ""
    prepared: Prepared | None = None
    price: Price | None = None
    upstream: str = ""
    held: Reservation | None = None
    queued_s: float = 0.0
    waited_s: float = 0.0
    sent_at: float | None = None
    first_byte_s: float | None = None
    upstream_status: int | None = None
    status: int = 0
    reader: UsageReader | None = None
    parts: list[bytes] = field(default_factory=list)
    response_bytes: int = 0
    ended: Ended = "ok"
    refusal: Refusal = ""
    retry_after: str = ""
    note: str = ""
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)

    def took(self, chunk: bytes) -> None:
        """A piece of the answer passed."""
        self.response_bytes += len(chunk)
        if self.response_bytes <= LONGEST_KEPT_BYTES:
            self.parts.append(chunk)

    @property
    def body(self) -> bytes:
        """The answer as it came; empty when it was too large to keep."""
        return b"".join(self.parts) if self.response_bytes <= LONGEST_KEPT_BYTES else b""

    @property
    def billed(self) -> bool:
        """Whether the upstream may have charged for it: it answered well, or was still at it when it ended."""
        if self.ask.kind != "model" or self.sent_at is None:
            return False
        if self.upstream_status is None:
            return self.ended in {"idle_timeout", "client_gone", "trial_ended"}
        return self.upstream_status < 400

    @property
    def counts(self) -> bool:
        """Whether it is one of the trial's requests: not when the upstream was limited, broken or not there."""
        if self.ask.kind != "model" or self.sent_at is None:
            return False
        status = self.upstream_status
        return self.ended != "upstream_error" if status is None else status != 429 and status < 500

    def tokens(self) -> Tokens | None:
        """What the wire told, or None."""
        return self.reader.tokens if self.reader and self.billed else None

    def partial(self) -> bool:
        """The answer broke off, so that its usage may be more than was told."""
        return self.billed and not (self.reader is not None and self.reader.finished and self.ended == "ok")

    def cost(self) -> float | None:
        """USD by what the wire told: 0 for a call that cannot have been charged, None where nobody knows."""
        if not self.billed:
            return 0.0
        tokens = self.tokens()
        return cost_usd(self.price, tokens) if tokens is not None and self.price is not None else None

    def against_caps(self) -> tuple[float | None, int]:
        """USD and tokens that count against the caps: as told, and for a broken answer no less than a guess."""
        if not self.billed:
            return 0.0, 0
        told = self.tokens()
        tokens = Tokens(**vars(told)) if told else Tokens()
        if told is None and self.prepared is not None:
            media = self.prepared.media.size_bytes
            text = max(0, len(self.prepared.body) - media)
            tokens.input = text // TEXT_BYTES_PER_TOKEN + media // MEDIA_BYTES_PER_TOKEN
        if told is None or self.partial():
            streamed = self.prepared is not None and self.prepared.stream
            size = STREAM_BYTES_PER_TOKEN if streamed else TEXT_BYTES_PER_TOKEN
            tokens.output = max(tokens.output, self.response_bytes // size)
        return (cost_usd(self.price, tokens) if self.price else None), tokens.total

    def record(self) -> dict[str, Any]:
        """The line of the log, without the bodies' hashes; fields at their default are left out."""
        prepared, reader, tokens = self.prepared, self.reader, self.tokens()
        usd, cap_tokens = self.against_caps()
        record: dict[str, Any] = {
            "n": self.n,
            "kind": self.ask.kind,
            "protocol": self.ask.protocol,
            "method": self.method[:20],
            "path": self.path[:300],
            "started_at": self.started_at.isoformat(timespec="milliseconds"),
            "duration_s": round(time.monotonic() - self.began, 4),
            "first_byte_s": self.first_byte_s,
            "waited_s": round(self.waited_s, 3),
            "queued_s": round(self.queued_s, 3),
            "upstream": self.upstream,
            "model_asked": self.model_asked,
            "status": self.status,
            "sent": self.sent_at is not None,
            "upstream_status": self.upstream_status,
            "ended": self.ended,
            "refusal": self.refusal,
            "retry_after": self.retry_after,
            "usage": tokens.record() if tokens else None,
            "usage_partial": self.partial(),
            "request_bytes": len(self.raw),
            "response_bytes": self.response_bytes,
            "request_headers": self.request_headers,
            "response_headers": self.response_headers,
            "note": self.note,
        }
        if prepared is not None:
            record |= {
                "model_asked": prepared.asked,
                "model_sent": prepared.sent,
                "stream": prepared.stream,
                "edits": prepared.edits[:MOST_EDITS],
                "media": dict(prepared.media.counts),
            }
        if reader is not None:
            record["model_answered"] = reader.model
            record["note"] = "; ".join(filter(None, (self.note, reader.blind, reader.error)))
        kept = {key: value for key, value in record.items() if value not in ("", None, {}, [], False)}
        if self.ask.kind == "model" and self.refusal == "":
            kept |= {"cost_usd": self.cost(), "cap_usd": usd, "cap_tokens": cap_tokens}
        return kept
