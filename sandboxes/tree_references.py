"""Which left-out parts of a tree the files that were kept refer to, so that they must not be left out.

A page without a build step loads a package by its path (`node_modules/three/build/three.module.js`); nothing
would install it again where it is served.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import islice
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from bench.tree import Entry, path_bytes, target_bytes
from sandboxes.sandbox import TreeReport

_READ = frozenset(
    [".html", ".htm", ".xhtml", ".svg", ".css", ".js", ".mjs", ".json", ".webmanifest", ".importmap", ".xml"]
)
"""What a browser loads by itself. Other sources are built, and a build installs its packages."""
_NOT_READ = frozenset({"package.json", "package-lock.json", "npm-shrinkwrap.json", "tsconfig.json", "jsconfig.json"})
_MAX_BYTES = 2 * 1024 * 1024
_MAX_REFERENCES = 1000
_LONGEST = 300
_END = rb"\s\"'`()<>,;|&=\\*?#"
_BEFORE = re.compile(b"[" + _END + b"]")


def referred(root: Path, report: TreeReport, start: Sequence[Entry], names: Set[str]) -> frozenset[str]:
    """Paths below left-out directories that entries of the copy at `root` lead to: of `node_modules` the package,
    of others the first level. Entries that are in `start` as they are do not count. At most 1,000."""
    parts = [part.path for part in report.left_out if part.path.rsplit("/", 1)[-1] in names]
    if not parts:
        return frozenset()
    known = {path_bytes(entry): entry for entry in start}
    own = [entry for entry in report.entries if known.get(path_bytes(entry)) != entry]
    found: dict[str, None] = {}
    for path in _paths(root, own, names):
        for part in parts:
            if path == part or path.startswith(f"{part}/"):
                found[_kept(part, path)] = None
        if len(found) >= _MAX_REFERENCES:
            break
    return frozenset(islice(found, _MAX_REFERENCES))


def _paths(root: Path, entries: Iterable[Entry], names: Set[str]) -> Iterator[str]:
    """Every path of the tree that the entries may mean, normalised."""
    pattern = re.compile(
        b"(?:"
        + b"|".join(re.escape(name.encode()) for name in sorted(names))
        + b")/[^"
        + _END
        + b"]{1,%d}" % _LONGEST
    )
    for entry in entries:
        path = path_bytes(entry).decode("utf-8", "surrogateescape")
        folder = posixpath.dirname(path)
        if entry["mode"] == "link":
            target = target_bytes(entry).decode("utf-8", "surrogateescape")
            yield posixpath.normpath(posixpath.join(folder, target))
        elif _is_read(path, int(entry["size"])):
            for reference in _references((root / path).read_bytes(), pattern):
                yield posixpath.normpath(posixpath.join(folder, reference))
                yield posixpath.normpath(reference.lstrip("/") or ".")


def _is_read(path: str, size: int) -> bool:
    name = PurePosixPath(path).name.lower()
    config = ".config." in name or name in _NOT_READ
    return PurePosixPath(name).suffix in _READ and not config and size <= _MAX_BYTES


def _references(content: bytes, pattern: re.Pattern[bytes]) -> Iterator[str]:
    for match in islice(pattern.finditer(content), 10 * _MAX_REFERENCES):
        before = _BEFORE.split(content[max(0, match.start() - _LONGEST) : match.start()])[-1]
        yield unquote((before + match.group()).decode("utf-8", "surrogateescape"), errors="surrogateescape")


def _kept(part: str, path: str) -> str:
    below = path[len(part) + 1 :].split("/")
    depth = 2 if below[0].startswith("@") else 1
    return "/".join(filter(None, [part, *below[:depth]]))
