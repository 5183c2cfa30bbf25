"""What records from the open network reaches nothing nearer, whatever an application asks for."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from fake_cdn import Cdn, running

from sandboxes import open_fetch
from sandboxes.open_fetch import FetchFailed, FetchRefused, OpenFetch, why_not_public


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    with running(Cdn()) as served:
        yield served


def fetcher(cdn: Cdn, **settings: object) -> OpenFetch:
    """Every host is the fake CDN, which is allowed by its address and port and nothing else."""
    return OpenFetch(
        allowed=frozenset({("127.0.0.1", cdn.port)}), resolve=lambda host, port: ["127.0.0.1"], **settings
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.10", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.17.0.1", "192.168.1.1", "100.64.0.1",
        "100.100.100.200", "169.254.169.254", "168.63.129.16", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "198.18.0.1", "192.0.2.1", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1", "fc00::1",
        "fd00:ec2::254", "ff02::1", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:c0a8:101::",
        "2001:db8::1", "no address",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert why_not_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "151.101.1.229", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_may_be_asked(address: str) -> None:
    assert why_not_public(address) is None


def test_a_public_address_of_this_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_fetch, "_is_own", lambda ip: str(ip) == "1.1.1.1")
    assert why_not_public("1.1.1.1") == "it is an address of this machine"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:{port}/x", "http://127.1:{port}/x", "http://2130706433:{port}/x", "http://0x7f000001:{port}/x",
        "http://0177.0.0.1:{port}/x", "http://[::1]:{port}/x", "http://[::ffff:127.0.0.1]:{port}/x", "http://0:{port}/",
        "http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x",
        "http://user:pass@example.com/x", "http:///x", "http://example.com:99999/x", "http://" + "a" * 9_000,
    ],
)  # fmt: skip
def test_no_form_of_a_near_address_is_asked(cdn: Cdn, url: str) -> None:
    with pytest.raises(FetchRefused):
        OpenFetch().get(url.format(port=cdn.port))
    assert cdn.asked == []


def test_a_host_with_one_private_address_among_others_is_refused(cdn: Cdn) -> None:
    fetch = OpenFetch(resolve=lambda host, port: ["1.1.1.1", "127.0.0.1"])
    with pytest.raises(FetchRefused, match=r"127\.0\.0\.1"):
        fetch.get(f"http://cdn.test:{cdn.port}/x")


def test_the_name_is_resolved_once_and_the_checked_address_is_asked(cdn: Cdn) -> None:
    cdn.add("/x", "text/plain", "good")
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    fetch = OpenFetch(allowed=frozenset({("127.0.0.1", cdn.port)}), resolve=rebinding)
    assert fetch.get(f"http://cdn.test:{cdn.port}/x").body == b"good"
    assert asked == ["cdn.test"]
    assert cdn.headers[0]["host"] == f"cdn.test:{cdn.port}"


def test_redirects_are_followed_and_each_hop_is_checked(cdn: Cdn) -> None:
    cdn.add("/old", "text/plain", "", 302, Location="/new?a=b c")
    cdn.add("/new?a=b%20c", "text/plain", "there")
    found = fetcher(cdn).get(f"http://cdn.test:{cdn.port}/old")
    assert (found.url, found.body) == (f"http://cdn.test:{cdn.port}/new?a=b c", b"there")
    for target in ("http://127.0.0.1:1/x", "file:///etc/passwd", f"http://u:p@cdn.test:{cdn.port}/new"):
        cdn.add("/away", "text/plain", "", 301, Location=target)
        with pytest.raises(FetchRefused):
            fetcher(cdn).get(f"http://cdn.test:{cdn.port}/away")
    cdn.add("/loop", "text/plain", "", 307, Location="/loop")
    with pytest.raises(FetchRefused, match="redirects"):
        fetcher(cdn).get(f"http://cdn.test:{cdn.port}/loop")


def test_only_plain_headers_are_sent(cdn: Cdn) -> None:
    cdn.add("/x", "text/plain", "good")
    sent = {"User-Agent": "Mozilla", "Cookie": "a=b", "Authorization": "Bearer c", "X-Evil": "1\r\nX-More: 2"}
    fetcher(cdn).get(f"{cdn.address}/x", sent)
    assert cdn.headers[0]["user-agent"] == "Mozilla"
    assert not {"cookie", "authorization", "x-evil", "x-more"} & cdn.headers[0].keys()


def test_a_packed_answer_is_unpacked_within_the_cap(cdn: Cdn) -> None:
    cdn.add("/a", "text/css", gzip.compress(b"body{}"), Content_Encoding="gzip")
    found = fetcher(cdn).get(f"{cdn.address}/a")
    assert (found.body, "content-encoding" in found.headers) == (b"body{}", False)
    cdn.add("/bomb", "text/css", gzip.compress(bytes(5_000_000)), Content_Encoding="gzip")
    with pytest.raises(FetchRefused, match="longer than"):
        fetcher(cdn, max_bytes=1_000_000).get(f"{cdn.address}/bomb")


def test_long_slow_and_broken_answers_end(cdn: Cdn) -> None:
    cdn.add("/long", "text/plain", bytes(2_000_000))
    with pytest.raises(FetchRefused, match="longer than"):
        fetcher(cdn, max_bytes=1_000_000).get(f"{cdn.address}/long")

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(100):
            try:
                handler.wfile.write(b"x-slow: 1\r\n")
            except OSError:
                return
            time.sleep(0.1)

    def short(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        handler.close_connection = True

    cdn.answers |= {"/drip": drip, "/short": short}
    began = time.monotonic()
    with pytest.raises(FetchFailed):
        fetcher(cdn, total_s=0.5).get(f"{cdn.address}/drip")
    assert time.monotonic() - began < 3
    with pytest.raises(FetchFailed):
        fetcher(cdn).get(f"{cdn.address}/short")


def test_a_port_that_nobody_listens_on_is_a_failure_of_the_moment() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(FetchFailed):
        OpenFetch(allowed=frozenset({("127.0.0.1", port)})).get(f"http://127.0.0.1:{port}/x")
    with pytest.raises(FetchFailed, match="not resolved"):
        OpenFetch().get("http://no-such-host.invalid/x")
