"""A release's tar.gz read as a stream, member by member, with every rule of what may be in it.

tarfile reads the format; nothing else of it is trusted: its `data` filter moves absolute names instead of refusing
them, falls back on copies for hard links, and a damaged header in the middle looks to it like the end.
"""

from __future__ import annotations

import gzip
import tarfile
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, NamedTuple

from bench.errors import DataError
from bench.layout import CASES, DATASET_CARD, PROJECT
from bench.links import why_refused

CHUNK_BYTES = 262_144
_HEADER_BYTES = 1_048_576
"""What a member's headers may take: names and attributes of any real tree are far below."""
_BAD_TAR = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, ValueError, OverflowError, RecursionError)
_KINDS = {tarfile.FIFOTYPE: "a FIFO", tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device"}


@dataclass(frozen=True)
class Caps:
    """What an archive may hold; far above any real release, so that what passes it is an attack or a mistake.

    `ratio` is bytes unpacked for each byte of archive, asked for once more than `free_bytes` were unpacked.
    """

    bytes: int = 256 * 1024**3
    file_bytes: int = 64 * 1024**3
    members: int = 1_000_000
    path_bytes: int = 2048
    depth: int = 100
    ratio: int = 100
    free_bytes: int = 4 * 1024**3


class Member(NamedTuple):
    """A member that may be unpacked. `path` is normalised; `source` is a link's target, or the path of the member
    that a hard link repeats. A name that is no UTF-8 has its bytes as surrogates, as Python's file functions do."""

    path: str
    kind: Literal["file", "folder", "link", "hard link"]
    size: int = 0
    executable: bool = False
    source: str = ""


Refuse = Callable[[str, str], None]
"""Called with a member's name and why it may not be; raises to stop at the first."""


def read_members(archive: Path, refuse: Refuse, caps: Caps = Caps()) -> Iterator[tuple[Member, Content | None]]:
    """Every member that may be unpacked, in the archive's order, a file with its content to be read before the next.

    A parent folder may come late or not at all, as in any tar. Links are checked at the end, against all others.
    Raises DataError when the archive is damaged or passes a cap of the whole.
    """
    with _told(archive), gzip.open(archive) as packed:
        source = _Source(packed, archive.stat().st_size, caps)
        with tarfile.open(
            fileobj=_as_file(source),
            mode="r|",
            bufsize=CHUNK_BYTES,
            tarinfo=_Header,
            encoding="utf-8",
            errors="surrogateescape",
        ) as tar:
            rules = _Rules(caps, refuse)
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


class _Refused(Exception):
    """The archive as a whole is refused: a cap was passed, or what follows a member cannot be read safely."""


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
    except _Refused as error:
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
        self._most = min(caps.bytes, max(caps.free_bytes, caps.ratio * archive_bytes))
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
            raise _Refused(self._why)
        if self._header_end is not None and self._seen > self._header_end:
            raise _Refused(f"the headers of one member are longer than {_HEADER_BYTES} bytes")
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


class _Rules:
    """What has been admitted so far, and what may still be."""

    def __init__(self, caps: Caps, refuse: Refuse) -> None:
        self._caps = caps
        self._refuse = refuse
        self._members = 0
        self._files: dict[str, int] = {}
        self._folders: set[str] = {""}
        self._links: dict[str, str] = {}

    def admit(self, info: tarfile.TarInfo) -> Member | None:
        """The member as it may be unpacked; None when it was refused or says nothing (`./`)."""
        self._members += 1
        if self._members > self._caps.members:
            raise _Refused(f"it has more than {self._caps.members} members")
        why = self._why_name(info) or self._why_kind(info)
        path = _normal(info.name)
        if not why and path:
            why = self._why_in_the_way(path, info.isdir())
        if why:
            self._refuse(info.name, why)
            return None
        return self._admitted(info, path) if path else None

    def check_links(self) -> None:
        """A link must end inside its own application, whatever other links it leads over."""
        by_project: dict[str, dict[str, str]] = {}
        for path, target in self._links.items():
            *project, inner = path.split("/", 3)
            by_project.setdefault("/".join(project), {})[inner] = target
        for folder, links in by_project.items():
            for inner in links:
                if why := why_refused(inner, links):
                    self._refuse(f"{folder}/{inner}", why.replace("out of the tree", "out of its application"))

    def _why_name(self, info: tarfile.TarInfo) -> str | None:
        name, caps = info.name, self._caps
        parts = [part.encode("utf-8", "surrogateescape") for part in name.split("/")]
        too_long = f"its path is longer than {caps.path_bytes} bytes or {caps.depth} levels"
        named_as_folder = not _normal(name) or name.endswith(("/", "/."))
        rules = (
            (name.startswith("/"), "its path is absolute"),
            (b".." in parts, "its path has `..` in it"),
            (_has_controls(name), "its name holds a control character"),
            (len(parts) > caps.depth or len(b"/".join(parts)) > caps.path_bytes, too_long),
            (any(len(part) > 255 for part in parts), "a part of its path is longer than 255 bytes"),
            (named_as_folder and not info.isdir(), "it is no folder and has the name of one"),
        )
        return next((why for broken, why in rules if broken), None)

    def _why_kind(self, info: tarfile.TarInfo) -> str | None:
        if info.type in _KINDS:
            return f"it is {_KINDS[info.type]}"
        self._require_readable(info)
        if info.size and not info.isreg():
            return f"it is no file and carries {info.size} bytes"
        if info.issym():
            return _why_link(info)
        if info.islnk() and (info.linkname.startswith("/") or _normal(info.linkname) not in self._files):
            return f"it is a hard link to {info.linkname!r}, which is no file that came before it"
        return None

    def _require_readable(self, info: tarfile.TarInfo) -> None:
        """What is wrong here leaves in doubt where the next member begins, so reading ends."""
        if info.issparse():
            raise _Refused(f"member {info.name!r} is stored as a sparse file")
        if not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
            raise _Refused(f"member {info.name!r} is of an unknown kind ({info.type!r})")
        told = info.pax_headers.get("size", str(info.size))  # tarfile takes one that is no number for 0
        if str(info.size) != told or not 0 <= info.size <= self._caps.file_bytes:
            raise _Refused(f"member {info.name!r} gives its size as {told[:40]} bytes")

    def _why_in_the_way(self, path: str, is_folder: bool) -> str | None:
        if path == DATASET_CARD:
            return f"{DATASET_CARD} is written by extraction and is no part of an archive"
        if path in self._files or path in self._links or (path in self._folders and not is_folder):
            return "its path is given twice"
        return next(
            (
                f"it lies below {parent!r}, which is no folder"
                for parent in _parents(path)
                if parent in self._files or parent in self._links
            ),
            None,
        )

    def _admitted(self, info: tarfile.TarInfo, path: str) -> Member:
        self._folders.update(_parents(path))
        if info.isdir():
            self._folders.add(path)
            return Member(path, "folder")
        if info.issym():
            self._links[path] = info.linkname
            return Member(path, "link", source=info.linkname)
        if info.islnk():
            first = _normal(info.linkname)
            self._files[path] = self._files[first]
            return Member(path, "hard link", self._files[first], source=first)
        self._files[path] = info.size
        return Member(path, "file", info.size, bool(info.mode & 0o100))


def _normal(name: str) -> str:
    """The path without `.` and doubled slashes; empty for the root itself."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def _has_controls(text: str) -> bool:
    return any(unicodedata.category(c) == "Cc" for c in text)


def _why_link(info: tarfile.TarInfo) -> str | None:
    """Where a link leads is checked at the end, when all links are known."""
    if not _is_in_project(_normal(info.name)):
        return f"it is a link to {info.linkname!r} outside of an application"
    if not info.linkname or _has_controls(info.linkname):
        return f"it is a link to {info.linkname!r}, which is no path"
    return None


def _is_in_project(path: str) -> bool:
    parts = path.split("/")
    return len(parts) > 3 and parts[0] == CASES and parts[2] == PROJECT
