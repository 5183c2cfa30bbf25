"""A host directory as a tar stream for the engine, never held in memory, links never followed."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from bench.errors import DataError

_CHUNK_BYTES = 262_144


def tar_stream(source: Path, uid: int) -> Iterator[bytes]:
    """The content of `source` (not the directory itself), owned by `uid`:`uid`, names in byte order.

    Modes become 755 (directories, executables) or 644. Raises DataError for anything that is no file,
    directory or link, and when a file changes its size under the copy.
    """
    pending = [b""]
    root = os.fsencode(source)
    while pending:
        folder = pending.pop()
        with os.scandir(os.path.join(root, folder)) as found:  # names are bytes
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = folder + b"/" + entry.name if folder else entry.name
            yield from _member(entry, name, uid)
            if entry.is_dir(follow_symlinks=False):
                pending.append(name)
    yield tarfile.NUL * (2 * tarfile.BLOCKSIZE)


def _member(entry: os.DirEntry[bytes], name: bytes, uid: int) -> Iterator[bytes]:
    status = entry.stat(follow_symlinks=False)
    header = tarfile.TarInfo(os.fsdecode(name))
    header.uid = header.gid = uid
    header.mtime = int(status.st_mtime)
    header.mode = 0o755 if stat.S_ISDIR(status.st_mode) or status.st_mode & 0o100 else 0o644
    if stat.S_ISLNK(status.st_mode):
        header.type, header.linkname, header.mode = tarfile.SYMTYPE, os.fsdecode(os.readlink(entry.path)), 0o777
    elif stat.S_ISDIR(status.st_mode):
        header.type = tarfile.DIRTYPE
    elif stat.S_ISREG(status.st_mode):
        header.size = status.st_size
    else:
        raise DataError(
            f"{os.fsdecode(entry.path)!r} is no file, directory or link; it cannot be put into a container"
        )
    # GNU format carries names of any bytes and any length.
    yield header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    if header.type == tarfile.REGTYPE:
        yield from _content(entry.path, status.st_size)


def _content(path: bytes, size: int) -> Iterator[bytes]:
    left = size
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while left:
            chunk = file.read(min(left, _CHUNK_BYTES))
            if not chunk:
                raise DataError(f"{os.fsdecode(path)!r} became shorter while it was copied")
            left -= len(chunk)
            yield chunk
    if size % tarfile.BLOCKSIZE:
        yield tarfile.NUL * (tarfile.BLOCKSIZE - size % tarfile.BLOCKSIZE)
