"""The difference between start and submission as text for people to read.

Git never runs in a tree an agent wrote: both trees are fed as data to a repository of our own.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import IO

from git import Repo

from bench.tree import Entry, path_bytes

MAX_PATCH_BYTES = 4 * 1024 * 1024
_QUIET = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
_MODES = {"644": "100644", "755": "100755", "link": "120000"}


def write_patch(start_root: Path, start: list[Entry], final_root: Path, final: list[Entry], target: Path) -> bool:
    """Write the text patch from `start` to `final` (canonical lists of the two roots) to `target`.

    Binary changes are named, not shown. Gives whether the patch is whole; beyond MAX_PATCH_BYTES it is cut.
    """
    before = {path_bytes(e): e for e in start}
    after = {path_bytes(e): e for e in final}
    changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
    with tempfile.TemporaryDirectory(prefix="cdb-patch-") as scratch:
        repo = Repo.init(Path(scratch) / "view.git", bare=True)
        with repo.git.custom_environment(GIT_DIR=str(repo.git_dir), **_QUIET):
            stream_file = Path(scratch) / "stream"
            with stream_file.open("wb") as stream:
                _commit(stream, b"start", start_root, [before[p] for p in changed if p in before])
                _commit(stream, b"final", final_root, [after[p] for p in changed if p in after])
            with stream_file.open("rb") as stream:
                repo.git.fast_import("--quiet", "--force", istream=stream)
            whole = _diff(repo, target)
        repo.close()
    return whole


def _diff(repo: Repo, target: Path) -> bool:
    process = repo.git.diff(
        "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "start", "final", as_process=True
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


def _commit(stream: IO[bytes], branch: bytes, root: Path, entries: list[Entry]) -> None:
    """One root commit in git's fast-import format (git-fast-import(1)) with exactly `entries`."""
    stream.write(b"commit refs/heads/" + branch + b"\ncommitter cdb <cdb@localhost> 0 +0000\ndata 0\n")
    for entry in entries:
        path = path_bytes(entry)
        full = os.path.join(os.fsencode(root), path)
        content = os.readlink(full) if entry["mode"] == "link" else Path(os.fsdecode(full)).read_bytes()
        stream.write(f"M {_MODES[entry['mode']]} inline ".encode() + _quoted(path) + b"\n")
        stream.write(f"data {len(content)}\n".encode() + content + b"\n")
    stream.write(b"\n")


def _quoted(path: bytes) -> bytes:
    plain = b"".join(bytes([c]) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:03o}".encode() for c in path)
    return b'"' + plain + b'"'
