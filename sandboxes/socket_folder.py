"""Private folders for unix sockets that host and container share, with a path short enough for AF_UNIX."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import InfraError

LONGEST_PATH_BYTES = 90
"""AF_UNIX addresses end at 107 bytes; the rest is room for the socket's name."""


@contextmanager
def socket_folder(purpose: str, *, writable: bool = False) -> Iterator[Path]:
    """A fresh folder to mount into one container; removed afterwards.

    The container's user may enter it, and with `writable` make sockets in it. Other users of this machine
    may not: its parent lets only us through. Raises InfraError when no place for one is found.
    """
    parent = _private_parent(purpose)
    try:
        folder = parent / "s"
        folder.mkdir()
        folder.chmod(0o777 if writable else 0o755)
        yield folder
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _private_parent(purpose: str) -> Path:
    places = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/dev/shm")]
    for place in places:
        short = len(os.fsencode(place)) + len(f"/cdb-{purpose}-12345678/s/") <= LONGEST_PATH_BYTES
        if short and place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            return Path(tempfile.mkdtemp(prefix=f"cdb-{purpose}-", dir=place))
    raise InfraError(
        f"no writable folder with a path short enough for a socket among {', '.join(map(str, places))}; "
        "set TMPDIR to one"
    )
