"""A command's output on disk: all of it while it is small; head, tail and a count once it is not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO

from sandboxes.sandbox import MIB

HEAD_BYTES = 4 * MIB
TAIL_BYTES = 16 * MIB
"""Room for an agent's last words: one event of several megabytes, told twice, must be whole."""


class BoundedOutput:
    """Takes bytes in any number and keeps memory flat: the tail is a ring in a nameless file.

    `path` None means the bytes are only counted.
    """

    def __init__(self, path: Path | None, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self.total_bytes = 0
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._file: IO[bytes] | None = path.open("wb") if path else None
        self._ring: IO[bytes] | None = None

    def write(self, data: bytes) -> None:
        seen = self.total_bytes
        self.total_bytes += len(data)
        if self._file is None:
            return
        room = max(0, self._head_bytes - seen)
        self._file.write(data[:room])
        if len(data) > room:
            self._write_tail(data[room:], seen + room - self._head_bytes)

    def close(self) -> None:
        """Appends what the ring holds; what lies between head and tail is counted in a line of its own."""
        if self._file is None:
            return
        if self._ring is not None:
            self._append_tail(self._file, self._ring)
            self._ring.close()
        self._file.close()
        self._file = None

    def _write_tail(self, data: bytes, position: int) -> None:
        """`position` is where `data` starts in the output behind the head."""
        if self._ring is None:
            self._ring = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        skipped = max(0, len(data) - self._tail_bytes)
        data, position = data[skipped:], position + skipped
        while data:
            offset = position % self._tail_bytes
            part = data[: self._tail_bytes - offset]
            self._ring.seek(offset)
            self._ring.write(part)
            data, position = data[len(part) :], position + len(part)

    def _append_tail(self, out: IO[bytes], ring: IO[bytes]) -> None:
        behind_head = self.total_bytes - self._head_bytes
        dropped = behind_head - self._tail_bytes
        if dropped > 0:
            out.write(f"\n[… {dropped} bytes of output dropped here …]\n".encode())
            start = behind_head % self._tail_bytes
            ring.seek(start)
            out.write(ring.read())
            ring.seek(0)
            out.write(ring.read(start))
        else:
            ring.seek(0)
            out.write(ring.read())
