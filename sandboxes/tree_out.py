"""A tar stream from an untrusted container, written below a fresh directory member by member.

tarfile reads the format; what may become a file on the host is decided here. Only plain files and
directories are made while the stream runs, links come last: no path can lead through a link.
"""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from bench.errors import InfraError
from bench.tree_links import why_refused
from sandboxes.sandbox import Refused, TreePolicy, TreeReport, TreeTooLarge

_CHUNK_BYTES = 262_144
_STREAM_FACTOR = 4
"""The stream, left-out members included, may be this many times as long as what is kept."""
_KINDS = {
    tarfile.FIFOTYPE: "FIFO",
    tarfile.CHRTYPE: "character device",
    tarfile.BLKTYPE: "block device",
}


def copy_out(stream: Iterable[bytes], target: Path, policy: TreePolicy) -> TreeReport:
    """Writes the one directory in `stream` as `target`, which is created and must not exist before.

    Modes become 755 or 644, owner and times are this process's, hard links become copies. A member that
    may not be is left away and listed; a cap that is passed removes `target` and raises TreeTooLarge.
    Sockets never appear: the engine leaves them out of its archives. Raises InfraError for a torn stream
    and NotADirectoryError when the stream holds no directory.
    """
    target.mkdir(parents=False)
    try:
        return _Tree(target, policy).take(stream)
    except tarfile.TarError as error:
        shutil.rmtree(target)
        raise InfraError(f"the archive out of the container broke off: {error}") from error
    except BaseException:
        shutil.rmtree(target)
        raise


class _Source:
    """Chunks as the file object tarfile wants; ends a stream that is far longer than anything kept."""

    def __init__(self, chunks: Iterable[bytes], max_bytes: int) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._max_bytes = max_bytes
        self._seen_bytes = 0
        self._rest = b""

    def read(self, size: int) -> bytes:
        parts, missing = [], size
        while missing > 0:
            if not self._rest:
                self._rest = next(self._chunks, b"")
                self._seen_bytes += len(self._rest)
                if self._seen_bytes > self._max_bytes:
                    raise TreeTooLarge(f"the whole tree, left-out parts too, is over {self._max_bytes} bytes")
                if not self._rest:
                    break
            part, self._rest = self._rest[:missing], self._rest[missing:]
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


class _Place(NamedTuple):
    """A member's path relative to the tree, as text (undecodable bytes as surrogates) and in parts."""

    text: str
    parts: tuple[str, ...]


