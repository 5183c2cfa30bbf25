"""Where things are kept between runs that can always be made again: registry tarballs, built start applications."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """`$CDB_CACHE/NAME`, else `$XDG_CACHE_HOME/cdb/NAME`, else `~/.cache/cdb/NAME`; made when missing."""
    root = os.environ.get("CDB_CACHE")
    base = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cdb"
    folder = base / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
