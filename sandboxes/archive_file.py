"""One file out of the engine's archive stream, without holding more of it than is asked for."""

from __future__ import annotations

import io
import tarfile
from collections import deque
from collections.abc import Iterator
from typing import IO

ARCHIVE_CHUNK_BYTES = 262_144


def file_tail(chunks: Iterator[bytes], path: str, max_bytes: int) -> bytes:
    """The last `max_bytes` of the one file in `chunks`. Raises FileNotFoundError when `path` is no regular file."""
    with tarfile.open(fileobj=_Readable(chunks), mode="r|") as tar:
        member = tar.next()
        content = tar.extractfile(member) if member and member.isreg() else None
        if content is None:
            raise FileNotFoundError(f"{path} is no regular file")
        return _tail(content, max_bytes)


class _Readable(io.RawIOBase):
    """Chunks as a file that can only be read forward."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def _tail(content: IO[bytes], max_bytes: int) -> bytes:
    kept: deque[bytes] = deque()
    size = 0
    while chunk := content.read(ARCHIVE_CHUNK_BYTES):
        kept.append(chunk)
        size += len(chunk)
        while size - len(kept[0]) >= max_bytes:
            size -= len(kept.popleft())
    return b"".join(kept)[-max_bytes:]
