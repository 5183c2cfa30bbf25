"""What a trial's gateway leaves behind: `gateway.jsonl`, `bodies.pack` and `gateway.json`, and how they are read.

Every field is explained in docs/records.md. Imports nothing heavy: harness and reports read these files.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.atomic import write_json
from bench.errors import DataError
from sandboxes.gateway.bodies import BodyStore, read_body

__all__ = ["CallRecord", "Tally", "TrialSummary", "Writer", "ending", "read_body", "read_calls"]

LOG = "gateway.jsonl"
SILENT_S = 60.0
"""An upstream that has not begun to answer for so long is out, though the agent's client gave up before we did."""
SUMMARY = "gateway.json"
MOST_NAMES = 100
"""Model names an agent made up are counted apart up to this number."""

Ended = Literal["ok", "refused", "upstream_error", "upstream_cut", "idle_timeout", "client_gone", "trial_ended"]
Refusal = Literal["", "budget", "model", "token", "path", "request", "record"]
Ending = Literal["ok", "budget", "rate_limit", "outage", "auth", "rejected", "none"]


class CallRecord(BaseModel):
    """One line of `gateway.jsonl`: one request of the agent, whatever became of it."""

    model_config = ConfigDict(extra="forbid")

    n: int
    kind: Literal["model", "count", "models", "probe", "refused"]
    protocol: str
    method: str
    path: str
    started_at: str
    duration_s: float
    first_byte_s: float | None = None
    waited_s: float = 0.0
    queued_s: float = 0.0
    upstream: str = ""
    model_asked: str = ""
    model_sent: str = ""
    model_answered: str = ""
    stream: bool = False
    sent: bool = False
    status: int = 0
    upstream_status: int | None = None
    ended: Ended = "ok"
    refusal: Refusal = ""
    retry_after: str = ""
    usage: dict[str, int] | None = None
    usage_partial: bool = False
    cost_usd: float | None = None
    cap_usd: float | None = None
    cap_tokens: int = 0
    edits: list[dict[str, str]] = Field(default_factory=list)
    media: dict[str, int] = Field(default_factory=dict)
    request_sha256: str = ""
    request_sent_sha256: str = ""
    response_sha256: str = ""
    request_bytes: int = 0
    response_bytes: int = 0
    request_headers: dict[str, str] = Field(default_factory=dict)
    response_headers: dict[str, str] = Field(default_factory=dict)
    note: str = ""


class TrialSummary(BaseModel):
    """`gateway.json`: a trial's calls added up. Money that nobody can know is None, never 0."""

    model_config = ConfigDict(extra="forbid")

    trial: str
    calls: int = 0
    """Model calls that reached an upstream."""
    requests: int = 0
    """Those that counted against the cap (not: 429 and 5xx)."""
    tokens: dict[str, int] = Field(default_factory=dict)
    cost_usd: float | None = 0.0
    cost_known_usd: float = 0.0
    cap_usd: float = 0.0
    unpriced_calls: int = 0
    partial_calls: int = 0
    models_asked: dict[str, int] = Field(default_factory=dict)
    models_sent: dict[str, int] = Field(default_factory=dict)
    models_answered: dict[str, int] = Field(default_factory=dict)
    statuses: dict[str, int] = Field(default_factory=dict)
    exhausted: str = ""
    refused: dict[str, int] = Field(default_factory=dict)
    hosted_tools_stripped: dict[str, int] = Field(default_factory=dict)
    media: dict[str, int] = Field(default_factory=dict)
    waited_s: float = 0.0
    """Time in which at least one call waited for a rate limit; not the agent's."""
    in_flight: int = 0
    ending: Ending = "none"
    fault: str = ""
    """Trouble of the gateway itself (a full disk): the trial is infrastructure's."""


def read_calls(folder: Path) -> list[CallRecord]:
    """The trial's calls in the order they ended. A torn last line is left out.

    Raises DataError naming the line.
    """
    path = folder / LOG
    content = path.read_bytes() if path.is_file() else b""
    calls = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            calls.append(CallRecord.model_validate_json(line))
        except ValidationError as error:
            raise DataError(f"{path}, line {number}: no record of a call: {error}") from error
    return calls


