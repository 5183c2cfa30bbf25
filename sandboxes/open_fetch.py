"""One GET to the open network, and never to anything nearer: the guarded way out when resources are recorded.

An application under test decides which addresses are asked for, so each is taken for an attempt on this machine and
its neighbours: the name is resolved once, every address it has is checked, and the connection goes to the address
that was checked (a second look-up could give another one). Private, loopback, link-local, multicast, reserved and
metadata addresses are refused, IPv6 forms of them too, and this machine's own public ones. So is every hop of a
redirect. Nothing is sent but GET with plain headers; cookies and credentials never.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit, urlunsplit

CONNECT_S = 10.0
TOTAL_S = 60.0
MAX_BYTES = 32 * 1024 * 1024
MAX_REDIRECTS = 8
MAX_URL_CHARS = 8_000
PIECE_BYTES = 64 * 1024
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SENT = frozenset({"accept", "accept-language", "user-agent", "origin", "referer"})
"""Headers of the browser's request that are passed on."""
METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Metadata services on addresses that count as public."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]


class FetchRefused(Exception):
    """The address may not be asked, or its answer is more than is kept. Trying again changes nothing."""


class FetchFailed(Exception):
    """The address could not be asked just now: name not resolved, no connection, timeout, server error."""


@dataclass(frozen=True)
class Fetched:
    """The last answer of a chain of redirects. Header names in lower case; `body` without content encoding."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes


def resolve(host: str, port: int) -> list[str]:
    """Every address of a host. Raises FetchFailed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchFailed(f"{host} is not resolved: {error}") from error
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


@dataclass(frozen=True)
class OpenFetch:
    """What may be asked, and how much is taken. Usable from several threads.

    `allowed`: (address, port) pairs that may be asked although they are not public, for a mirror of one's own and
    for tests; whoever uses it records it.
    """

    allowed: frozenset[tuple[str, int]] = frozenset()
    max_bytes: int = MAX_BYTES
    total_s: float = TOTAL_S
    resolve: Resolve = field(default=resolve)

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Fetched:
        """GET `url`, redirects followed. Raises FetchRefused or FetchFailed."""
        until = time.monotonic() + self.total_s
        sent = {name.lower(): text for name, text in (headers or {}).items() if name.lower() in SENT}
        for _ in range(MAX_REDIRECTS + 1):
            fetched = self._once(url, sent, until)
            place = fetched.headers.get("location")
            if fetched.status not in REDIRECTS or not place:
                return fetched
            url = urljoin(url, place)
        raise FetchRefused(f"more than {MAX_REDIRECTS} redirects")

    def _once(self, url: str, headers: Mapping[str, str], until: float) -> Fetched:
        scheme, host, port, target = address_parts(url)
        address = self._checked(host, port)
        connection = _Pinned(address, host, port, scheme == "https")
        watch = threading.Timer(max(0.1, until - time.monotonic()), connection.abort)
        watch.start()
        try:
            default = port == (443 if scheme == "https" else 80)
            name = f"[{host}]" if ":" in host else host
            told = {**headers, "host": name if default else f"{name}:{port}", "accept-encoding": "identity"}
            connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
            for key, text in told.items():
                connection.putheader(key, text.encode("latin-1", "ignore"))
            connection.endheaders()
            answer = connection.getresponse()
            body = self._body(answer, until)
            kept = {key.lower(): text for key, text in answer.getheaders()}
            return Fetched(url, answer.status, kept, _decoded(body, kept.pop("content-encoding", ""), self.max_bytes))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise FetchFailed(f"{host}: {type(error).__name__}: {error}") from error
        finally:
            watch.cancel()
            connection.close()

    def _checked(self, host: str, port: int) -> str:
        """The address to connect to. Raises FetchRefused when any address of the host may not be asked."""
        addresses = self.resolve(host, port)
        if not addresses:
            raise FetchFailed(f"{host} has no address")
        for address in addresses:
            if (address, port) not in self.allowed and (why := why_not_public(address)):
                raise FetchRefused(f"{host} is at {address}: {why}")
        return addresses[0]

    def _body(self, answer: http.client.HTTPResponse, until: float) -> bytes:
        pieces, size = [], 0
        while piece := answer.read1(PIECE_BYTES):
            size += len(piece)
            if size > self.max_bytes:
                raise FetchRefused(f"the answer is longer than {self.max_bytes} bytes")
            pieces.append(piece)
            if time.monotonic() > until:
                break
        if time.monotonic() > until:  # a connection that was cut looks like one that ended
            raise FetchFailed(f"no whole answer within {self.total_s:.0f} s")
        if answer.length:
            raise FetchFailed("the answer ended before its length")
        return b"".join(pieces)


