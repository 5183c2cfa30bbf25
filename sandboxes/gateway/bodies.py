"""Bodies of requests and answers, each kept once under its sha256.

An agent sends its whole conversation with every call, so that one body is mostly the one before. A body that shares
its beginning or end with a recent one is kept as what differs (`HASH.delta`: a line of JSON, then the bytes between):
60 calls of a growing conversation take the room of a few.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from pathlib import Path
from typing import NamedTuple

from bench.errors import DataError

FOLDER = "bodies"
SMALL_BYTES = 4096
MOST_RECENT = 4
RECENT_BYTES = 8 * 1024 * 1024
"""Bodies held in memory to compare with, at most, for one trial."""
LONGEST_CHAIN = 50


class _Recent(NamedTuple):
    digest: str
    raw: bytes
    depth: int
    """How many deltas lie between it and a body that is kept whole."""


class BodyStore:
    """Keeps one trial's bodies. Not for several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._recent: deque[_Recent] = deque(maxlen=MOST_RECENT)
        self._kept: set[str] = set()

    def keep(self, raw: bytes) -> str:
        """Keep `raw`; returns its sha256 (hex), or nothing for an empty body. Raises OSError."""
        if not raw:
            return ""
        digest = hashlib.sha256(raw).hexdigest()
        if digest in self._kept:
            return digest
        place = self._folder / digest[:2] / digest
        if not place.exists() and not _delta(place).exists():
            place.parent.mkdir(exist_ok=True)
            self._write(place, digest, raw)
        if len(self._kept) < 4096:
            self._kept.add(digest)
        return digest

    def _write(self, place: Path, digest: str, raw: bytes) -> None:
        if len(raw) < SMALL_BYTES:
            _put(place, raw)
            return
        best, head, tail = None, 0, 0
        for recent in self._recent:
            shared = _common(recent.raw, raw)
            if recent.depth < LONGEST_CHAIN and sum(shared) > head + tail:
                best, (head, tail) = recent, shared
        if best is not None and head + tail >= len(raw) // 2:
            told = json.dumps({"base": best.digest, "head": head, "tail": tail}).encode()
            _put(_delta(place), told + b"\n" + raw[head : len(raw) - tail])
        else:
            best = None
            _put(place, raw)
        self._recent.append(_Recent(digest, raw, best.depth + 1 if best else 0))
        while self._recent and sum(len(recent.raw) for recent in self._recent) > RECENT_BYTES:
            self._recent.popleft()


def read_body(folder: Path, digest: str) -> bytes:
    """The body with this sha256 (hex) of the trial in `folder`. Raises DataError when it is missing or damaged."""
    steps: list[tuple[int, int, bytes]] = []
    wanted = digest
    try:
        while True:
            place = folder / FOLDER / wanted[:2] / wanted
            if place.exists():
                raw = place.read_bytes()
                break
            line, _, middle = _delta(place).read_bytes().partition(b"\n")
            told = json.loads(line)
            steps.append((told["head"], told["tail"], middle))
            wanted = str(told["base"])
            if len(steps) > LONGEST_CHAIN:
                raise ValueError("its deltas go in a circle")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder}: no body {digest} ({error}); restore the trial's folder from a copy") from error
    for head, tail, middle in reversed(steps):
        raw = raw[:head] + middle + raw[len(raw) - tail :]
    if hashlib.sha256(raw).hexdigest() != digest:
        raise DataError(f"{folder}: body {digest} is damaged; restore the trial's folder from a copy")
    return raw


def _delta(place: Path) -> Path:
    return place.with_suffix(".delta")


def _put(place: Path, content: bytes) -> None:
    part = place.with_suffix(".part")
    part.write_bytes(content)
    part.rename(place)


def _common(one: bytes, other: bytes) -> tuple[int, int]:
    """Lengths of the beginning and of the end that both share, not overlapping."""
    head = _shared(one, other)
    longest = min(len(one), len(other)) - head
    if not longest:
        return head, 0
    return head, _shared(one[: -longest - 1 : -1], other[: -longest - 1 : -1])


def _shared(one: bytes, other: bytes) -> int:
    """Length of the common beginning, by halving: comparing slices is far quicker than comparing bytes."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
