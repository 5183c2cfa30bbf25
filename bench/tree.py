"""The canonical list of a file tree and its digest: what a seal is made of.

Format `cdb.tree/1`: one entry a path, sorted by the path's bytes. An entry has `path` (or `path_b64` when the
name is not UTF-8), `mode` (`644`, `755` or `link`) and `size` with `sha256` of the content, or for a link its
`target` (or `target_b64`). Empty folders, times and owners are no part of it. The digest is the sha256 of the
list as JSON with sorted keys and no white space.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.errors import DataError

CHUNK_BYTES = 1024 * 1024

Entry = dict[str, Any]


def list_tree(root: Path, *, without: frozenset[str] = frozenset()) -> list[Entry]:
    """The canonical list of everything below `root` but for what bears a name of `without`; links are read, never
    followed.

    Raises DataError on anything that is neither file, folder nor link.
    """
    entries = [_entry(full, relative) for relative, full in walk(os.fsencode(root), without)]
    return sorted(entries, key=path_bytes)


def digest(entries: Sequence[Entry]) -> str:
    """The tree digest, `sha256:` and 64 hexadecimal digits."""
    text = json.dumps(list(entries), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def path_bytes(entry: Entry) -> bytes:
    """The entry's path as the bytes it has on disk."""
    if "path_b64" in entry:
        return base64.b64decode(entry["path_b64"])
    return str(entry["path"]).encode("utf-8")


def target_bytes(entry: Entry) -> bytes:
    """Where a link's entry leads, as the bytes it has on disk."""
    if "target_b64" in entry:
        return base64.b64decode(entry["target_b64"])
    return str(entry["target"]).encode("utf-8")


def file_entry(path: bytes, *, executable: bool, size: int, sha256: str) -> Entry:
    return {
        **_text_or_b64("path", path), "mode": "755" if executable else "644", "size": size, "sha256": sha256
    }  # fmt: skip


def link_entry(path: bytes, target: bytes) -> Entry:
    return {**_text_or_b64("path", path), "mode": "link", **_text_or_b64("target", target)}


def shown(entry: Entry) -> str:
    """The entry's path for people: control characters and undecodable bytes as escapes."""
    text = path_bytes(entry).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable(text: str) -> str:
    """A path as tar gave it, undecodable bytes (surrogates) as escapes, so that it can be written as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def differences(expected: Sequence[Entry], found: Sequence[Entry]) -> list[str]:
    """One line for each path that was added, removed or changed, in path order."""
    before = {path_bytes(e): e for e in expected}
    after = {path_bytes(e): e for e in found}
    lines = []
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            lines.append(f"removed: {shown(before[path])}")
        elif path not in before:
            lines.append(f"added: {shown(after[path])}")
        elif before[path] != after[path]:
            lines.append(f"changed: {shown(after[path])}")
    return lines


def file_sha256(path: Path | bytes) -> str:
    """sha256 of a file's content in hexadecimal, read in pieces."""
    digest_so_far = hashlib.sha256()
    with open(path, "rb") as stream:  # noqa: PTH123  (path may be bytes)
        while piece := stream.read(CHUNK_BYTES):
            digest_so_far.update(piece)
    return digest_so_far.hexdigest()


def walk(root: bytes, without: frozenset[str] = frozenset()) -> Iterator[tuple[bytes, bytes]]:
    """Relative and full path of every node that is no folder; iterative, so depth cannot exhaust the stack."""
    skipped = {os.fsencode(name) for name in without}
    pending = [(root, b"")]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as nodes:
            for node in nodes:
                relative = prefix + node.name
                if node.name in skipped:
                    continue
                if node.is_dir(follow_symlinks=False):
                    pending.append((node.path, relative + b"/"))
                else:
                    yield relative, node.path


def _entry(full: bytes, relative: bytes) -> Entry:
    status = os.lstat(full)
    if stat.S_ISLNK(status.st_mode):
        return link_entry(relative, os.readlink(full))
    if not stat.S_ISREG(status.st_mode):
        name = shown(_text_or_b64("path", relative))
        raise DataError(f"{name} is neither a file, a folder nor a link; remove it and try again")
    executable = bool(status.st_mode & 0o100)
    return file_entry(relative, executable=executable, size=status.st_size, sha256=file_sha256(full))


def _text_or_b64(key: str, value: bytes) -> Entry:
    try:
        return {key: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{key}_b64": base64.b64encode(value).decode("ascii")}
