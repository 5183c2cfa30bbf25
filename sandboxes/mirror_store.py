"""What the mirror keeps on disk, safe to share by several mirrors at a time.

    ROOT/blobs/ab/abcdef…                        files, named by their digest (npm: sha512, Python: sha256)
    ROOT/REGISTRY/documents/NAME.KIND            a line of JSON (fetched, etag), then the document
    ROOT/REGISTRY/tarballs/NAME/FILE.json        which blob a package's file is

REGISTRY is the address's digest, so that two registries never mix. Files appear whole (written beside,
then renamed) and are never changed; a blob is checked against its name each time it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from sandboxes.mirror_upstream import Digests


class Document(NamedTuple):
    """A kept package document: Unix time it was fetched or last confirmed, entity tag or empty, body."""

    fetched: float
    etag: str
    body: bytes


class Store:
    """The cache of one registry under `root` (made when missing, for this user only)."""

    def __init__(self, root: Path, registry: str, algorithm: str = "sha512") -> None:
        self._algorithm = algorithm
        self._blobs = root / "blobs"
        self._own = root / hashlib.sha256(registry.encode()).hexdigest()[:16]
        for folder in (self._blobs, self._own):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def document(self, name: str, kind: str) -> Document | None:
        """The kept document, however old."""
        try:
            line, _, body = self._document_path(name, kind).read_bytes().partition(b"\n")
            told = json.loads(line)
            return Document(float(told["fetched"]), str(told["etag"]), body)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def keep_document(self, name: str, kind: str, etag: str, body: bytes) -> None:
        line = json.dumps({"fetched": time.time(), "etag": etag}).encode()
        _write(self._document_path(name, kind), line + b"\n" + body)

    def blob(self, name: str, file: str) -> Path | None:
        """Where the file lies; None when it is not kept, or what is kept is damaged (then it is dropped)."""
        try:
            digest = str(json.loads(self._tarball_path(name, file).read_bytes())[self._algorithm])
            path = self._blob_path(digest)
            with path.open("rb") as content:
                found = hashlib.file_digest(content, self._algorithm).hexdigest()
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        if found == digest:
            return path
        path.unlink(missing_ok=True)
        return None

    @contextmanager
    def receiving(self) -> Iterator[Path]:
        """A path to download to, on the blobs' own file system; gone afterwards unless `keep_blob` took it."""
        handle, name = tempfile.mkstemp(prefix=".part-", dir=self._blobs)
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def keep_blob(self, name: str, file: str, received: Path, digests: Digests, *, checked: bool) -> Path:
        """Moves a received file in. `checked`: its digest was compared with what the registry lists."""
        digest = digests.by[self._algorithm]
        target = self._blob_path(digest)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        received.replace(target)
        fact = {self._algorithm: digest, "size_bytes": digests.size_bytes, "checked": checked}
        _write(self._tarball_path(name, file), json.dumps(fact).encode())
        return target

    def _document_path(self, name: str, kind: str) -> Path:
        return self._own / "documents" / f"{_file_name(name)}.{kind}"

    def _tarball_path(self, name: str, file: str) -> Path:
        return self._own / "tarballs" / _file_name(name) / f"{_file_name(file)}.json"

    def _blob_path(self, digest: str) -> Path:
        return self._blobs / digest[:2] / digest


def _file_name(text: str) -> str:
    """One file name for a package's name, readable where it fits a file system's 255 bytes."""
    name = quote(text, safe="@")
    return name if len(name) < 200 else hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).replace(path)
