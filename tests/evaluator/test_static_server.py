"""The static server answers as a good static host would (cases C71 and C72)."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from evaluator.static_server import Span, StaticServer, make_site, parse_range

MEDIA = bytes(range(256)) * 40


@contextmanager
def serving(root: Path, *, log: Path | None = None, **site: object) -> Iterator[int]:
    with StaticServer(make_site(root, **site), 0, log) as server:  # type: ignore[arg-type]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def ask(port: int, target: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, target, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def navigate(port: int, target: str) -> tuple[int, dict[str, str], bytes]:
    return ask(port, target, Sec_Fetch_Mode="navigate", Accept="text/html,*/*;q=0.8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "site"
    (root / "assets").mkdir(parents=True)
    (root / "docs").mkdir()
    (root / "index.html").write_text("<!doctype html><title>home</title>é")
    (root / "docs" / "index.html").write_text("docs")
    (root / "about.html").write_text("about")
    (root / "assets" / "clip.mp4").write_bytes(MEDIA)
    (root / "assets" / "app.js").write_text("export {}")
    return root


def test_c72_a_range_gets_exactly_its_bytes(site: Path) -> None:
    with serving(site) as port:
        status, headers, body = ask(port, "/assets/clip.mp4", Range="bytes=100-199")
        assert (status, body) == (206, MEDIA[100:200])
        assert headers["content-range"] == f"bytes 100-199/{len(MEDIA)}"
        assert headers["accept-ranges"] == "bytes"
        assert ask(port, "/assets/clip.mp4", Range="bytes=-10")[2] == MEDIA[-10:]
        assert ask(port, "/assets/clip.mp4", Range="bytes=10200-")[2] == MEDIA[10200:]
        assert ask(port, "/assets/clip.mp4", Range="bytes=0-99999999")[2] == MEDIA


def test_c72_a_range_beyond_the_end_is_416_with_the_size(site: Path) -> None:
    with serving(site) as port:
        status, headers, _ = ask(port, "/assets/clip.mp4", Range=f"bytes={len(MEDIA)}-")
        assert (status, headers["content-range"]) == (416, f"bytes */{len(MEDIA)}")


@pytest.mark.parametrize("header", [None, "bytes=5-2", "bytes=-", "items=0-5", "bytes=0-1,4-5", "bytes=a-b"])
def test_a_range_that_cannot_be_read_means_the_whole_file(header: str | None) -> None:
    assert parse_range(header, 10) == Span(0, 10, part=False)


def test_a_range_of_an_empty_file_cannot_be_satisfied() -> None:
    assert parse_range("bytes=0-", 0) is None
    assert parse_range("bytes=-5", 0) is None


def test_if_range_without_validators_gets_the_whole_file(site: Path) -> None:
    with serving(site) as port:
        assert ask(port, "/assets/clip.mp4", Range="bytes=0-9", If_Range='"x"')[0] == 200


def test_head_says_the_length_and_sends_no_body(site: Path) -> None:
    with serving(site) as port:
        status, headers, body = ask(port, "/assets/clip.mp4", "HEAD")
        assert (status, headers["content-length"], body) == (200, str(len(MEDIA)), b"")


def test_one_connection_serves_many_requests(site: Path) -> None:
    with serving(site) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        for target, status in [("/", 200), ("/nope", 404), ("/assets/app.js", 200), ("/docs", 302), ("/", 200)]:
            connection.request("GET", target)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
        connection.close()


@pytest.mark.parametrize(
    "name", ["with space.txt", "中文 文件.txt", "hash#tag.txt", "100%.txt", "a+b&c=d?.txt", "100%25.txt", "é.txt"]
)
def test_c72_names_in_any_alphabet_are_served(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(name)
    with serving(tmp_path) as port:
        status, _, body = ask(port, "/" + quote(name) + "?v=1#x")
        assert (status, body.decode()) == (200, name)


@pytest.mark.parametrize(("stored", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_c2_a_name_is_the_same_in_either_spelling(tmp_path: Path, stored: str, asked: str) -> None:
    folder = tmp_path / unicodedata.normalize(stored, "café")  # type: ignore[arg-type]
    folder.mkdir()
    (folder / unicodedata.normalize(stored, "é 中文.mp3")).write_bytes(MEDIA)  # type: ignore[arg-type]
    target = "/" + quote(unicodedata.normalize(asked, "café/é 中文.mp3"))  # type: ignore[arg-type]
    with serving(tmp_path) as port:
        assert ask(port, target, Range="bytes=0-3")[::2] == (206, MEDIA[:4])
        (tmp_path / unicodedata.normalize("NFC", "ñ.txt")).write_text("one")
        (tmp_path / unicodedata.normalize("NFD", "ñ.txt")).write_text("two")
        for form, text in (("NFC", b"one"), ("NFD", b"two")):  # both there: each name means its own file
            assert ask(port, "/" + quote(unicodedata.normalize(form, "ñ.txt")))[2] == text  # type: ignore[arg-type]


def test_another_page_can_answer_deep_links(site: Path) -> None:
    (site / "200.html").write_text("shell")
    with serving(site, spa=True, fallback="200.html") as port:
        assert navigate(port, "/deep/link")[::2] == (200, b"shell")
        assert navigate(port, "/")[2].startswith(b"<!doctype html><title>home")


def test_a_name_that_is_not_utf8_is_served(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9")).mkdir()
    (tmp_path / os.fsdecode(b"caf\xe9") / "index.html").write_text("latin")
    with serving(tmp_path) as port:
        status, headers, _ = ask(port, "/caf%E9")
        assert (status, headers["location"]) == (302, "/caf%E9/")
        assert ask(port, "/caf%E9/")[2] == b"latin"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.JS", "text/javascript; charset=utf-8"),
        ("a.wasm", "application/wasm"),
        ("a.webmanifest", "application/manifest+json"),
        ("a.m4a", "audio/mp4"),
        ("a.mp4", "video/mp4"),
        ("a.ogg", "audio/ogg"),
        ("a.avif", "image/avif"),
        ("a.svg", "image/svg+xml; charset=utf-8"),
        ("a.woff2", "font/woff2"),
        ("a.unknown", "application/octet-stream"),
        ("LICENSE", "application/octet-stream"),
    ],
)
def test_c71_mime_types_are_right(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).write_text("x")
    with serving(tmp_path) as port:
        assert ask(port, f"/{name}?v=3")[1]["content-type"] == kind


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("<p>日本".encode(), "text/html; charset=utf-8"),
        ('<meta charset="gbk"><p>中'.encode("gbk"), "text/html"),
        ("<p>caf\xe9 au lait".encode("latin-1"), "text/html"),
        ("é".encode() * 40_000, "text/html; charset=utf-8"),
        (b"x" + "é".encode() * 40_000, "text/html; charset=utf-8"),
    ],
    ids=["utf-8", "gbk-meta", "latin-1", "long", "character-on-the-edge"],
)
def test_a_charset_is_named_only_where_the_text_is_utf8_and_names_none(
    tmp_path: Path, content: bytes, kind: str
) -> None:
    (tmp_path / "index.html").write_bytes(content)
    with serving(tmp_path) as port:
        assert ask(port, "/")[1]["content-type"] == kind


def test_nothing_may_be_cached(site: Path) -> None:
    with serving(site) as port:
        for target in ("/", "/assets/app.js", "/nope"):
            headers = ask(port, target)[1]
            assert headers["cache-control"] == "no-store"
            assert "last-modified" not in headers


def test_c71_a_deep_link_gets_the_application_and_a_missing_asset_stays_missing(site: Path) -> None:
    with serving(site, spa=True) as port:
        for target in ("/a/b", "/a/b/?q=1", "/users/jane.doe", "/releases/v1.2", "/ü"):
            status, headers, body = navigate(port, quote(target, safe="/?="))
            assert (status, b"home" in body) == (200, True), target
            assert headers["content-type"].startswith("text/html")
        assert ask(port, "/a/b", Accept="text/html")[0] == 200
        assert navigate(port, "/assets/nope.js")[0] == 404
        assert ask(port, "/assets/nope.js", Accept="*/*")[0] == 404
        assert ask(port, "/api/items", Accept="*/*")[0] == 404
        assert ask(port, "/api/items", Accept="text/html", Sec_Fetch_Mode="cors")[0] == 404
        assert navigate(port, "/assets/")[0] == 200


def test_without_spa_a_deep_link_is_not_found(site: Path) -> None:
    with serving(site) as port:
        assert navigate(port, "/a/b")[0] == 404


def test_the_sites_own_404_page_is_shown_with_status_404(site: Path) -> None:
    (site / "404.html").write_text("lost")
    with serving(site) as port:
        assert navigate(port, "/a/b")[::2] == (404, b"lost")
        assert ask(port, "/a.png")[2] != b"lost"


def test_a_folder_is_redirected_to_its_slash_and_never_listed(site: Path) -> None:
    with serving(site) as port:
        status, headers, _ = ask(port, "/docs?x=1")
        assert (status, headers["location"]) == (302, "/docs/?x=1")
        assert ask(port, "/docs/")[2] == b"docs"
        assert ask(port, "/assets/")[0] == 404
        assert b"clip" not in ask(port, "/assets/")[2]
        assert ask(port, "/assets")[0] == 404
        assert ask(port, "/about")[2] == b"about"


def test_no_path_leaves_the_root(site: Path) -> None:
    (site.parent / "secret.txt").write_text("secret")
    (site / "out.txt").symlink_to(site.parent / "secret.txt")
    (site / "up").symlink_to(site.parent)
    (site / "in.js").symlink_to("assets/app.js")
    os.mkfifo(site / "pipe")
    escapes = [
        "/../secret.txt", "/%2e%2e/secret.txt", "/assets/..%2f..%2fsecret.txt", "/out.txt", "/up/secret.txt",
        "/%2fetc/passwd", "//etc/passwd", "/a%00b", "/./index.html", "/pipe", "/" + "x" * 300,
        "/up/site/../secret.txt",
    ]  # fmt: skip
    with serving(site) as port:
        for target in escapes:
            status, _, body = ask(port, target)
            assert (status, b"secret" in body) == (404, False), target
        assert ask(port, "/in.js")[0] == 200


def test_a_base_path_mounts_the_site_below_it(site: Path) -> None:
    with serving(site, base="my app/x", spa=True) as port:
        assert ask(port, "/my%20app/x/assets/app.js")[0] == 200
        assert ask(port, "/assets/app.js")[0] == 404
        assert ask(port, "/my%20app/xy/assets/app.js")[0] == 404
        assert ask(port, "/")[1]["location"] == "/my%20app/x/"
        assert ask(port, "/my%20app/x")[1]["location"] == "/my%20app/x/"
        assert ask(port, "/my%20app/x/docs")[1]["location"] == "/my%20app/x/docs/"
        assert navigate(port, "/my%20app/x/deep/link")[0] == 200
        assert navigate(port, "/deep/link")[0] == 404


def test_another_page_can_be_the_index(tmp_path: Path) -> None:
    (tmp_path / "login.html").write_text("login")
    with serving(tmp_path, index="login.html") as port:
        assert ask(port, "/")[2] == b"login"
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "start.html").write_text("shop")
    with serving(tmp_path, index="shop/start.html", spa=True) as port:
        assert ask(port, "/shop/")[2] == b"shop"
        assert navigate(port, "/shop/item/1")[2] == b"shop"
        assert ask(port, "/")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(site: Path, method: str) -> None:
    with serving(site) as port:
        status, headers, _ = ask(port, "/index.html", method)
        assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_a_client_that_hangs_up_does_no_harm(site: Path) -> None:
    (site / "big.bin").write_bytes(b"x" * 20_000_000)
    with serving(site) as port:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
                raw.sendall(b"GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n")
                raw.recv(1000)
        assert ask(port, "/")[0] == 200


def test_the_access_log_tells_each_answer(site: Path, tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    with serving(site, log=log, spa=True) as port:
        ask(port, "/assets/clip.mp4", Range="bytes=0-9")
        navigate(port, "/deep/link")
        ask(port, "/nope.png")
        ask(port, "/x", "POST")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    told = [(line["path"], line["status"], line.get("bytes"), line.get("fallback")) for line in lines]
    assert told == [
        ("/assets/clip.mp4", 206, 10, False),
        ("/deep/link", 200, (site / "index.html").stat().st_size, True),
        ("/nope.png", 404, 14, False),
        ("/x", 405, None, None),
    ]
    assert lines[0]["range"] == "bytes=0-9"


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="missing"):
        make_site(tmp_path / "missing")
