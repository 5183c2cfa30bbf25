"""A host directory as a tar stream, never held in memory, links never followed."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

from bench.errors import DataError

SOCKTYPE = b"s"
"""Our own mark for a socket, which tar does not know; only `copy_out` ever reads it."""
_CHUNK_BYTES = 262_144
_SPECIAL = {
    stat.S_IFIFO: tarfile.FIFOTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
    stat.S_IFBLK: tarfile.BLKTYPE,
    stat.S_IFSOCK: SOCKTYPE,
}


def tar_stream(
    source: Path, uid: int, *, without: frozenset[str] = frozenset(), top: str = "", special: bool = False
) -> Iterator[bytes]:
    """The content of `source` owned by `uid`:`uid`, in pieces, but for whatever bears one of the names `without`.

    `top` puts the whole below a directory of that name, as the engine's archives have it. Modes become 755
    (directories, executables) or 644. Raises DataError when a file changes its size under the copy, and for anything
    that is no file, directory or link; with `special` that becomes a member without content instead, and setuid and
    setgid bits are kept: for `copy_out`, which lists them.
    """
    piece = bytearray()
    for part in _parts(source, uid, without, top, special):
        piece += part
        if len(piece) >= _CHUNK_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece) + tarfile.NUL * (2 * tarfile.BLOCKSIZE)


def _parts(source: Path, uid: int, without: frozenset[str], top: str, special: bool) -> Iterator[bytes]:
    skipped = {os.fsencode(name) for name in without}
    above = f"{top}/".encode() if top else b""
    if top:
        yield _header(above, source.lstat(), uid, tarfile.DIRTYPE)
    pending = [b""]
    root = os.fsencode(source)
    while pending:
        folder = pending.pop()
        with os.scandir(os.path.join(root, folder)) as found:  # names are bytes
            entries = sorted((e for e in found if e.name not in skipped), key=lambda entry: entry.name)
        for entry in entries:
            name = folder + b"/" + entry.name if folder else entry.name
            yield from _member(entry, above + name, uid, special)
            if entry.is_dir(follow_symlinks=False):
                pending.append(name)


def _member(entry: os.DirEntry[bytes], name: bytes, uid: int, special: bool) -> Iterator[bytes]:
    status = entry.stat(follow_symlinks=False)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        yield _header(name, status, uid, tarfile.SYMTYPE, os.readlink(entry.path))
    elif kind == stat.S_IFDIR:
        yield _header(name, status, uid, tarfile.DIRTYPE)
    elif kind == stat.S_IFREG:
        yield _header(name, status, uid, tarfile.REGTYPE, odd_bits=status.st_mode & 0o6000 if special else 0)
        yield from _content(entry.path, status.st_size)
    elif special:
        yield _header(name, status, uid, _SPECIAL[kind])
    else:
        raise DataError(
            f"{os.fsdecode(entry.path)!r} is no file, directory or link; it cannot be put into a container"
        )


def _header(
    name: bytes, status: os.stat_result, uid: int, kind: bytes, link: bytes = b"", odd_bits: int = 0
) -> bytes:
    """A header in GNU format, which carries names of any bytes and any length."""
    header = tarfile.TarInfo(_text(name))
    header.type = kind
    header.linkname = _text(link)
    header.uid = header.gid = uid
    header.mtime = int(status.st_mtime)
    header.mode = 0o755 if kind == tarfile.DIRTYPE or status.st_mode & 0o100 else 0o644
    if kind == tarfile.SYMTYPE:
        header.mode = 0o777
    if kind == tarfile.REGTYPE:
        header.size = status.st_size
        header.mode |= odd_bits
    return header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


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


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
