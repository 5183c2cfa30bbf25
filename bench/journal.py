"""The append-only journal of a run: JSON lines, each chained to the one before by its sha256.

A record is `{"schema": "cdb.journal/1", "seq": n, "prev": sha256 of the previous line, "at": UTC time, …}`.
A line counts only when it ends with a newline and its chain holds; a torn last line is cut off and its work
done again. One writer at a time, guarded by a lock file that names pid and host.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from bench.errors import DataError, InfraError, UsageError

SCHEMA = "cdb.journal/1"
GENESIS = "0" * 64

Record = dict[str, Any]


@dataclass(frozen=True)
class JournalText:
    """What is on disk: whole records, sha256 of the last line, and how many torn bytes follow it."""

    records: list[Record]
    last_hash: str
    torn_bytes: int


def read_journal(path: Path) -> JournalText:
    """Read and check a whole journal of ours. A missing file is an empty journal.

    Raises DataError naming the line when a line in the middle is damaged or the chain is broken.
    """
    stream = JournalStream(path)
    records = list(stream) if path.exists() else []
    return JournalText(records, stream.last_hash, stream.torn_bytes)


class JournalStream:
    """A journal of ours, read record by record in flat memory; each is checked against the chain on the way.

    `last_hash` and `torn_bytes` hold once the iteration has ended. Raises DataError as `read_journal` does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_hash = GENESIS
        self.torn_bytes = 0

    def __iter__(self) -> Iterator[Record]:
        previous, sha256 = GENESIS, hashlib.sha256
        with self.path.open("rb", buffering=1 << 20) as stream:
            for number, ended in enumerate(stream, start=1):
                if not ended.endswith(b"\n"):
                    self.torn_bytes = len(ended)
                    break
                line = ended[:-1]
                record = parse_line(line, number, self.path)
                if record.get("schema") != SCHEMA:
                    raise DataError(f"{self.path}, line {number}: no {SCHEMA} record; is this a journal of ours?")
                if record.get("prev") != previous or record.get("seq") != number:
                    raise DataError(
                        f"{self.path}, line {number}: the hash chain is broken, "
                        "so a line before it was edited, added or removed"
                    )
                previous = sha256(line).hexdigest()
                yield record
        self.last_hash = previous


_decode = json.JSONDecoder().raw_decode
"""`json.loads` without its checks of the argument: a third of the time of a short line."""


def parse_line(line: bytes, number: int, path: Path) -> Record:
    """One line as a JSON object. Raises DataError naming file and line."""
    try:
        text = line.decode("utf-8")
        record, end = _decode(text, 0)
        if end != len(text) and text[end:] != "\n":
            record = json.loads(text)  # white space after the object, or an error with its place
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {number}: not JSON ({error}); restore the file from a copy") from error
    if type(record) is not dict:
        raise DataError(f"{path}, line {number}: not a JSON object; restore the file from a copy")
    return record


class Journal:
    """The journal's single writer. Use as a context manager; `append` may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()  # guards _stream, _hash and _count: one line is written at a time
        self._stream: IO[bytes]
        self._guard: IO[str]
        self._hash = GENESIS
        self._count = 0

    def __enter__(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._guard = take_lock(self.path.with_suffix(".lock"))
        try:
            found = read_journal(self.path)
            self._stream = self.path.open("ab", buffering=0)
            if found.torn_bytes:
                self._stream.truncate(self.path.stat().st_size - found.torn_bytes)
        except BaseException:
            self._guard.close()
            raise
        self._hash, self._count = found.last_hash, len(found.records)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stream.close()
        self._guard.close()  # frees the lock; the file stays, since removing it would race with the next writer

    def append(self, payload: Record) -> Record:
        """Write one record, flushed to the disk before this returns; gives the record as written."""
        with self._lock:
            record = {
                "schema": SCHEMA,
                "seq": self._count + 1,
                "prev": self._hash,
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                **payload,
            }
            line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
            self._write(line + b"\n")
            self._hash = hashlib.sha256(line).hexdigest()
            self._count += 1
            return record

    def _write(self, line: bytes) -> None:
        """Write one whole line or nothing: after a failure (a full disk) the file is as it was before."""
        before = self._stream.seek(0, os.SEEK_END)
        try:
            written = self._stream.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written")
            os.fsync(self._stream.fileno())
        except OSError as error:
            os.ftruncate(self._stream.fileno(), before)
            raise InfraError(
                f"{self.path} cannot be written ({error}); free some disk and run the same command again"
            ) from error


def take_lock(path: Path) -> IO[str]:
    """Hold an exclusive lock on `path`, which then names its holder. A dead holder's lock is free by itself."""
    stream = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        holder = stream.read().strip() or "another process"
        stream.close()
        raise UsageError(
            f"{path.parent} is being written by {holder}; wait for it to end or choose another --out"
        ) from None
    stream.truncate(0)
    stream.write(f"pid {os.getpid()} on {socket.gethostname()}")
    stream.flush()
    return stream


def of_type(records: list[Record], kind: str) -> Iterator[Record]:
    """The records whose `type` is `kind`, in order."""
    return (record for record in records if record.get("type") == kind)
