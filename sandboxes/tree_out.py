"""A tar stream from an untrusted container, written below a fresh directory member by member.

tarfile reads the format; what may become a file on the host is decided here. Only plain files and
directories are made while the stream runs, links come last: no path can lead through a link.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, NamedTuple

from bench.errors import InfraError
from bench.tree import Entry, file_entry, link_entry, path_bytes
from bench.tree_links import inside, why_refused
from sandboxes.sandbox import Refused, TreePolicy, TreeReport, TreeTooLarge
from sandboxes.tree_in import SOCKTYPE
from sandboxes.tree_left_out import LeftOutParts
from sandboxes.tree_source import members

_CHUNK_BYTES = 262_144
_STREAM_FACTOR = 4
"""The stream, left-out members included, may be this many times as long as what is kept."""
_HEADER_BYTES = 8192
"""A member's headers with the longest path Linux has."""
_KINDS = {
    tarfile.FIFOTYPE: "FIFO",
    tarfile.CHRTYPE: "character device",
    tarfile.BLKTYPE: "block device",
    SOCKTYPE: "socket",
}
_BAD_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_ODD_BITS = {0o4000: "setuid", 0o2000: "setgid"}

Archive = Callable[[], Iterable[bytes]]


def copy_out(archive: Archive, target: Path, policy: TreePolicy, *, root: str = "") -> TreeReport:
    """Writes the one directory in the stream as `target`, which is created and must not exist before.

    `archive` begins the stream; it is asked for a second time when a kept file turns out to be a hard link to one
    that was left out. `root` is where the tree lies in the container; absolute links below it are made relative.

    Modes become 755 or 644, owner and times are this process's, hard links become copies. A member that
    may not be is left away and listed; a cap that is passed removes `target` and raises TreeTooLarge.
    Sockets never appear: the engine leaves them out of its archives. Raises InfraError for a torn stream
    and NotADirectoryError when the stream holds no directory.
    """
    target.mkdir(parents=False)
    try:
        tree = _Tree(target, policy, root)
        tree.take(archive())
        if tree.owed:
            tree.take_owed(archive())
        return tree.finish()
    except tarfile.TarError as error:
        shutil.rmtree(target)
        raise InfraError(f"the archive of the tree broke off: {error}") from error
    except BaseException:
        shutil.rmtree(target)
        raise


class _Place(NamedTuple):
    """A member's path relative to the tree, as text (undecodable bytes as surrogates) and in parts."""

    text: str
    parts: tuple[str, ...]