class _Pinned(http.client.HTTPConnection):
    """A connection to one checked address; names and certificates are still the host's."""

    def __init__(self, address: str, host: str, port: int, secure: bool) -> None:
        super().__init__(host, port, timeout=CONNECT_S)
        self._address, self._secure = address, secure

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), timeout=CONNECT_S)
        if self._secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)

    def abort(self) -> None:
        """End whatever waits for this connection, from another thread: no server may take its time for ever."""
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


def why_not_public(address: str) -> str | None:
    """Why an IP address is none that may be asked; None when it may."""
    try:
        ip: IpAddress = ipaddress.ip_address(address)
    except ValueError:
        return "it is no IP address"
    for inner in _inner(ip):
        if not inner.is_global or inner.is_multicast or inner.is_reserved or inner.is_unspecified:
            return "it is a private, local or reserved address"
        if inner in METADATA:
            return "a metadata service is there"
        if _is_own(inner):
            return "it is an address of this machine"
    return None


def _inner(ip: IpAddress) -> list[IpAddress]:
    """The address that is really asked: of an IPv6 form of an IPv4 address, that one (both for tunnels)."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return [ip.ipv4_mapped]
        if ip in _NAT64:
            return [ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)]
        if ip.sixtofour:
            return [ip, ip.sixtofour]
        if ip.teredo:
            return [ip, *ip.teredo]
    return [ip]


def _is_own(ip: IpAddress) -> bool:
    """Only an address of this machine can be bound to."""
    family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((str(ip), 0))
        return True
    return False


def address_parts(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and request target of an address. Raises FetchRefused for anything out of the ordinary."""
    if len(url) > MAX_URL_CHARS:
        raise FetchRefused(f"the address is longer than {MAX_URL_CHARS} characters")
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = (parts.hostname or "").encode("idna").decode() if ":" not in (parts.hostname or "") else parts.hostname
    except (ValueError, UnicodeError) as error:
        raise FetchRefused(f"it is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise FetchRefused(f"{parts.scheme or 'no scheme'}: only http and https are asked")
    if parts.username is not None or parts.password is not None:
        raise FetchRefused("it carries credentials")
    target = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    if not target.isascii() or any(c <= " " or c == "\x7f" for c in target):
        from urllib.parse import quote

        target = quote(target, safe="/?&=%:;@!$'()*+,~-._#[]")
    return parts.scheme, host, port, target


def _decoded(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """The body without its content encoding; servers may pack it although they were asked not to."""
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip" | "deflate":
            raw = encoding.lower() == "deflate" and body[:1] not in (b"\x78",)
            try:
                whole = zlib.decompressobj(-15 if raw else 47).decompress(body, max_bytes + 1)
            except zlib.error as error:
                raise FetchFailed(f"its {encoding} cannot be unpacked: {error}") from error
            if len(whole) > max_bytes:
                raise FetchRefused(f"unpacked, the answer is longer than {max_bytes} bytes")
            return whole
        case other:
            raise FetchRefused(f"it is packed as {other}, though plain content was asked for")
