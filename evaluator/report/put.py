"""The files of a site: one page to open, and one folder beside it that holds everything else."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

from bench.errors import UsageError

LIST = "site.json"
SCHEMA = "cdb.site/1"


class Site:
    """Writes files below `PAGE-files/`, and the page itself; remembers what belongs to this generation.

    A file whose bytes are the same is left alone, so that a viewer sees only what changed. Nothing is synced to
    the disk: a report can always be made again.
    """

    def __init__(self, page: Path) -> None:
        self.page = page
        self.folder = page.with_name(f"{page.stem}-files")
        self.name = f"{quote(self.folder.name)}/"
        """The folder as the page refers to it."""
        if self.folder.is_dir() and any(self.folder.iterdir()) and not (self.folder / LIST).is_file():
            raise UsageError(f"{self.folder} is there and was not made by `cdb report`; choose another --out")
        self._kept: set[str] = set()

    def put_page(self, content: bytes) -> None:
        _write(self.page, content)

    def put(self, name: str, content: bytes) -> None:
        """Write `content` to `name` below the folder. Names are ours: letters, digits, `-`, `_`, `.` and `/`."""
        if not self._kept and not (self.folder / LIST).is_file():
            self._list([])  # so that a report that was stopped half-way is known for one
        self._kept.add(name)
        _write(self.folder / name, content)

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def keep(self, *names: str) -> None:
        """These files are part of this generation too, unchanged."""
        self._kept.update(name for name in names if name)

    def files(self) -> list[str]:
        return sorted(self._kept)

    def finish(self) -> None:
        """Remove what an earlier generation listed and this one did not write; write the new list."""
        for name in _listed(self.folder / LIST) - self._kept:
            path = (self.folder / name).resolve()
            if path.is_relative_to(self.folder.resolve()):
                path.unlink(missing_ok=True)
        self._list(self.files())
        self._kept = set()

    def _list(self, files: list[str]) -> None:
        told = {"schema": SCHEMA, "page": self.page.name, "files": files}
        _write(self.folder / LIST, json.dumps(told, indent=1).encode())


def _listed(path: Path) -> set[str]:
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {name for name in files if isinstance(name, str)} if isinstance(files, list) else set()


def _write(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never half of one."""
    try:
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