class _Tree:
    """What has been written so far, and what may still be."""

    def __init__(self, target: Path, policy: TreePolicy, root: str) -> None:
        self._target = os.fsencode(target) + b"/"
        self._policy = policy
        self._root = root
        self._members = 0
        self._stream_bytes = 0
        self._entries: dict[str, Entry] = {}
        self._folders: set[str] = {""}
        self._links: dict[str, str] = {}
        self._bytes = 0
        self._left_out = LeftOutParts(policy)
        self._refused: dict[str, str] = {}
        self._altered: dict[str, str] = {}
        self.owed: dict[str, list[_Place]] = {}
        """Path of a file that was left out → the hard links to it that are kept."""

    def take(self, stream: Iterable[bytes]) -> None:
        top: tuple[str, ...] | None = None
        for tar, member in members(stream, self._max_raw_bytes):
            if top is None:
                top = _top(member)
            else:
                self._take_member(tar, member, top)
        if top is None:
            raise NotADirectoryError("what was asked for is no directory in the container")

    def take_owed(self, stream: Iterable[bytes]) -> None:
        """Write the files that are owed from a second stream of the same tree."""
        top: tuple[str, ...] | None = None
        for tar, member in members(stream, self._max_raw_bytes):
            top = top or _top(member)
            place = _place(member.name, top)
            if place and member.isreg() and (places := self.owed.pop(place.text, None)):
                self._write(tar, member, places[0])
                for other in places[1:]:
                    self._copy_file(places[0], other)
        for first, places in self.owed.items():
            self._refused.update({place.text: _no_content(first) for place in places})

    def finish(self) -> TreeReport:
        self._make_links()
        return TreeReport(
            files=len(self._entries),
            bytes=self._bytes,
            entries=tuple(sorted(self._entries.values(), key=path_bytes)),
            left_out=self._left_out.parts(),
            refused=_listed(self._refused),
            altered=_listed(self._altered),
        )

    @property
    def _max_stream_bytes(self) -> int:
        return self._policy.max_bytes * _STREAM_FACTOR

    @property
    def _max_raw_bytes(self) -> int:
        """With every header: a last resort, so that the caps that name a member are met first."""
        return self._max_stream_bytes + self._policy.max_files * _STREAM_FACTOR * _HEADER_BYTES

    def _take_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, top: tuple[str, ...]) -> None:
        self._members += 1
        if self._members > self._policy.max_files * _STREAM_FACTOR:
            raise TreeTooLarge(f"over {self._policy.max_files * _STREAM_FACTOR} members, at {member.name!r}")
        self._stream_bytes += member.size
        if self._stream_bytes > self._max_stream_bytes:  # said before a sparse file's zeros are read
            raise TreeTooLarge(
                f"the whole tree, left-out parts too, is over {self._max_stream_bytes} bytes, at {member.name!r}"
            )
        place = _place(member.name, top)
        if place is None:
            self._refused[member.name] = "path out of the tree"
        elif not self._is_under_refused(place) and not self._left_out.takes(
            place.parts, is_folder=member.isdir(), size=member.size
        ):
            why = self._why_refused(member, place)
            if why:
                self._refused[place.text] = why
            else:
                self._write(tar, member, place, top)

    def _is_under_refused(self, place: _Place) -> bool:
        return bool(self._refused) and any(
            "/".join(place.parts[:length]) in self._refused for length in range(1, len(place.parts))
        )

    def _why_refused(self, member: tarfile.TarInfo, place: _Place) -> str | None:
        policy = self._policy
        if len(_bytes(place.text)) > policy.max_path_bytes:
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
        if place.text in self._entries or place.text in self._links:
            return "appears twice"
        if place.text in self._folders:
            return None if is_folder else "appears twice"
        if "/".join(place.parts[:-1]) in self._folders:
            return None
        parents = ("/".join(place.parts[:length]) for length in range(1, len(place.parts)))
        if any(parent in self._entries or parent in self._links for parent in parents):
            return "lies below something that is no directory"
        return None

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, place: _Place, top: tuple[str, ...] = ()) -> None:
        try:
            if member.isdir():
                self._make_folders(place.parts)
            elif member.issym():
                self._count(place, 0)
                self._make_folders(place.parts[:-1])
                self._links[place.text] = member.linkname
            elif member.islnk():
                self._take_hard_link(member, place, top)
            else:
                content = tar.extractfile(member)
                assert content is not None
                self._count(place, member.size)
                self._write_file(content, place, executable=bool(member.mode & 0o100))
                self._note_odd_bits(member, place)
        except FileExistsError:
            self._refused[place.text] = "this machine's file system takes its name for another one's"
        except OSError as error:
            if error.errno in _BAD_NAME:
                self._refused[place.text] = f"this machine's file system cannot hold the name ({error.strerror})"
            else:
                raise InfraError(f"cannot write {place.text!r} below {os.fsdecode(self._target)}: {error}") from error

    def _note_odd_bits(self, member: tarfile.TarInfo, place: _Place) -> None:
        bits = [name for bit, name in _ODD_BITS.items() if member.mode & bit]
        if bits:
            self._altered[place.text] = f"{' and '.join(bits)} taken off"

    def _count(self, place: _Place, size: int) -> None:
        policy = self._policy
        if size > policy.max_file_bytes:
            raise TreeTooLarge(f"{place.text!r} has {size} bytes, over {policy.max_file_bytes} bytes for one file")
        if len(self._entries) + len(self._links) >= policy.max_files:
            raise TreeTooLarge(f"over {policy.max_files} files, at {place.text!r}")
        self._bytes += size
        if self._bytes > policy.max_bytes:
            raise TreeTooLarge(f"over {policy.max_bytes} bytes in all, at {place.text!r}")

    def _make_folders(self, parts: tuple[str, ...]) -> None:
        if "/".join(parts) in self._folders:
            return
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            if path not in self._folders:
                os.mkdir(self._at(path), mode=0o755)  # noqa: PTH102  (bytes)
                self._folders.add(path)

    def _write_file(self, content: IO[bytes], place: _Place, *, executable: bool) -> None:
        self._make_folders(place.parts[:-1])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        mode = 0o755 if executable else 0o644
        descriptor = os.open(self._at(place.text), flags, mode)
        sha256, size = hashlib.sha256(), 0
        with os.fdopen(descriptor, "wb", buffering=0) as out:
            os.fchmod(descriptor, mode)
            while chunk := content.read(_CHUNK_BYTES):
                sha256.update(chunk)
                size += len(chunk)
                _write_whole(out, chunk)
        path = _bytes(place.text)
        self._entries[place.text] = file_entry(path, executable=executable, size=size, sha256=sha256.hexdigest())

    def _take_hard_link(self, member: tarfile.TarInfo, place: _Place, top: tuple[str, ...]) -> None:
        first = _place(member.linkname, top)
        if first is None:
            self._refused[place.text] = _no_content(member.linkname)
        elif first.text in self._entries:
            self._copy_file(first, place)
        elif self._refused.get(first.text) in _KINDS.values():
            self._refused[place.text] = self._refused[first.text]
        elif first.text in self._links:
            self._count(place, 0)
            self._make_folders(place.parts[:-1])
            self._links[place.text] = self._links[first.text]
        else:  # left out, or refused for its name
            self.owed.setdefault(first.text, []).append(place)

    def _copy_file(self, first: _Place, place: _Place) -> None:
        if first.text not in self._entries:  # it was owed itself, and refused
            self._refused[place.text] = _no_content(first.text)
            return
        entry = self._entries[first.text]
        self._count(place, int(entry["size"]))
        with open(self._at(first.text), "rb") as content:  # noqa: PTH123  (bytes)
            self._write_file(content, place, executable=entry["mode"] == "755")
        if first.text in self._altered:
            self._altered[place.text] = self._altered[first.text]

    def _make_links(self) -> None:
        links = {path: inside(path, target, self._root) for path, target in self._links.items()}
        for path in links:
            why = why_refused(path, links)
            if why:
                self._refused[path] = why
        for path, link_target in links.items():
            if path in self._refused:
                continue
            try:
                os.symlink(_bytes(link_target), self._at(path))  # noqa: PTH211  (bytes)
            except FileExistsError:
                self._refused[path] = "this machine's file system takes its name for another one's"
                continue
            except (OSError, ValueError) as error:  # a target no file system has: empty, over-long, with a NUL
                self._refused[path] = f"link whose target cannot be made here ({error.__class__.__name__})"
                continue
            self._entries[path] = link_entry(_bytes(path), _bytes(link_target))
            if link_target != self._links[path]:
                self._altered[path] = f"absolute link to {self._links[path]!r} made relative"

    def _at(self, path: str) -> bytes:
        return self._target + _bytes(path)


def _top(member: tarfile.TarInfo) -> tuple[str, ...]:
    if not member.isdir():
        raise NotADirectoryError("what was asked for is no directory in the container")
    return _parts(member.name)


def _place(name: str, top: tuple[str, ...]) -> _Place | None:
    """The member's path below the archive's top directory; None when it is absolute or climbs."""
    parts = _parts(name)
    if parts[: len(top)] != top or len(parts) <= len(top) or ".." in parts or "\0" in name or name.startswith("/"):
        return None
    below = parts[len(top) :]
    return _Place("/".join(below), below)


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part for part in name.split("/") if part not in ("", "."))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _write_whole(out: IO[bytes], chunk: bytes) -> None:
    written = out.write(chunk)
    while written < len(chunk):  # a raw file may take less than it is given
        written += out.write(chunk[written:])


def _no_content(first: str) -> str:
    return f"hard link to {first!r}, which was not copied"


def _listed(reasons: dict[str, str]) -> tuple[Refused, ...]:
    return tuple(Refused(path, reasons[path]) for path in sorted(reasons))
