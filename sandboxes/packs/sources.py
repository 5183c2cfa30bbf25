"""Packages of a lock that come as source only: fetched without running anything of them, built in the container.

pip on this machine would run a package's own build script to learn its name and version, even to download it. So
these few come over the package mirror, and are built where the rest of the pack is put together.
"""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path
from typing import NamedTuple

from bench.errors import InfraError
from sandboxes.mirror import PYPI_SOCKET, Mirror
from sandboxes.pypi_pages import JSON
from sandboxes.unix_http import UnixConnection

_ANSWER_S = 300.0


class Pinned(NamedTuple):
    """One entry of a requirements.lock: its lines, the package's name as it stands there, and its sha256 digests."""

    text: str
    name: str
    hashes: frozenset[str]


def read_lock(lock: Path) -> list[Pinned]:
    """The entries of a lock with hashes, comments left out."""
    lines = [line for line in lock.read_text(encoding="utf-8").splitlines(keepends=True) if not line.startswith("#")]
    found = []
    for text in re.split(r"(?m)^(?=[A-Za-z0-9])", "".join(lines)):
        match = re.match(r"([A-Za-z0-9._-]+)==", text)
        if match:
            found.append(Pinned(text, match[1], frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))))
    return found


def fetch(wanted: list[Pinned], target: Path) -> list[str]:
    """Put the source archive of each into `target`; their file names. The mirror compares digests with the index, and
    only a file whose digest the lock holds is asked for. Raises InfraError."""
    if not wanted:
        return []
    with Mirror(pypi=True) as mirror:
        socket = mirror.mount().source / PYPI_SOCKET
        return [_fetch_one(socket, one, target) for one in wanted]


def _fetch_one(socket: Path, one: Pinned, target: Path) -> str:
    page = json.loads(_get(socket, f"/simple/{one.name}/", JSON))
    for file in page["files"]:
        if file["hashes"].get("sha256") in one.hashes:
            name = str(file["filename"])
            (target / name).write_bytes(_get(socket, f"/files/{one.name}/{name}", "*/*"))
            (target / name).chmod(0o644)
            return name
    raise InfraError(f"the package index lists no file of {one.name} with a digest of the lock")


def _get(socket: Path, path: str, accept: str) -> bytes:
    connection = UnixConnection(socket, timeout_s=_ANSWER_S)
    try:
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise InfraError(f"the package mirror broke off at {path} ({type(error).__name__}: {error})") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise InfraError(f"{path} could not be fetched: {body.decode('utf-8', 'replace')[:500]}")
    return body
