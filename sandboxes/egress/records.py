"""What a trial asked of the world: `egress.jsonl`, a line for each ask, and `egress.json`, the sums by host."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bench.atomic import write_bytes
from sandboxes.egress.policy import Mode

LOG = "egress.jsonl"
SUMS = "egress.json"
MOST_HOSTS = 1000
LONGEST_URL = 500

Outcome = Literal["answered", "refused", "blocked", "failed"]


class EgressLine(BaseModel):
    """One ask. `sent_bytes` came from the agent, `received_bytes` went to it; both without heads of requests."""

    model_config = ConfigDict(extra="forbid")

    at: float
    """Unix time at which it began."""
    method: str
    host: str
    port: int
    url: str = ""
    """Empty for a tunnel, whose content nobody reads."""
    outcome: Outcome
    status: int = 0
    """What the agent was told; 0 where the answer broke off before its first line."""
    reason: str = ""
    sent_bytes: int = 0
    received_bytes: int = 0
    ms: float = 0.0


class HostSums(BaseModel):
    """All asks of one host, over its ports."""

    model_config = ConfigDict(extra="forbid")

    host: str
    ports: list[int] = Field(default_factory=list)
    answered: int = 0
    refused: int = 0
    blocked: int = 0
    failed: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    first_at: float = 0.0
    last_at: float = 0.0

    def add(self, line: EgressLine) -> None:
        setattr(self, line.outcome, getattr(self, line.outcome) + 1)
        if line.port not in self.ports and len(self.ports) < 20:
            self.ports.append(line.port)
        self.sent_bytes += line.sent_bytes
        self.received_bytes += line.received_bytes
        self.first_at = min(self.first_at or line.at, line.at)
        self.last_at = max(self.last_at, line.at)


class EgressSums(BaseModel):
    """`egress.json`. Hosts in the order in which they were first asked; after MOST_HOSTS they are only counted."""

    model_config = ConfigDict(extra="forbid")

    schema_: Literal["cdb.egress/1"] = Field("cdb.egress/1", alias="schema")
    mode: Mode
    answered: int = 0
    refused: int = 0
    blocked: int = 0
    failed: int = 0
    hosts: list[HostSums] = Field(default_factory=list)
    asks_of_unlisted_hosts: int = 0
    lines_left_out: int = 0
    connections_dropped: int = 0


class EgressLog:
    """Writes the log while the trial runs and the sums at its end. Used by one event loop, so nothing is locked."""

    def __init__(self, folder: Path, mode: Mode, most_lines: int) -> None:
        self._folder = folder
        self._left = most_lines
        self._hosts: dict[str, HostSums] = {}
        self._file = (folder / LOG).open("ab")
        self.sums = EgressSums(mode=mode)

    def write(self, line: EgressLine) -> None:
        line.url = line.url[:LONGEST_URL]
        line.ms = round((time.time() - line.at) * 1000, 1)
        setattr(self.sums, line.outcome, getattr(self.sums, line.outcome) + 1)
        if line.host in self._hosts or len(self._hosts) < MOST_HOSTS:
            self._hosts.setdefault(line.host, HostSums(host=line.host)).add(line)
        else:
            self.sums.asks_of_unlisted_hosts += 1
        if self._left <= 0:
            self.sums.lines_left_out += 1
            return
        self._left -= 1
        self._file.write(line.model_dump_json().encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
        self.sums.hosts = list(self._hosts.values())
        write_bytes(self._folder / SUMS, self.sums.model_dump_json(by_alias=True).encode() + b"\n")


def read_sums(folder: Path) -> EgressSums | None:
    """The sums of a trial that is over; None where its proxy did not come to write them."""
    path = folder / SUMS
    return EgressSums.model_validate_json(path.read_bytes()) if path.is_file() else None