class _Tree:
    """What has been written so far, and what may still be."""

    def __init__(self, target: Path, policy: TreePolicy) -> None:
        self._target = target
        self._policy = policy
        self._members = 0
        self._files: set[str] = set()
        self._folders: set[str] = {""}
        self._links: dict[str, str] = {}
        self._bytes = 0
        self._left_out: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def take(self, stream: Iterable[bytes]) -> TreeReport:
        source = _Source(stream, self._policy.max_bytes * _STREAM_FACTOR)
        with tarfile.open(fileobj=_as_file(source), mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
            top = tar.next()
            if top is None or not top.isdir():
                raise NotADirectoryError("what was asked for is no directory in the container")
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # tarfile remembers every member; a million of them must not stay
                self._take_member(tar, member, top.name)
        self._make_links()
        return TreeReport(
            files=len(self._files),
            bytes=self._bytes,
            left_out=tuple(Refused(path, why) for path, why in self._left_out.items()),
            refused=tuple(Refused(path, why) for path, why in self._refused.items()),
        )

    def _take_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, top: str) -> None:
        self._members += 1
        if self._members > self._policy.max_files * _STREAM_FACTOR:
            raise TreeTooLarge(f"over {self._policy.max_files * _STREAM_FACTOR} members, at {member.name!r}")
        if member.size > self._policy.max_file_bytes:
            raise TreeTooLarge(
                f"{member.name!r} has {member.size} bytes, over the cap of {self._policy.max_file_bytes} for one file"
            )
        place = _place(member.name, top)
        if place is None:
            self._refused[member.name] = "path out of the tree"
        elif not self._is_under_refused(place) and not self._is_left_out(place, member.isdir()):
            why = self._why_refused(member, place)
            if why:
                self._refused[place.text] = why
            else:
                self._write(tar, member, place, top)

    def _is_under_refused(self, place: _Place) -> bool:
        return any("/".join(place.parts[:length]) in self._refused for length in range(1, len(place.parts)))

    def _is_left_out(self, place: _Place, is_folder: bool) -> bool:
        """Whether a directory on the way bears a name of the policy; only the topmost is recorded."""
        folders = len(place.parts) if is_folder else len(place.parts) - 1
        for length in range(1, folders + 1):
            path = "/".join(place.parts[:length])
            if place.parts[length - 1] in self._policy.leave_out and path not in self._policy.keep:
                self._left_out.setdefault(path, f"directories named {place.parts[length - 1]} are left out")
                return True
        return False

    def _why_refused(self, member: tarfile.TarInfo, place: _Place) -> str | None:
        policy = self._policy
        if len(os.fsencode(place.text)) > policy.max_path_bytes:
            return f"path longer than {policy.max_path_bytes} bytes"
        if len(place.parts) > policy.max_depth:
            return f"deeper than {policy.max_depth} levels"
        if member.type in _KINDS:
            return _KINDS[member.type]
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()) or member.issparse():
            return f"unknown kind of member {member.type!r}"
        return self._why_in_the_way(place, member.isdir())

    def _why_in_the_way(self, place: _Place, is_folder: bool) -> str | None:
        """No real tree has these; a tree that changes while it is archived may."""
        if place.text in self._files or place.text in self._links:
            return "appears twice"
        if place.text in self._folders and not is_folder:
            return "appears twice"
        parents = ("/".join(place.parts[:length]) for length in range(1, len(place.parts)))
        if any(parent in self._files or parent in self._links for parent in parents):
            return "lies below something that is no directory"
        return None

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, place: _Place, top: str) -> None:
        try:
            if member.isdir():
                self._make_folders(place.parts)
            elif member.issym():
                self._count(place, 0)
                self._make_folders(place.parts[:-1])
                self._links[place.text] = member.linkname
            elif member.islnk():
                self._copy_hard_link(member, place, top)
            else:
                content = tar.extractfile(member)
                assert content is not None
                self._count(place, member.size)
                self._write_file(content, place, executable=bool(member.mode & 0o100))
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL):
                self._refused[place.text] = f"this machine's file system cannot hold the name ({error.strerror})"
            else:
                raise InfraError(f"cannot write {place.text!r} below {self._target}: {error}") from error

    def _count(self, place: _Place, size: int) -> None:
        policy = self._policy
        if len(self._files) + len(self._links) >= policy.max_files:
            raise TreeTooLarge(f"over {policy.max_files} files, at {place.text!r}")
        self._bytes += size
        if self._bytes > policy.max_bytes:
            raise TreeTooLarge(f"over {policy.max_bytes} bytes in all, at {place.text!r}")

    def _make_folders(self, parts: tuple[str, ...]) -> None:
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            if path not in self._folders:
                self._at(path).mkdir(mode=0o755)
                self._folders.add(path)

    def _write_file(self, content: IO[bytes], place: _Place, *, executable: bool) -> None:
        self._make_folders(place.parts[:-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        mode = 0o755 if executable else 0o644
        descriptor = os.open(self._at(place.text), flags, mode)
        with os.fdopen(descriptor, "wb") as out:
            os.fchmod(descriptor, mode)
            shutil.copyfileobj(content, out, _CHUNK_BYTES)
        self._files.add(place.text)

    def _copy_hard_link(self, member: tarfile.TarInfo, place: _Place, top: str) -> None:
        first = _place(member.linkname, top)
        if first is None or first.text not in self._files:
            self._refused[place.text] = f"hard link to {member.linkname!r}, which was not copied"
            return
        source = self._at(first.text)
        status = source.stat()
        self._count(place, status.st_size)
        with source.open("rb") as content:
            self._write_file(content, place, executable=bool(status.st_mode & 0o100))

    def _make_links(self) -> None:
        for path in self._links:
            why = why_refused(path, self._links)
            if why:
                self._refused[path] = why
        for path, link_target in self._links.items():
            if path not in self._refused:
                self._at(path).symlink_to(link_target)
                self._files.add(path)

    def _at(self, path: str) -> Path:
        return self._target / path


def _place(name: str, top: str) -> _Place | None:
    """The member's path below the archive's top directory; None when it is absolute or climbs."""
    parts = PurePosixPath(name).parts
    above = PurePosixPath(top).parts
    if parts[: len(above)] != above or len(parts) <= len(above) or ".." in parts or "\0" in name:
        return None
    inside = parts[len(above) :]
    return _Place("/".join(inside), inside)


def _as_file(source: _Source) -> IO[bytes]:
    return source  # type: ignore[return-value]  # tarfile's stream mode only reads
