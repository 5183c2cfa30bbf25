"""External resources of start applications, recorded once and answered from a folder ever after.

`index.json` (`cdb.frozen/1`) maps addresses to answers; `blobs/AB/SHA256` holds the bodies by their hash. The
store's digest covers what is answered (addresses, status, headers, bodies), not when it was recorded.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urldefrag, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.atomic import write_bytes
from bench.errors import DataError, UsageError
from bench.tree import file_sha256

INDEX = "index.json"
BLOBS = "blobs"
KEPT_HEADERS = frozenset(
    {
        "content-type", "content-language", "content-disposition", "cross-origin-resource-policy",
        "access-control-allow-origin", "access-control-allow-credentials", "access-control-expose-headers",
        "timing-allow-origin", "x-content-type-options", "sourcemap",
    }
)  # fmt: skip
ORIGIN = "<origin>"
"""Stands for the asking page's origin where the recorded answer named it: its port differs from run to run."""
_CACHE_BUSTERS = frozenset({"_", "t", "ts", "cb", "time", "timestamp", "rand", "random", "nocache", "cachebuster"})
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class _Strict(BaseModel):
    """A key that is not known is a fault."""

    model_config = ConfigDict(extra="forbid")


class FrozenEntry(_Strict):
    """One recorded answer. `url` without fragment; `final_url` where redirects led."""

    url: str
    final_url: str
    status: int
    headers: dict[str, str]
    sha256: str
    bytes: int
    type: str
    """Content type without parameters."""
    cases: list[str] = Field(default_factory=list)
    """Tasks whose start application asked for it."""


class NotRecorded(_Strict):
    """An address that was asked for and is not answered. `refused` for good, or `failed` just then."""

    url: str
    kind: Literal["refused", "failed"]
    reason: str
    cases: list[str] = Field(default_factory=list)


class FrozenIndex(_Strict):
    """`index.json`."""

    schema_: Literal["cdb.frozen/1"] = Field("cdb.frozen/1", alias="schema")
    digest: str = ""
    allowed: list[str] = Field(default_factory=list)
    """Addresses that were asked although they are not public."""
    done: dict[str, str] = Field(default_factory=dict)
    """Task → digest of the start application that was recorded whole."""
    entries: list[FrozenEntry] = Field(default_factory=list)
    not_recorded: list[NotRecorded] = Field(default_factory=list)


class FrozenStore:
    """A store that answers. Reading is safe from several threads, while one adds, too."""

    def __init__(self, folder: Path, index: FrozenIndex) -> None:
        self.folder = folder
        self.index = index
        self._by_url: dict[str, FrozenEntry] = {}
        self._by_final: dict[str, FrozenEntry] = {}
        self._by_steady: dict[str, FrozenEntry] = {}
        for entry in index.entries:
            self.add(entry)

    @property
    def digest(self) -> str:
        return entries_digest(self.index.entries)

    def add(self, entry: FrozenEntry) -> None:
        """Answer with this one, too. For whoever records; the first entry of an address stays."""
        self._by_url.setdefault(entry.url, entry)
        self._by_final.setdefault(entry.final_url, entry)
        self._by_steady.setdefault(steady(entry.url), entry)

    def find(self, url: str) -> FrozenEntry | None:
        """The entry for an address: as it is, as the end of a redirect, or but for a cache buster's value."""
        plain = urldefrag(url).url
        return self._by_url.get(plain) or self._by_final.get(plain) or self._by_steady.get(steady(plain))


def checked_index(folder: Path) -> FrozenIndex:
    """Read a store and check every body against its hash. Raises UsageError for a wrong folder, DataError."""
    index = read_index(folder)
    if index is None:
        raise UsageError(f"{folder} is no store of frozen resources: it has no {INDEX}; make one: cdb dataset freeze")
    for entry in index.entries:
        path = blob_path(folder, entry.sha256)
        if not path.is_file() or file_sha256(path) != entry.sha256:
            raise DataError(f"{path} (of {entry.url}) is missing or damaged; copy the store again, or record it anew")
    if index.digest != entries_digest(index.entries):
        raise DataError(f"{folder / INDEX} was changed: its digest is not that of its entries; copy the store again")
    return index


def open_store(folder: Path) -> FrozenStore:
    """A store that answers, checked as `checked_index` does. Raises UsageError, DataError."""
    return FrozenStore(folder, checked_index(folder))


def read_index(folder: Path) -> FrozenIndex | None:
    """The index of a store, None when there is none. Raises DataError."""
    path = folder / INDEX
    if not path.is_file():
        return None
    try:
        return FrozenIndex.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"{path} cannot be understood ({where}: {first['msg']}); copy the store again") from error


def write_index(folder: Path, index: FrozenIndex) -> None:
    index.entries.sort(key=lambda entry: entry.url)
    index.not_recorded.sort(key=lambda one: one.url)
    index.digest = entries_digest(index.entries)
    write_bytes(folder / INDEX, index.model_dump_json(indent=2, by_alias=True).encode() + b"\n")


def keep_blob(folder: Path, content: bytes) -> str:
    """Put a body into the store; its SHA-256 in hex."""
    name = hashlib.sha256(content).hexdigest()
    path = blob_path(folder, name)
    if not path.is_file():
        write_bytes(path, content)
    return name


def blob_path(folder: Path, sha256: str) -> Path:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise DataError(f"{folder / INDEX}: {sha256[:80]!r} is no SHA-256; copy the store again")
    return folder / BLOBS / sha256[:2] / sha256


def entries_digest(entries: list[FrozenEntry]) -> str:
    """What is answered, in address order, as `sha256:` and 64 digits."""
    told = sorted([e.url, e.final_url, e.status, sorted(e.headers.items()), e.sha256] for e in entries)
    return "sha256:" + hashlib.sha256(json.dumps(told).encode()).hexdigest()


def steady(url: str) -> str:
    """The address without parameters that only keep caches away (`?_=1714060800123`)."""
    parts = urlsplit(url)
    kept = [
        (key, value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
        if not (key.lower() in _CACHE_BUSTERS and re.fullmatch(r"[\d.]{6,}", value))
    ]
    return urlunsplit(parts._replace(query=urlencode(kept), fragment=""))


def byte_range(header: str, size: int) -> tuple[int, int] | None:
    """Start and end (exclusive) of a single satisfiable byte range."""
    match = _RANGE.fullmatch(header.strip())
    if not match or not size or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    start, end = int(first), min(int(last) + 1 if last else size, size)
    return (start, end) if start < end else None
