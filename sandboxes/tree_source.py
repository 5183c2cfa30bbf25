"""A stream of chunks as the file object that tarfile reads, with a cap on its whole length."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, cast

from sandboxes.sandbox import TreeTooLarge

_TAR_BUFFER_BYTES = 64 * 1024
"""tarfile's own default of 10 KiB costs five times as many calls; much more is copied over and over by it."""

_END_BYTES = 2 * tarfile.BLOCKSIZE


def members(chunks: Iterable[bytes], max_bytes: int) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Every member of a tar stream, with the archive it can be read from before the next one is asked for.

    Raises tarfile.TarError for a torn stream (reading a member's content may, too), TreeTooLarge when it is longer
    than `max_bytes`.
    """
    source = _Source(chunks, max_bytes)
    with tarfile.open(
        fileobj=cast("IO[bytes]", source),
        mode="r|",
        bufsize=_TAR_BUFFER_BYTES,
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        while (member := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile remembers every member; a million of them must not stay
            yield tar, member
    if not source.ends_well():
        raise tarfile.ReadError("no end-of-archive mark")  # tarfile takes an end between two members for the end


class _Source:
    """Reads forward only. A tar ends with two blocks of zeros."""

    def __init__(self, chunks: Iterable[bytes], max_bytes: int) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._max_bytes = max_bytes
        self._seen_bytes = 0
        self._rest = memoryview(b"")
        self._tail = b""

    def ends_well(self) -> bool:
        """Read what is left; whether the stream ended as a tar does."""
        while self.read(_TAR_BUFFER_BYTES):
            pass
        return self._tail == tarfile.NUL * _END_BYTES

    def read(self, size: int) -> bytes:
        parts, missing = [], size
        while missing > 0:
            if not self._rest:
                chunk = next(self._chunks, b"")
                self._tail = (self._tail + chunk[-_END_BYTES:])[-_END_BYTES:]
                self._rest = memoryview(chunk)
                self._seen_bytes += len(chunk)
                if self._seen_bytes > self._max_bytes:
                    raise TreeTooLarge(f"the whole tree, left-out parts too, is over {self._max_bytes} bytes")
                if not self._rest:
                    break
            part, self._rest = self._rest[:missing], self._rest[missing:]
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)
