"""Archives whose bytes depend on their contents alone: not on the clock, the user, the machine or the folder.

Names are sorted by their bytes, times and owners fixed, modes reduced to 644 and 755. Compression is zlib's
at a fixed level, so two machines agree as far as their zlib does; the packed content agrees always.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bench.errors import DataError

MTIME = 1_767_225_600
"""2026-01-01 00:00 UTC: a time that every file system and every unpacker accepts."""
ZIP_DATE = (2026, 1, 1, 0, 0, 0)
LEVEL = 9
LEFT_OUT = frozenset({".git", "node_modules", "__pycache__", ".DS_Store"})
"""Names in a case's project that tools leave behind and that are never part of a starting application."""


@dataclass(frozen=True)
class Member:
    """One file, folder or link of an archive. `content` is None for a folder, a link's target for a link."""

    path: str
    kind: str
    content: bytes
    executable: bool = False


def tree_members(root: Path, prefix: str) -> Iterator[Member]:
    """Every entry below `root` as a member below `prefix` (the folder itself first).

    Raises `DataError` for a link that leads out of `root` and for anything but files, folders and links.
    """
    yield Member(prefix, "folder", b"")
    for path in sorted(root.rglob("*"), key=lambda entry: entry.as_posix().encode()):
        relative = path.relative_to(root)
        if LEFT_OUT.intersection(relative.parts):
            continue
        name = f"{prefix}/{relative.as_posix()}"
        if path.is_symlink():
            yield Member(name, "link", _inner_link(path, root).encode())
        elif path.is_dir():
            yield Member(name, "folder", b"")
        elif path.is_file():
            yield Member(name, "file", path.read_bytes(), bool(path.stat().st_mode & 0o100))
        else:
            raise DataError(f"{path}: only files, folders and links can be packed; remove it")


def write_tar_gz(out: Path, members: Iterator[Member]) -> None:
    """Write `members` as a gzipped PAX tar, one at a time. Raises `DataError` when two have the same path."""
    seen: set[str] = set()
    with (
        out.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=LEVEL, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for member in members:
            if member.path in seen:
                raise DataError(f"{out.name}: {member.path} would be packed twice")
            seen.add(member.path)
            is_file = member.kind == "file"
            tar.addfile(_tar_info(member), io.BytesIO(member.content) if is_file else None)


def write_zip(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` (name → content) as a ZIP in the names' order."""
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(files, key=str.encode):
            entry = zipfile.ZipInfo(name, ZIP_DATE)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, LEVEL)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tar_info(member: Member) -> tarfile.TarInfo:
    info = tarfile.TarInfo(member.path)
    info.mtime, info.uid, info.gid, info.uname, info.gname = MTIME, 0, 0, "", ""
    info.mode = 0o755 if member.executable or member.kind != "file" else 0o644
    if member.kind == "folder":
        info.type = tarfile.DIRTYPE
    elif member.kind == "link":
        info.type, info.linkname = tarfile.SYMTYPE, member.content.decode()
    else:
        info.size = len(member.content)
    return info


def _inner_link(path: Path, root: Path) -> str:
    """A link's target, if it is relative and stays inside `root`."""
    target = path.readlink()
    if PurePosixPath(target).is_absolute() or not path.resolve().is_relative_to(root.resolve()):
        raise DataError(f"{path}: links to {target}, outside of the application; pack the file itself")
    return target.as_posix()
