"""The npm mirror: read only, cached, checked, logged, and honest about whose fault a failure is."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_registry import Registry, running

from bench.errors import InfraError
from sandboxes import mirror_upstream
from sandboxes.mirror import SOCKET, Mirror
from sandboxes.mirror_app import Ask, _with_placeholders, parse
from sandboxes.mirror_upstream import Missing

USUAL_PATH = os.environ["PATH"]
REFUSED = [
    ("PUT", "/one"),
    ("POST", "/-/npm/v1/security/advisories/bulk"),
    ("POST", "/-/npm/v1/security/audits/quick"),
    ("DELETE", "/one/-rev/1"),
    ("HEAD", "/one"),
    ("GET", "/-/v1/search?text=x"),
    ("GET", "/-/whoami"),
    ("PUT", "/-/user/org.couchdb.user:x"),
    ("GET", "/"),
    ("GET", "/one/../../etc/passwd"),
    ("GET", "/one/-/../../x.tgz"),
    ("GET", "/one/-/..%2f..%2fx.tgz"),
    ("GET", "/.hidden"),
]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("127.0.0.1:4873", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(str(self._path))


def ask(mirror: Mirror, path: str, method: str = "GET", accept: str = "*/*") -> tuple[int, str, bytes]:
    """Status, `x-cdb-mirror`, body."""
    connection = UnixConnection(mirror.mount().source / SOCKET)
    try:
        connection.request(method, path, body=b"{}" if method != "GET" else None, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("x-cdb-mirror", ""), answer.read()
    finally:
        connection.close()


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PATH", "/nowhere")  # no npm, whose configuration takes 0.3 s to read


@pytest.fixture
def registry() -> Iterator[Registry]:
    with running(Registry()) as served:
        served.add("one", "1.0.0")
        served.add("one", "1.1.0")
        served.add("@scope/two", "2.0.0")
        yield served


@pytest.fixture
def mirror(registry: Registry, tmp_path: Path) -> Iterator[Mirror]:
    with Mirror(cache=tmp_path / "cache", log=tmp_path / "mirror.jsonl", upstream=registry.address) as started:
        yield started


def test_documents_name_the_mirror_as_the_place_of_tarballs(mirror: Mirror) -> None:
    status, _, body = ask(mirror, "/~build-1/one")
    versions = json.loads(body)["versions"]
    assert status == 200
    assert versions["1.1.0"]["dist"]["tarball"] == "http://127.0.0.1:4873/~build-1/one/-/one-1.1.0.tgz"
    assert versions["1.1.0"]["dist"]["integrity"].startswith("sha512-")
    scoped = json.loads(ask(mirror, "/@scope%2ftwo")[2])["versions"]["2.0.0"]
    assert scoped["dist"]["tarball"] == "http://127.0.0.1:4873/@scope/two/-/two-2.0.0.tgz"
    assert json.loads(ask(mirror, "/one/1.0.0")[2])["version"] == "1.0.0"


def test_tarballs_come_unchanged_and_only_once_from_the_registry(mirror: Mirror, registry: Registry) -> None:
    content = registry.packages["@scope/two"]["2.0.0"]
    for path in (
        "/@scope/two/-/two-2.0.0.tgz",
        "/~x/@scope/two/-/two-2.0.0.tgz",
        "/@scope/two/download/two-2.0.0.tgz",
    ):
        assert ask(mirror, path) == (200, "", content)
    assert registry.asked.count("/@scope/two/-/two-2.0.0.tgz") == 1


def test_a_full_cache_works_without_the_registry(registry: Registry, tmp_path: Path) -> None:
    for fresh_s, cache_word in ((0.0, "stale"), (3600.0, "hit")):
        with Mirror(cache=tmp_path, upstream=registry.address, fresh_s=fresh_s) as mirror:
            registry.answer_with = None
            ask(mirror, "/one")
            tarball = ask(mirror, "/one/-/one-1.0.0.tgz")[2]
            registry.answer_with = 503
            assert ask(mirror, "/~c/one")[0] == 200
            assert ask(mirror, "/~c/one/-/one-1.0.0.tgz") == (200, "", tarball)
            assert [entry.cache for entry in mirror.entries("c")] == [cache_word, "hit"]


def test_c76_a_registry_out_of_order_is_an_outage(mirror: Mirror, registry: Registry) -> None:
    for status in (503, 401):
        registry.answer_with = status
        for path in (f"/~c{status}/one", f"/~c{status}/one/-/one-1.0.0.tgz"):
            assert ask(mirror, path)[:2] == (502, "outage")
        entries = mirror.entries(f"c{status}")
        assert {entry.marker for entry in entries} == {"outage"}
        assert str(status) in entries[0].note


def test_c76_a_registry_that_is_not_there_is_an_outage(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with Mirror(cache=tmp_path, upstream=f"http://127.0.0.1:{closed.getsockname()[1]}") as mirror:
            assert ask(mirror, "/one")[:2] == (502, "outage")


def test_c76_an_invented_package_is_missing_and_not_an_outage(mirror: Mirror) -> None:
    for path in ("/~c/no-such-package", "/~c/one/-/one-9.9.9.tgz", "/~c/one/9.9.9"):
        assert ask(mirror, path)[:2] == (404, "missing")
    assert [entry.package for entry in mirror.entries("c")] == ["no-such-package", "one", "one"]


def test_a_short_outage_is_not_seen(mirror: Mirror, registry: Registry) -> None:
    def mend(path: str) -> tuple[int, bytes]:
        registry.respond = usual  # type: ignore[method-assign]
        return 503, b""

    usual, registry.respond = registry.respond, mend  # type: ignore[method-assign]
    assert ask(mirror, "/one")[0] == 200


def test_a_page_that_is_no_document_is_an_outage(mirror: Mirror, registry: Registry) -> None:
    registry.respond = lambda path: (200, b"<html>please log in")  # type: ignore[method-assign]
    assert ask(mirror, "/one")[:2] == (502, "outage")


def test_a_tarball_that_differs_from_its_listed_digest_is_never_served(mirror: Mirror, registry: Registry) -> None:
    registry.spoil_tarballs = True
    status, marker, body = ask(mirror, "/one/-/one-1.0.0.tgz")
    assert (status, marker) == (502, "outage")
    assert b"digest" in body
    registry.spoil_tarballs = False
    assert ask(mirror, "/one/-/one-1.0.0.tgz")[0] == 200


def test_a_tarball_damaged_on_disk_is_fetched_again(mirror: Mirror, registry: Registry, tmp_path: Path) -> None:
    content = ask(mirror, "/one/-/one-1.0.0.tgz")[2]
    (blob,) = [path for path in (tmp_path / "cache" / "blobs").rglob("*") if path.is_file()]
    blob.write_bytes(b"poison")
    assert ask(mirror, "/one/-/one-1.0.0.tgz")[2] == content
    assert registry.asked.count("/one/-/one-1.0.0.tgz") == 2


def test_a_tarball_elsewhere_on_the_same_registry_is_found(mirror: Mirror, registry: Registry) -> None:
    registry.tarball_place = "files"
    assert ask(mirror, "/one/-/one-1.0.0.tgz")[2] == registry.packages["one"]["1.0.0"]


def test_a_document_cannot_send_the_mirror_to_another_host(registry: Registry, tmp_path: Path) -> None:
    with running(Registry()) as other, Mirror(cache=tmp_path, upstream=registry.address) as mirror:
        usual = registry.respond
        registry.tarball_place = "files"
        registry.respond = lambda path: (  # type: ignore[method-assign]
            (404, b"")
            if path.endswith(".tgz")
            else (200, usual(path)[1].replace(registry.address.encode(), other.address.encode()))
        )
        assert ask(mirror, "/one/-/one-1.0.0.tgz")[0] == 404
        assert other.asked == []


def test_an_unchanged_document_is_confirmed_by_its_entity_tag(registry: Registry, tmp_path: Path) -> None:
    registry.etag = '"v1"'
    with Mirror(cache=tmp_path, upstream=registry.address, fresh_s=0) as mirror:
        first = ask(mirror, "/one")[2]
        assert ask(mirror, "/one")[2] == first
    assert registry.headers[1]["If-None-Match"] == '"v1"'


def test_everything_but_reading_packages_is_refused(mirror: Mirror, registry: Registry) -> None:
    for number, (method, path) in enumerate(REFUSED):
        status, marker, _ = ask(mirror, f"/~c{number}{path}", method)
        assert (status, marker) == (403, "refused"), path
        assert mirror.entries(f"c{number}")[0].kind == "refused"
    assert registry.asked == []


def test_every_request_is_logged_with_its_caller(mirror: Mirror, registry: Registry) -> None:
    ask(mirror, "/~c/one")
    ask(mirror, "/~c/one")
    ask(mirror, "/~other/one")
    first, second = mirror.entries("c")
    assert (first.kind, first.package, first.status, first.cache) == ("package", "one", 200, "miss")
    assert (second.cache, second.size_bytes > 100) == ("hit", True)
    assert len(mirror.entries("other")) == 1


def test_many_callers_at_once_cost_one_request(mirror: Mirror, registry: Registry) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(mirror, "/one/-/one-1.0.0.tgz")[2], range(16)))
    assert set(answers) == {registry.packages["one"]["1.0.0"]}
    assert registry.asked.count("/one/-/one-1.0.0.tgz") == 1


def test_abbreviated_and_full_documents_are_kept_apart(mirror: Mirror, registry: Registry) -> None:
    ask(mirror, "/one", accept="application/vnd.npm.install-v1+json; q=1.0")
    ask(mirror, "/one", accept="application/json")
    assert registry.asked == ["/one", "/one"]
    assert "install-v1" in registry.headers[0]["Accept"]
    assert "install-v1" not in registry.headers[1]["Accept"]


def test_the_process_starts_with_the_first_mount_and_ends_with_the_block(tmp_path: Path) -> None:
    with Mirror(cache=tmp_path, upstream="http://127.0.0.1:9") as mirror:
        assert mirror._process is None
        mount = mirror.mount()
        process = mirror._process
        assert process is not None
        assert mount.read_only
        assert len(os.fsencode(mount.source / SOCKET)) < 100
        assert stat.S_IMODE(mount.source.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE((mount.source / SOCKET).stat().st_mode) == 0o666
        assert ask(mirror, "/-/ping")[0] == 200
    assert process.poll() is not None
    assert not mount.source.exists()


def test_a_mirror_that_died_is_started_again(mirror: Mirror) -> None:
    mirror.mount()
    first = mirror._process
    assert first is not None
    mirror.check()
    first.kill()
    first.wait(5)
    with pytest.raises(InfraError, match="ended before its time"):
        mirror.check()
    assert ask(mirror, "/one")[0] == 200


def test_the_process_ends_when_its_parent_is_gone(mirror: Mirror) -> None:
    mirror.mount()
    process = mirror._process
    assert process is not None and process.stdin is not None
    process.stdin.close()  # what the kernel does when the parent dies
    assert process.wait(5) == 0


def test_a_long_temporary_folder_still_gives_a_short_socket(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with Mirror(cache=tmp_path, upstream=registry.address) as mirror:
        assert ask(mirror, "/one")[0] == 200


def test_a_machine_without_a_registry_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDB_NPM_REGISTRY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with Mirror(cache=tmp_path) as mirror, pytest.raises(InfraError, match="CDB_NPM_REGISTRY"):
        mirror.mount()


def test_the_machines_npm_configuration_names_registry_token_and_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", USUAL_PATH)
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed on this machine")
    npmrc = tmp_path / "npmrc"
    npmrc.write_text(
        "registry=https://npm.example/team/\n//npm.example/:_authToken=wide\n"
        "//npm.example/team/:_authToken=${TEAM_TOKEN}\nhttps-proxy=http://proxy.example:3128/\n"
    )
    monkeypatch.setenv("npm_config_userconfig", str(npmrc))
    monkeypatch.setenv("TEAM_TOKEN", "narrow")
    for name in ("CDB_NPM_REGISTRY", "HTTPS_PROXY", "https_proxy", "npm_config_registry"):
        monkeypatch.delenv(name, raising=False)
    found = mirror_upstream.settings()
    assert found.address == "https://npm.example/team"
    assert found.headers == {"Authorization": "Bearer narrow"}
    assert "narrow" not in repr(found)
    assert os.environ["HTTPS_PROXY"] == "http://proxy.example:3128/"
    del os.environ["HTTPS_PROXY"]  # set by the call, so not ours to restore


def test_paths_are_read_as_npm_writes_them() -> None:
    assert parse("GET", "/~a%20b/@s%2fp") == Ask("a b", "package", "@s/p")
    assert parse("GET", "/@s/p/-/p-1.0.0-beta.1+x.tgz") == Ask("", "tarball", "@s/p", "p-1.0.0-beta.1+x.tgz")
    assert parse("GET", "/JSONStream/1.3.5") == Ask("", "version", "JSONStream", "1.3.5")
    assert parse("GET", "/~c/-/ping") == Ask("c", "ping")
    assert parse("GET", "/~c/~c/one/-/one-1.0.0.tgz") == Ask("c", "tarball", "one", "one-1.0.0.tgz")


def test_a_package_that_was_unpublished_is_missing_and_no_outage() -> None:
    with pytest.raises(Missing, match="left-pad was unpublished"):
        _with_placeholders("left-pad", b'{"name": "left-pad", "time": {"unpublished": {"time": "2026-01-01"}}}')
