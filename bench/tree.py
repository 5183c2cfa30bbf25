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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.errors import DataError

CHUNK_BYTES = 1024 * 1024

Entry = dict[str, Any]


def list_tree(root: Path) -> list[Entry]:
    """The canonical list of everything below `root`; links are read, never followed.

    Raises DataError on anything that is neither file, folder nor link.
    """
    entries = [_entry(full, relative) for relative, full in _walk(os.fsencode(root))]
    return sorted(entries, key=path_bytes)


def digest(entries: list[Entry]) -> str:
    """The tree digest, `sha256:` and 64 hexadecimal digits."""
    text = json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def path_bytes(entry: Entry) -> bytes:
    """The entry's path as the bytes it has on disk."""
    if "path_b64" in entry:
        return base64.b64decode(entry["path_b64"])
    return str(entry["path"]).encode("utf-8")


def shown(entry: Entry) -> str:
    """The entry's path for people: control characters and undecodable bytes as escapes."""
    text = path_bytes(entry).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def differences(expected: list[Entry], found: list[Entry]) -> list[str]:
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


def _walk(root: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Relative and full path of every node that is no folder; iterative, so depth cannot exhaust the stack."""
    pending = [(root, b"")]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as nodes:
            for node in nodes:
                relative = prefix + node.name
                if node.is_dir(follow_symlinks=False):
                    pending.append((node.path, relative + b"/"))
                else:
                    yield relative, node.path


def _entry(full: bytes, relative: bytes) -> Entry:
    entry: Entry = _text_or_b64("path", relative)
    status = os.lstat(full)
    if stat.S_ISLNK(status.st_mode):
        return {**entry, "mode": "link", **_text_or_b64("target", os.readlink(full))}
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{shown(entry)} is neither a file, a folder nor a link; remove it and try again")
    mode = "755" if status.st_mode & 0o100 else "644"
    return {**entry, "mode": mode, "size": status.st_size, "sha256": file_sha256(full)}


def _text_or_b64(key: str, value: bytes) -> Entry:
    try:
        return {key: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{key}_b64": base64.b64encode(value).decode("ascii")}
