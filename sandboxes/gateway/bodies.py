"""Bodies of requests and answers, each kept once under its sha256, all of a trial's in one file.

An agent sends its whole conversation with every call, so that one body is mostly the one before. A body that shares
its beginning or end with a recent one is kept as what differs: 60 calls of a growing conversation take the room of
a few.

`bodies.pack` is a row of entries. Each is a line of JSON (`sha256`, `size` of what follows, and for a difference
`base`, `head` and `tail`: the body begins and ends as that other one), the bytes, and a newline. A torn last entry
is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import DataError

PACK = "bodies.pack"
SMALL_BYTES = 4096
MOST_RECENT = 4
RECENT_BYTES = 8 * 1024 * 1024
"""Bodies held in memory to compare with, at most, for one trial."""
LONGEST_CHAIN = 50
MOST_KNOWN = 4096
"""Hashes held in memory; a body that comes again after so many others is kept a second time."""


class _Recent(NamedTuple):
    digest: str
    raw: bytes
    depth: int
    """How many differences lie between it and a body that is kept whole."""


class BodyStore:
    """Writes one trial's bodies. Not for several threads."""

    def __init__(self, folder: Path) -> None:
        self._pack = (folder / PACK).open("ab", buffering=0)
        self._recent: deque[_Recent] = deque(maxlen=MOST_RECENT)
        self._known: set[bytes] = set()

    def keep(self, raw: bytes) -> str:
        """Keep `raw`; returns its sha256 (hex), or nothing for an empty body. Raises OSError."""
        if not raw:
            return ""
        hashed = hashlib.sha256(raw)
        if hashed.digest() not in self._known:
            self._write(hashed.hexdigest(), raw)
            if len(self._known) < MOST_KNOWN:
                self._known.add(hashed.digest())
        return hashed.hexdigest()

    def close(self) -> None:
        os.fsync(self._pack.fileno())
        self._pack.close()

    def _write(self, digest: str, raw: bytes) -> None:
        best, head, tail = None, 0, 0
        if len(raw) >= SMALL_BYTES:
            for recent in self._recent:
                shared = _common(recent.raw, raw)
                if recent.depth < LONGEST_CHAIN and sum(shared) > head + tail:
                    best, (head, tail) = recent, shared
        if best is not None and head + tail >= len(raw) // 2:
            self._append(
                {"sha256": digest, "base": best.digest, "head": head, "tail": tail}, raw[head : len(raw) - tail]
            )
        else:
            best = None
            self._append({"sha256": digest}, raw)
        if len(raw) >= SMALL_BYTES:
            self._recent.append(_Recent(digest, raw, best.depth + 1 if best else 0))
            while self._recent and sum(len(recent.raw) for recent in self._recent) > RECENT_BYTES:
                self._recent.popleft()

    def _append(self, told: dict[str, Any], content: bytes) -> None:
        """Write one whole entry or nothing."""
        entry = json.dumps(told | {"size": len(content)}).encode() + b"\n" + content + b"\n"
        before = self._pack.seek(0, os.SEEK_END)
        try:
            if self._pack.write(entry) != len(entry):
                raise OSError("only a part of a body could be written")
        except OSError:
            os.ftruncate(self._pack.fileno(), before)
            raise


class Bodies:
    """Reads a trial's bodies. The index is made once, so that many can be read."""

    def __init__(self, folder: Path) -> None:
        """Raises DataError when the file is missing or no pack."""
        self._path = folder / PACK
        self._entries: dict[str, tuple[int, dict[str, Any]]] = {}
        try:
            with self._path.open("rb") as pack:
                size = os.fstat(pack.fileno()).st_size
                while line := pack.readline():
                    told: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {"size": size}
                    at = pack.tell()
                    if at + told["size"] + 1 > size:
                        break  # torn
                    self._entries.setdefault(told["sha256"], (at, told))
                    pack.seek(told["size"] + 1, os.SEEK_CUR)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{self._path} cannot be read ({error}); restore the trial's folder from a copy"
            ) from error

    def read(self, digest: str) -> bytes:
        """The body with this sha256 (hex). Raises DataError when it is missing or damaged."""
        steps: list[tuple[int, int, bytes]] = []
        wanted = digest
        with self._path.open("rb") as pack:
            while True:
                if wanted not in self._entries or len(steps) > LONGEST_CHAIN:
                    raise DataError(f"{self._path}: no body {digest}; restore the trial's folder from a copy")
                at, told = self._entries[wanted]
                pack.seek(at)
                raw = pack.read(told["size"])
                if "base" not in told:
                    break
                steps.append((told["head"], told["tail"], raw))
                wanted = told["base"]
        for head, tail, middle in reversed(steps):
            raw = raw[:head] + middle + raw[len(raw) - tail :]
        if hashlib.sha256(raw).hexdigest() != digest:
            raise DataError(f"{self._path}: body {digest} is damaged; restore the trial's folder from a copy")
        return raw


def read_body(folder: Path, digest: str) -> bytes:
    """One body of the trial in `folder`. Raises DataError when it is missing or damaged."""
    return Bodies(folder).read(digest)


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
