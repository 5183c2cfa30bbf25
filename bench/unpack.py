"""An archive's members written below a fresh folder. What may be a member is decided in `bench.archive`."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from bench.archive import Content, hostile, raise_hostile, read_members
from bench.archive_rules import Caps, Member, TreeOf, release_tree
from bench.errors import DataError, InfraError
from bench.names import nfc_twins

_UNHOLDABLE = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)


def unpack(
    archive: Path, target: Path, caps: Caps = Caps(), tree_of: TreeOf = release_tree, *, any_name: bool = False
) -> list[tuple[str, ...]]:
    """Write every member of `archive` below the empty folder `target`; gives the names that differ under NFC only.

    Modes become 755 or 644, owner and times this process's, hard links copies. Links are made last, so no path
    leads through one. Raises DataError naming the archive and the member; what was written by then stays in
    `target` and is the caller's to remove.
    """
    tree = _Tree(archive, target)
    for member, content in read_members(archive, raise_hostile(archive), caps, tree_of, any_name=any_name):
        tree.write(member, content)
    tree.make_links()
    return nfc_twins(tree.names)


class _Tree:
    def __init__(self, archive: Path, target: Path) -> None:
        self._archive = archive
        self._target = target
        self._folders = {""}
        self._links: dict[str, str] = {}
        self.names: list[str] = []

    def write(self, member: Member, content: Content | None) -> None:
        self.names.append(member.path)
        parent = member.path.rpartition("/")[0]
        try:
            self._make_folders(member.path if member.kind == "folder" else parent)
            if member.kind == "link":
                self._links[member.path] = member.source
            elif member.kind == "hard link":
                self._copy(member)
            elif member.kind == "file":
                self._write_file(member.path, content, executable=member.executable)
        except OSError as error:
            raise self._told(member.path, error) from error

    def make_links(self) -> None:
        for path, target in self._links.items():
            try:
                (self._target / path).symlink_to(target)
            except OSError as error:
                raise self._told(path, error) from error

    def _make_folders(self, path: str) -> None:
        parts = path.split("/")
        for length in range(1, len(parts) + 1):
            folder = "/".join(parts[:length])
            if folder not in self._folders:
                (self._target / folder).mkdir()
                (self._target / folder).chmod(0o755)
                self._folders.add(folder)

    def _write_file(self, path: str, content: Content | None, *, executable: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._target / path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            while content and (piece := content.read()):
                out.write(piece)
            os.fchmod(descriptor, 0o755 if executable else 0o644)

    def _copy(self, member: Member) -> None:
        """A hard link as a file of its own: an edit of one must not change the other."""
        first = self._target / member.source
        with first.open("rb") as stream:
            executable = bool(os.fstat(stream.fileno()).st_mode & 0o100)
            self._write_file(member.path, Content(self._archive, stream), executable=executable)

    def _told(self, path: str, error: OSError) -> Exception:
        if error.errno == errno.EEXIST:
            why = "this file system takes its name for that of an earlier member"
            return DataError(f"{hostile(self._archive, path, why)}, or extract on one that keeps such names apart")
        if error.errno in _UNHOLDABLE:
            return DataError(
                hostile(self._archive, path, f"this file system cannot hold the name ({error.strerror})")
            )
        what = f"cannot write {path!r} of {self._archive.name} below {self._target}: {error.strerror}"
        return InfraError(f"{what}; check free space and permissions, then extract again")
