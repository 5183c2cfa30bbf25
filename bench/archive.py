"""A tar.gz from outside (a release's, a bundle's) as a stream of members, with every rule of what may be in it.

tarfile reads the format; nothing else of it is trusted: its `data` filter moves absolute names instead of refusing
them, falls back on copies for hard links, and a damaged header in the middle looks to it like the end.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench.archive_rules import ArchiveRefused, Caps, Member, Refuse, Rules, TreeOf, release_tree
from bench.errors import DataError

CHUNK_BYTES = 262_144
_HEADER_BYTES = 1_048_576
"""What a member's headers may take: names and attributes of any real tree are far below."""
_BAD_TAR = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError, OverflowError, RecursionError)


def read_members(
    archive: Path, refuse: Refuse, caps: Caps = Caps(), tree_of: TreeOf = release_tree, *, any_name: bool = False
) -> Iterator[tuple[Member, Content | None]]:
    """Every member that may be unpacked, in the archive's order, a file with its content to be read before the next.

    A parent folder may come late or not at all, as in any tar. Links are checked at the end, against all others.
    Raises DataError when the archive is damaged or passes a cap of the whole.
    """
    with _told(archive), gzip.open(archive) as packed:
        archive_bytes = archive.stat().st_size
        source = _Source(packed, archive_bytes, caps)
        with tarfile.open(
            fileobj=_as_file(source),
            mode="r|",
            bufsize=CHUNK_BYTES,
            tarinfo=_Header,
            encoding="utf-8",
            errors="surrogateescape",
        ) as tar:
            rules = Rules(caps, archive_bytes, refuse, tree_of, any_name=any_name)
            for info in _headers(tar, source):
                member = rules.admit(info)
                stream = tar.extractfile(info) if info.isreg() and info.size else None
                content = Content(archive, stream) if stream else None
                if member:
                    yield member, content
                while content and content.read():  # what nobody read, so that next() meets headers only
                    pass
            rules.check_links()
            _require_nothing_more(tar)


def raise_hostile(archive: Path) -> Refuse:
    """A `refuse` that raises DataError naming the member."""

    def refuse(name: str, why: str) -> None:
        raise DataError(hostile(archive, name, why))

    return refuse


def hostile(archive: Path, name: str, why: str) -> str:
    """The message about a member that may not be."""
    return f"{archive.name}: refused member {name!r}: {why}; download the archive again from its publisher"


class Content:
    """A file's content, to be read in pieces; trouble on the way names the archive."""

    def __init__(self, archive: Path, stream: IO[bytes]) -> None:
        self._archive = archive
        self._stream = stream

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        with _told(self._archive):
            return self._stream.read(size)


@contextmanager
def _told(archive: Path) -> Iterator[None]:
    try:
        yield
    except _BAD_TAR as error:
        what = str(error) or type(error).__name__
        raise DataError(f"{archive.name} cannot be read to its end ({what}); download it again") from error
    except ArchiveRefused as error:
        raise DataError(f"{archive.name} is refused: {error}; download it again from its publisher") from error


class _Header(tarfile.TarInfo):
    """tarfile takes a damaged or missing header after the first for the end of the archive; here it is an error."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Header:
        try:
            return super().fromtarfile(tarfile)
        except _END:
            raise
        except _HEADER_ERROR as error:
            raise _READ_ERROR(f"a damaged header, or no end marker: {error}") from error


_END = tarfile.EOFHeaderError  # type: ignore[attr-defined]  # not in typeshed
_HEADER_ERROR, _READ_ERROR = tarfile.HeaderError, tarfile.ReadError


class _Source:
    """The unpacked stream as tarfile wants it, counted: in all, against the archive's size, and for headers."""

    def __init__(self, packed: gzip.GzipFile, archive_bytes: int, caps: Caps) -> None:
        self._packed = packed
        self._most = caps.unpacked_bytes(archive_bytes)
        self._why = f"it unpacks to more than {self._most} bytes out of {archive_bytes}"
        self._seen = 0
        self._header_end: int | None = None
        self.allow_header()  # tarfile reads the first header while it opens

    def allow_header(self) -> None:
        self._header_end = self._seen + _HEADER_BYTES + 2 * CHUNK_BYTES

    def allow_content(self) -> None:
        self._header_end = None

    def read(self, size: int) -> bytes:
        piece = self._packed.read(size)
        self._seen += len(piece)
        if self._seen > self._most:
            raise ArchiveRefused(self._why)
        if self._header_end is not None and self._seen > self._header_end:
            raise ArchiveRefused(f"the headers of one member are longer than {_HEADER_BYTES} bytes")
        return piece


def _as_file(source: _Source) -> IO[bytes]:
    return source  # type: ignore[return-value]  # tarfile's stream mode only reads


def _headers(tar: tarfile.TarFile, source: _Source) -> Iterator[tarfile.TarInfo]:
    while True:
        source.allow_header()
        info = tar.next()
        tar.members.clear()  # type: ignore[attr-defined]  # tarfile remembers every member
        source.allow_content()
        if info is None:
            return
        yield info


def _require_nothing_more(tar: tarfile.TarFile) -> None:
    """Some unpackers go on after the end marker: what lies there is not what was checked."""
    while piece := tar.fileobj.read(CHUNK_BYTES):
        if piece.strip(b"\0"):
            raise tarfile.ReadError("something follows its end marker")
