"""The registry behind the mirror: which one it is on this machine, and how it is asked.

Address, proxies, certificates and tokens come from the machine's own npm configuration and environment (pip's:
`pypi_settings.py`); nothing here has a default address. Every failure is one of two kinds, because they mean opposite
things for a build: `Missing` (the registry answered that there is no such thing: the application's fault) and
`Outage` (anything else: nobody's fault but the machine's or the registry's).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import aiohttp
from yarl import URL

from sandboxes import machine

TRIES = 3
PAUSES_S = (0.3, 1.0)
LONGEST_S = 180.0
CHUNK_BYTES = 256 * 1024
MISSING = frozenset({404, 405, 410, 451})
CERTIFICATE_VARIABLES = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CDB_CA_BUNDLE")

T = TypeVar("T")


class Missing(Exception):
    """The registry says that there is no such package, version or file."""


class Outage(Exception):
    """The registry could not be asked, or did not answer as one does."""


@dataclass(frozen=True)
class Settings:
    """How the registry is reached. `address` ends without a slash; `headers` may hold a token and are never shown."""

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificates: tuple[Path, ...] = ()
    verify: bool = True


class Answer(NamedTuple):
    """A whole answer: status (200 or 304), entity tag or empty, body, its media type and where it came from."""

    status: int
    etag: str
    body: bytes
    kind: str
    address: str


class Digests(NamedTuple):
    """What arrived: its digests in hex, by algorithm, and the number of bytes."""

    by: Mapping[str, str]
    size_bytes: int


def settings(address: str | None = None) -> Settings:
    """Reads the machine's configuration; proxies named only in npm's go to the environment of this process.

    Raises InfraError when no registry is known (see `machine.npm_registry`).
    """
    registry = (address or machine.npm_registry()).rstrip("/")
    told = _npm_config("proxy", "https-proxy", "noproxy", "cafile", "strict-ssl", "userconfig", "globalconfig")
    for variable, key in (("HTTP_PROXY", "proxy"), ("HTTPS_PROXY", "https-proxy"), ("NO_PROXY", "noproxy")):
        if told.get(key) and not (os.environ.get(variable) or os.environ.get(variable.lower())):
            os.environ[variable] = told[key]
    named = [told.get("cafile"), *(os.environ.get(name) for name in CERTIFICATE_VARIABLES)]
    files = tuple(Path(name) for name in dict.fromkeys(filter(None, named)) if Path(name).is_file())
    npmrc = [Path(told.get("userconfig") or Path.home() / ".npmrc"), Path(told.get("globalconfig") or "/etc/npmrc")]
    return Settings(registry, _credentials(registry, npmrc), files, told.get("strict-ssl") != "false")


def _npm_config(*keys: str) -> dict[str, str]:
    """npm's effective values, without those that are not set; empty where there is no npm."""
    if shutil.which("npm") is None:
        return {}
    try:
        done = subprocess.run(
            ["npm", "config", "get", *keys], capture_output=True, text=True, timeout=20, check=False
        )
    except subprocess.TimeoutExpired:
        return {}
    pairs = (line.partition("=")[::2] for line in done.stdout.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, value in pairs if value.strip() not in {"", "null", "undefined"}}


def _credentials(registry: str, files: list[Path]) -> dict[str, str]:
    """The Authorization header for `registry` from npmrc lines like `//host/path/:_authToken=…`."""
    place = registry.partition(":")[2] + "/"
    best: tuple[int, str] = (0, "")
    for file in files:
        if not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            match = re.match(r"\s*(//.+/):(_authToken|_auth)\s*=\s*\"?([^\"\s]+)", line)
            if match and place.startswith(match[1]) and len(match[1]) > best[0]:
                value = re.sub(r"\$\{(\w+)\}", lambda name: os.environ.get(name[1], ""), match[3])
                best = (len(match[1]), f"{'Bearer' if match[2] == '_authToken' else 'Basic'} {value}")
    return {"Authorization": best[1]} if best[1] else {}


class Upstream:
    """Asks the registry, with bounded tries. One session for the process; close it.

    `algorithms`: the digests a download is given; `longest_s`: how long one may take.
    """

    def __init__(
        self, chosen: Settings, *, algorithms: tuple[str, ...] = ("sha512", "sha1"), longest_s: float = LONGEST_S
    ) -> None:
        self.address = chosen.address
        self._headers = dict(chosen.headers)
        self._algorithms = algorithms
        timeout = aiohttp.ClientTimeout(total=longest_s, connect=15, sock_read=30)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=24, ssl=_tls(chosen)), timeout=timeout, trust_env=True
        )

    async def close(self) -> None:
        await self._session.close()

    def own_path(self, address: str) -> str:
        """The path below this registry that `address` names; empty for any other host: no document may
        send the mirror elsewhere."""
        return address.removeprefix(f"{self.address}/") if address.startswith(f"{self.address}/") else ""

    async def get(self, path: str, *, accept: str, etag: str = "") -> Answer:
        """The document at `path` (quoted, no leading slash). Raises Missing, Outage."""

        async def read(answer: aiohttp.ClientResponse) -> Answer:
            etag, body = answer.headers.get("ETag", ""), await answer.read()
            return Answer(answer.status, etag, body, answer.content_type, str(answer.url))

        headers = {"Accept": accept} | ({"If-None-Match": etag} if etag else {})
        return await self._ask(URL(f"{self.address}/{path}", encoded=True), path, headers, read)

    async def download(self, path: str, target: Path) -> Digests:
        """Writes the file at `path` to `target`. Raises Missing, Outage (a full disk is one too)."""
        return await self.download_from(f"{self.address}/{path}", path, target)

    async def download_from(self, address: str, name: str, target: Path) -> Digests:
        """The same for a whole address; `name` stands in messages. The registry's token goes to the registry only."""

        async def read(answer: aiohttp.ClientResponse) -> Digests:
            sums, size = {name: hashlib.new(name, usedforsecurity=False) for name in self._algorithms}, 0
            with target.open("wb") as file:
                async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                    for one in sums.values():
                        one.update(chunk)
                    size += len(chunk)
                    file.write(chunk)
            return Digests({name: one.hexdigest() for name, one in sums.items()}, size)

        return await self._ask(URL(address, encoded=True), name, {"Accept-Encoding": "identity"}, read)

    async def _ask(
        self, url: URL, path: str, headers: dict[str, str], read: Callable[[aiohttp.ClientResponse], Awaitable[T]]
    ) -> T:
        own = self._headers if url.origin() == URL(self.address).origin() else {}
        reason = ""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(PAUSES_S[attempt - 1])
            try:
                async with self._session.get(url, headers=own | headers) as answer:
                    if answer.status in {200, 304}:
                        return await read(answer)
                    reason = f"the registry answered {answer.status} for {path}"
                    if answer.status in MISSING:
                        raise Missing(reason)
                    if answer.status != 429 and answer.status < 500:
                        break  # refused (401, 403, 407): asking again does not help
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                reason = f"the registry could not be asked for {path}: {type(error).__name__}: {error}"
        raise Outage(reason)


def _tls(chosen: Settings) -> ssl.SSLContext | bool:
    if not chosen.verify:
        return False
    context = ssl.create_default_context()
    for file in chosen.certificates:
        context.load_verify_locations(cafile=file)
    return context
