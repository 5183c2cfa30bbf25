"""What may be in an archive from outside: names, kinds, sizes, links, member by member. Reads and writes nothing."""

from __future__ import annotations

import tarfile
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from bench.layout import CASES, DATASET_CARD, PROJECT
from bench.tree_links import why_refused

_KINDS = {tarfile.FIFOTYPE: "a FIFO", tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device"}


@dataclass(frozen=True)
class Caps:
    """What an archive may hold; far above any real release, so that what passes it is an attack or a mistake.

    `members` counts folders that are only implied, too. `ratio` is bytes unpacked for each byte of archive, asked for
    once more than `free_bytes` were unpacked; hard links count like the files they repeat.
    """

    bytes: int = 256 * 1024**3
    file_bytes: int = 64 * 1024**3
    members: int = 1_000_000
    names_bytes: int = 256 * 1024**2
    path_bytes: int = 2048
    depth: int = 100
    ratio: int = 100
    free_bytes: int = 4 * 1024**3

    def unpacked_bytes(self, archive_bytes: int) -> int:
        """How far an archive of this size may unpack."""
        return min(self.bytes, max(self.free_bytes, self.ratio * archive_bytes))


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

TreeOf = Callable[[str], str | None]
"""The application's folder that a normalised path lies in, None outside of every one. Links may lie in these alone,
and each must end in its own."""


def release_tree(path: str) -> str | None:
    """The layout of a release: `cases/ID/project`."""
    parts = path.split("/")
    return "/".join(parts[:3]) if len(parts) > 3 and parts[0] == CASES and parts[2] == PROJECT else None


class ArchiveRefused(Exception):
    """The archive as a whole is refused: a cap was passed, or what follows a member cannot be read safely."""


class Rules:
    """What has been admitted so far, and what may still be."""

    def __init__(
        self,
        caps: Caps,
        archive_bytes: int,
        refuse: Refuse,
        tree_of: TreeOf = release_tree,
        *,
        any_name: bool = False,
    ) -> None:
        """`any_name`: names within an application may hold control characters, as a sealed tree's may."""
        self._caps = caps
        self._refuse = refuse
        self._tree_of = tree_of
        self._any_name = any_name
        self._members = 0
        self._names_bytes = 0
        self._most_bytes = caps.unpacked_bytes(archive_bytes)
        self._bytes = 0
        self._files: dict[str, int] = {}
        self._folders: set[str] = {""}
        self._links: dict[str, str] = {}

    def admit(self, info: tarfile.TarInfo) -> Member | None:
        """The member as it may be unpacked; None when it was refused or says nothing (`./`)."""
        self._count(info)
        why = self._why_name(info) or self._why_kind(info)
        path = _normal(info.name)
        if not why and path:
            why = self._why_in_the_way(path, info.isdir())
        if why:
            self._refuse(info.name, why)
            return None
        return self._admitted(info, path) if path else None

    def _count(self, info: tarfile.TarInfo) -> None:
        self._members += 1
        self._names_bytes += len(info.name) + len(info.linkname)
        if max(self._members, len(self._files) + len(self._folders)) > self._caps.members:
            raise ArchiveRefused(f"it has more than {self._caps.members} members")
        if self._names_bytes > self._caps.names_bytes:
            raise ArchiveRefused(f"its names are longer than {self._caps.names_bytes} bytes together")

    def check_links(self) -> None:
        """A link must end inside its own application, whatever other links it leads over."""
        by_tree: dict[str, dict[str, str]] = {}
        for path, target in self._links.items():
            folder = self._tree_of(path) or ""
            by_tree.setdefault(folder, {})[path[len(folder) + 1 :]] = target
        for folder, links in by_tree.items():
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
            (_has_controls(name) and not self._may_be_odd(name), "its name holds a control character"),
            (len(parts) > caps.depth or len(b"/".join(parts)) > caps.path_bytes, too_long),
            (any(len(part) > 255 for part in parts), "a part of its path is longer than 255 bytes"),
            (named_as_folder and not info.isdir(), "it is no folder and has the name of one"),
        )
        return next((why for broken, why in rules if broken), None)

    def _may_be_odd(self, name: str) -> bool:
        tree = self._tree_of(_normal(name)) if self._any_name else None
        return tree is not None and not _has_controls(tree)

    def _why_kind(self, info: tarfile.TarInfo) -> str | None:
        if info.type in _KINDS:
            return f"it is {_KINDS[info.type]}"
        self._require_readable(info)
        if info.size and not info.isreg():
            return f"it is no file and carries {info.size} bytes"
        if info.issym():
            return self._why_link(info)
        if info.islnk() and (info.linkname.startswith("/") or _normal(info.linkname) not in self._files):
            return f"it is a hard link to {info.linkname!r}, which is no file that came before it"
        return None

    def _require_readable(self, info: tarfile.TarInfo) -> None:
        """What is wrong here leaves in doubt where the next member begins, so reading ends."""
        if info.issparse():
            raise ArchiveRefused(f"member {info.name!r} is stored as a sparse file")
        if not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
            raise ArchiveRefused(f"member {info.name!r} is of an unknown kind ({info.type!r})")
        told = info.pax_headers.get("size", str(info.size))  # tarfile takes one that is no number for 0
        if str(info.size) != told or not 0 <= info.size <= self._caps.file_bytes:
            raise ArchiveRefused(f"member {info.name!r} gives its size as {told[:40]} bytes")

    def _why_link(self, info: tarfile.TarInfo) -> str | None:
        """Where a link leads is checked at the end, when all links are known."""
        if self._tree_of(_normal(info.name)) is None:
            return f"it is a link to {info.linkname!r} outside of an application"
        if not info.linkname or (_has_controls(info.linkname) and not self._any_name):
            return f"it is a link to {info.linkname!r}, which is no path"
        return None

    def _why_in_the_way(self, path: str, is_folder: bool) -> str | None:
        if path.split("/", maxsplit=1)[0] == DATASET_CARD:
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
            self._take_bytes(self._files[first])
            self._files[path] = self._files[first]
            return Member(path, "hard link", self._files[first], source=first)
        self._take_bytes(info.size)
        self._files[path] = info.size
        return Member(path, "file", info.size, bool(info.mode & 0o100))

    def _take_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise ArchiveRefused(f"it unpacks to more than {self._most_bytes} bytes, copies of hard links included")


def _normal(name: str) -> str:
    """The path without `.` and doubled slashes; empty for the root itself."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def _has_controls(text: str) -> bool:
    return any(unicodedata.category(c) == "Cc" for c in text)
