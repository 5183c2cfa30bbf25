"""Asking an upstream: its address, its key, and which headers go along.

Keys are read from the environment or a token file at the moment they are needed and leave this module only in
the headers of a request. Nothing is ever sent twice.
"""

from __future__ import annotations

import json
import os
import ssl
import urllib.request
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from bench.errors import UsageError
from sandboxes import machine
from sandboxes.gateway.pause import Pause
from sandboxes.gateway.policy import Protocol, Upstream
from sandboxes.gateway.routes import Ask

warnings.filterwarnings("ignore", message="Sending a large body directly")

CONNECT_S = 30.0
KEEP_ALIVE_S = 15.0
NOT_SENT = frozenset({
    "host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "te",
    "trailer", "transfer-encoding", "upgrade", "content-length", "accept-encoding", "expect", "authorization",
    "x-api-key", "x-goog-api-key", "api-key", "cookie", "forwarded", "x-forwarded-for", "x-forwarded-host",
    "x-forwarded-proto", "x-real-ip",
    "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url",
    "x-goog-user-project", "openai-organization", "openai-project",
})  # fmt: skip
"""Request headers that end here: of one hop, credentials, and those by which servers are steered elsewhere."""
NOT_RETURNED = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "trailer", "transfer-encoding", "upgrade",
    "set-cookie", "alt-svc", "strict-transport-security",
})  # fmt: skip


class Route:
    """One upstream, ready to be asked."""

    def __init__(self, name: str, told: Upstream, environ: Mapping[str, str] = os.environ) -> None:
        """Raises UsageError when its address or key is missing."""
        self.name, self.told = name, told
        self._environ = environ
        self.address = told.address(environ)
        self._proxy = _proxy(self.address)
        self._file_seen: tuple[float, str] = (0.0, "")
        self.pause = Pause()
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}
        self.key()

    def key(self) -> str:
        """The secret in force. Raises UsageError that names where it should be."""
        told = self.told
        if told.auth == "none":
            return ""
        if told.key_file is not None:
            return self._key_of_file(told.key_file)
        key = self._environ.get(told.key_env, "").strip() if told.key_env else ""
        if not key:
            raise UsageError(f"upstream {self.name}: no key, set {told.key_env or 'key_env in its configuration'}")
        if not key.isascii() or not key.isprintable():
            raise UsageError(f"upstream {self.name}: {told.key_env} holds characters that no key has")
        return key

    def _key_of_file(self, file: Path) -> str:
        try:
            changed = file.expanduser().stat().st_mtime
            if changed != self._file_seen[0]:
                token: Any = file.expanduser().read_text(encoding="utf-8")
                if self.told.key_field:
                    token = json.loads(token)
                    for part in self.told.key_field.split("."):
                        token = token[part]
                self._file_seen = changed, str(token).strip()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"upstream {self.name}: no token in {file} at {self.told.key_field or 'its text'} "
                f"({type(error).__name__}); log in again with the tool that wrote it"
            ) from error
        return self._file_seen[1]

    def secrets(self) -> list[bytes]:
        """What must never be seen: the key and the configured headers' values that look like one."""
        try:
            key = self.key()
        except UsageError:
            key = ""
        values = [
            value for name, value in self.told.headers.items() if "key" in name.lower() or "auth" in name.lower()
        ]
        return [value.encode() for value in (key, *values) if len(value) >= 8]

    def url(self, ask: Ask, model: str) -> URL:
        """Where a call goes. The base address is what the provider's SDK takes; a version that is missing or
        stands twice is mended."""
        if ask.protocol == "gemini":
            base = self.address.removesuffix(f"/{ask.tail}")
            text = f"{base}/{ask.tail}/models/{model}:{ask.verb}"
        elif ask.protocol == "anthropic":
            text = self.address.removesuffix("/v1") + ask.tail
        else:
            bare = urlsplit(self.address).path in {"", "/"}
            text = self.address + (ask.tail if bare else ask.tail.removeprefix("/v1"))
        if ask.query:
            text += "?" + ask.query
        found = self._urls.get(text)
        if found is None:
            if len(self._urls) > 256:
                self._urls.clear()
            found = self._urls[text] = URL(text, encoded=True)
        return found

    def headers(self, came: CIMultiDictProxy[str]) -> CIMultiDict[str]:
        """The agent's headers, all but `NOT_SENT`, with this upstream's key in them."""
        named_by_connection = {name.strip().lower() for name in came.get("Connection", "").split(",")}
        headers = CIMultiDict(
            (name, value)
            for name, value in came.items()
            if (low := name.lower()) not in NOT_SENT and low not in named_by_connection
        )
        headers["Accept-Encoding"] = "identity"  # usage must be read as it passes
        for name, value in self.told.headers.items():
            if name.lower() == "anthropic-beta":
                present = [part.strip() for part in ",".join(headers.getall(name, [])).split(",") if part.strip()]
                headers[name] = ",".join([*present, *(part for part in value.split(",") if part not in present)])
            else:
                headers[name] = value
        key = self.key()
        match self.told.auth:
            case "bearer":
                headers["Authorization"] = f"Bearer {key}"
            case "x-api-key" | "x-goog-api-key":
                headers[self.told.auth] = key
        return headers

    async def send(self, ask: Ask, model: str, came: CIMultiDictProxy[str], body: bytes) -> aiohttp.ClientResponse:
        """Send a call once and return when the answer's headers are there. Raises aiohttp.ClientError, OSError."""
        if self._session is None:
            self._session = _open_session(self.address)
        return await self._session.request(
            "POST",
            self.url(ask, model),
            data=body,
            headers=self.headers(came),
            proxy=self._proxy,
            allow_redirects=False,
        )

    async def look_up(self, tail: str, protocol: Protocol, most_bytes: int) -> tuple[int, bytes]:
        """Status and body of a GET below the base address. Raises as `send` does, ValueError for a longer body."""
        if self._session is None:
            self._session = _open_session(self.address)
        versioned = self.address if protocol == "gemini" else self.address.removesuffix("/v1")
        if protocol.startswith("openai") and urlsplit(versioned).path not in {"", "/"}:
            versioned, tail = self.address, tail.removeprefix("/v1")
        headers = self.headers(CIMultiDictProxy(CIMultiDict({"anthropic-version": "2023-06-01"})))
        address = URL(versioned + tail, encoded=True)
        async with self._session.get(address, headers=headers, proxy=self._proxy, allow_redirects=False) as answer:
            body = await answer.content.read(most_bytes)
            while not answer.content.at_eof():
                more = await answer.content.read(most_bytes)
                if len(body) + len(more) > most_bytes:
                    raise ValueError("the answer is too long")
                body += more
            return answer.status, body

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _proxy(address: str) -> str | None:
    """The machine's proxy for this address: environment variables, NO_PROXY respected."""
    parts = urlsplit(address)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _open_session(address: str) -> aiohttp.ClientSession:
    """A session that trusts what this machine trusts and adds nothing of its own to a request."""
    context: ssl.SSLContext | bool = True
    if address.startswith("https:"):
        context = ssl.create_default_context()
        if bundle := machine.ca_bundle():
            context.load_verify_locations(cafile=bundle)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=KEEP_ALIVE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,  # it would read ~/.netrc; the proxy is given for each call
        skip_auto_headers={"User-Agent", "Accept", "Content-Type", "Accept-Encoding"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        read_bufsize=256 * 1024,
        max_line_size=64 * 1024,
        max_field_size=64 * 1024,
    )