class Writer:
    """Writes one trial's records. A call's line is there when its client has seen the answer's end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._bodies = BodyStore(folder)
        self._log = (folder / LOG).open("ab", buffering=0)

    def line(self, record: dict[str, Any]) -> None:
        """Append a record. Raises OSError; then nothing of it stands in the file."""
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
        before = self._log.seek(0, os.SEEK_END)
        try:
            if self._log.write(line + b"\n") != len(line) + 1:
                raise OSError("only a part of the line could be written")
        except OSError:
            os.ftruncate(self._log.fileno(), before)
            raise

    def body(self, raw: bytes) -> str:
        """Keep a body once; returns its sha256. Raises OSError."""
        return self._bodies.keep(raw)

    def close(self, summary: dict[str, Any]) -> None:
        self._bodies.close()
        os.fsync(self._log.fileno())
        self._log.close()
        write_json(self._folder / SUMMARY, summary)


class Tally:
    """Adds calls up as they end."""

    def __init__(self, trial: str) -> None:
        self._trial = trial
        self._sums: Counter[str] = Counter()
        self._counters: dict[str, Counter[str]] = {
            name: Counter() for name in (
                "tokens", "models_asked", "models_sent", "models_answered", "statuses", "refused",
                "hosted_tools_stripped", "media",
            )
        }  # fmt: skip
        self._known_usd = 0.0
        self._cap_usd = 0.0
        self._ending: Ending = "none"

    def add(self, record: dict[str, Any]) -> None:
        """`record` is a line of the log: defaults may be left out of it."""
        if record["kind"] not in {"model", "count"}:
            if record.get("refusal"):
                self._counters["refused"][record["refusal"]] += 1
            return
        if asked := record.get("model_asked"):
            names = self._counters["models_asked"]
            names[asked if asked in names or len(names) < MOST_NAMES else "…"] += 1
        if record.get("refusal"):
            self._counters["refused"][record["refusal"]] += 1
            if record["kind"] == "model" and record["refusal"] == "budget":
                self._ending = "budget"
            return
        for edit in record.get("edits", ()):
            if edit["edit"] == "strip_hosted_tool":
                self._counters["hosted_tools_stripped"][edit["what"]] += 1
        if record["kind"] == "model" and record.get("sent"):
            self._add_model_call(record)

    def _add_model_call(self, record: dict[str, Any]) -> None:
        self._sums["calls"] += 1
        for name, field in (("models_sent", "model_sent"), ("models_answered", "model_answered")):
            if record.get(field):
                self._counters[name][record[field]] += 1
        self._counters["statuses"][str(record.get("upstream_status") or record["ended"])] += 1
        self._counters["tokens"].update(record.get("usage") or {})
        self._counters["media"].update(record.get("media", {}))
        self._sums["partial_calls"] += bool(record.get("usage_partial"))
        self._known_usd += record.get("cost_usd") or 0.0
        self._sums["unpriced_calls"] += record.get("cost_usd") is None
        self._cap_usd += record.get("cap_usd") or 0.0
        self._ending = ending(record)

    def summary(self, **more: Any) -> dict[str, Any]:
        known = round(self._known_usd, 9)
        return {
            "trial": self._trial,
            "calls": self._sums["calls"],
            "partial_calls": self._sums["partial_calls"],
            "unpriced_calls": self._sums["unpriced_calls"],
            "cost_known_usd": known,
            "cost_usd": None if self._sums["unpriced_calls"] else known,
            "cap_usd": round(self._cap_usd, 9),
            **{name: dict(sorted(counter.items())) for name, counter in self._counters.items()},
            "ending": self._ending,
            **more,
        }


def ending(record: dict[str, Any]) -> Ending:
    """How one model call ended, in the words that decide a trial's outcome.

    `rate_limit` and `outage` are nobody's fault but the provider's; `auth` the operator's; `rejected` (4xx) and
    `ok` the agent's own.
    """
    status = record.get("upstream_status")
    waited_s = record.get("duration_s", 0.0) - record.get("waited_s", 0.0)
    silent = status is None and record.get("sent") and waited_s > SILENT_S
    if record["ended"] in {"upstream_cut", "idle_timeout"} or (record["ended"] == "client_gone" and silent):
        return "outage"
    if record["ended"] == "upstream_error" and (status is None or status < 400):
        return "outage"
    if status == 429:
        return "rate_limit"
    if status in {401, 402, 403, 407}:
        return "auth"
    if status is not None and status >= 500:
        return "outage"
    return "rejected" if status is not None and status >= 400 else "ok"
