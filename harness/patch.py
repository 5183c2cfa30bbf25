"""The difference between start and submission as text for people to read.

Git never runs in a tree an agent wrote: both trees are fed as data to a repository of our own, which has no
configuration but ours. What is binary, or too large to read, is fed as its size and hash only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from git import Git

from bench.tree import Entry, path_bytes, shown

MAX_PATCH_BYTES = 4 * 1024 * 1024
MAX_FILE_BYTES = 1024 * 1024
MAX_TEXT_BYTES = 64 * 1024 * 1024
"""All text fed to git for one patch; what is beyond is named only."""
MAX_LISTED = 10_000
_BINARY_PROBE_BYTES = 8000
"""Git takes a file for binary when there is a NUL in so many first bytes (xdiff-interface.c, FIRST_FEW_BYTES)."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TEMPLATE_DIR": "",
    "GIT_EXTERNAL_DIFF": "",
    "GIT_DIFF_OPTS": "",
    "GIT_NAMESPACE": "",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
    "LC_ALL": "C",
}
_OURS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null", "core.quotePath=true")
_MODES = {"644": "100644", "755": "100755", "link": "120000"}


class Patch(NamedTuple):
    """What was written: whether the text is whole, and how many changes are only named (binary or large files)."""

    whole: bool
    named_only: int


def write_patch(
    start_root: Path, start: Sequence[Entry], final_root: Path, final: Sequence[Entry], target: Path, named: Path
) -> Patch:
    """Write the text patch from `start` to `final` (canonical lists of the two roots) to `target`, cut at
    MAX_PATCH_BYTES, and one line for each change it cannot show to `named` (no file when there is none).

    Raises git.GitError and OSError.
    """
    before = {path_bytes(e): e for e in start}
    after = {path_bytes(e): e for e in final}
    changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    feed = _Feed()
    with tempfile.TemporaryDirectory(prefix="cdb-patch-") as scratch:
        stream_file = Path(scratch) / "stream"
        with stream_file.open("wb") as stream:
            feed.commit(stream, b"start", start_root, [before[p] for p in changed if p in before])
            feed.commit(stream, b"final", final_root, [after[p] for p in changed if p in after])
        git = _own_git(Path(scratch))
        with stream_file.open("rb") as stream:
            _git(git).fast_import("--quiet", "--force", istream=stream)
        whole = _diff(git, target)
    lines = [_named(path, before.get(path), after.get(path)) for path in changed if path in feed.named_only]
    if lines:
        more = [f"[and {len(lines) - MAX_LISTED} more]"] if len(lines) > MAX_LISTED else []
        named.write_text("\n".join([*lines[:MAX_LISTED], *more]) + "\n", encoding="utf-8")
    return Patch(whole, len(lines))


def _own_git(scratch: Path) -> Git:
    """An empty bare repository below `scratch`; nothing of the caller's environment or settings reaches it."""
    store = scratch / "view.git"
    git = Git(scratch)
    git.update_environment(
        GIT_DIR=str(store),
        GIT_COMMON_DIR=str(store),
        GIT_OBJECT_DIRECTORY=str(store / "objects"),
        GIT_INDEX_FILE=str(store / "index"),
        GIT_WORK_TREE=str(scratch),
        **_ENVIRONMENT,
    )
    git.init("--quiet", "--template=")
    return git


def _git(git: Git) -> Git:
    return git(c=list(_OURS))


def _diff(git: Git, target: Path) -> bool:
    process = _git(git).diff(
        "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "start", "final", "--", as_process=True
    )
    text: bytes = process.stdout.read(MAX_PATCH_BYTES + 1)
    whole = len(text) <= MAX_PATCH_BYTES
    if whole:
        process.wait()
    else:
        process.proc.kill()
        text = text[:MAX_PATCH_BYTES] + b"\n[cut here: the patch is longer]\n"
    target.write_bytes(text)
    return whole


class _Feed:
    """Commits in git's fast-import format (git-fast-import(1)), never a large file's content."""

    def __init__(self) -> None:
        self._left_bytes = MAX_TEXT_BYTES
        self.named_only: set[bytes] = set()

    def commit(self, stream: IO[bytes], branch: bytes, root: Path, entries: Iterable[Entry]) -> None:
        """One root commit with exactly `entries`."""
        stream.write(b"commit refs/heads/" + branch + b"\ncommitter cdb <cdb@localhost> 0 +0000\ndata 0\n")
        for entry in entries:
            path = path_bytes(entry)
            content = self._content(os.path.join(os.fsencode(root), path), path, entry)
            stream.write(f"M {_MODES[entry['mode']]} inline ".encode() + _quoted(path) + b"\n")
            stream.write(f"data {len(content)}\n".encode() + content + b"\n")
        stream.write(b"\n")

    def _content(self, full: bytes, path: bytes, entry: Entry) -> bytes:
        """What git is told lies there: the text itself, or for anything else a few bytes it takes for binary."""
        if entry["mode"] == "link":
            return os.readlink(full)
        size = int(entry["size"])
        if size <= min(MAX_FILE_BYTES, self._left_bytes) and path not in self.named_only:
            with open(full, "rb") as file:  # noqa: PTH123  (bytes)
                content = file.read()
            if b"\0" not in content[:_BINARY_PROBE_BYTES]:
                self._left_bytes -= size
                return content
        self.named_only.add(path)
        return b"\0" + str(entry["sha256"]).encode("ascii")


def _named(path: bytes, before: Entry | None, after: Entry | None) -> str:
    entry = after or before
    assert entry
    what = "changed" if before and after else "added" if after else "removed"
    sizes = " -> ".join(str(e.get("size", "link")) for e in (before, after) if e)
    return f"{what}: {shown(entry)} ({sizes} bytes)"


def _quoted(path: bytes) -> bytes:
    plain = b"".join(bytes([c]) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:03o}".encode() for c in path)
    return b'"' + plain + b'"'
