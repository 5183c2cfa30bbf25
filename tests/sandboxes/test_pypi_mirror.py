"""The Python side of the package mirror: read only, both forms of the index, checked, cached, logged."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_index import JSON, Index, metadata, serving

from bench.errors import InfraError
from sandboxes import machine, pypi_settings
from sandboxes.mirror import PYPI_SOCKET, Mirror
from sandboxes.pypi_app import Ask, parse
from sandboxes.pypi_pages import HTML, NoPage, chosen_form, read_page

USUAL_PATH = os.environ["PATH"]
WHEEL = "one-1.0.0-py3-none-any.whl"
REFUSED = [
    ("POST", "/simple/one/"),
    ("PUT", "/simple/one/"),
    ("HEAD", "/simple/one/"),
    ("DELETE", f"/files/one/{WHEEL}"),
    ("GET", "/"),
    ("GET", "/simple/"),
    ("GET", "/simple"),
    ("GET", "/pypi/one/json"),
    ("GET", "/legacy/"),
    ("GET", "/search?q=x"),
    ("GET", "/simple/one/1.0.0"),
    ("GET", "/simple/one/../../etc/passwd"),
    ("GET", "/simple/..%2f..%2fx/"),
    ("GET", "/files/one/..%2fx.whl"),
    ("GET", "/files/one/readme.txt"),
    ("GET", "/files/one/.whl"),
    ("GET", "/simple/-one/"),
]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("127.0.0.1:3141", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(str(self._path))


def ask(mirror: Mirror, path: str, method: str = "GET", accept: str = "*/*") -> tuple[int, str, bytes]:
    """Status, `x-cdb-mirror`, body."""
    connection = UnixConnection(mirror.mount().source / PYPI_SOCKET)
    try:
        connection.request(method, path, body=b"{}" if method != "GET" else None, headers={"Accept": accept})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("x-cdb-mirror", ""), answer.read()
    finally:
        connection.close()


def pages(mirror: Mirror, path: str = "/simple/one/") -> list[dict[str, object]]:
    """The files of a page, by its JSON."""
    status, _, body = ask(mirror, path, accept=JSON)
    assert status == 200
    found: list[dict[str, object]] = json.loads(body)["files"]
    return found


@pytest.fixture(scope="module", autouse=True)
def direct() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("no_proxy", "127.0.0.1")
        patch.setenv("PATH", "/nowhere")  # neither npm nor pip, whose configurations take a while to read
        yield


@pytest.fixture(scope="module")
def served() -> Iterator[Index]:
    with serving(Index()) as index:
        yield index


@pytest.fixture(scope="module")
def running(served: Index, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """One process for the suite; each test has projects of its own, so that nothing is kept from another."""
    with Mirror(
        cache=tmp_path_factory.mktemp("cache"), upstream="http://127.0.0.1:9", pypi=True,
        pypi_upstream=f"{served.address}/simple",
    ) as mirror:  # fmt: skip
        yield mirror


@pytest.fixture
def index(served: Index) -> Index:
    served.answer_with, served.page, served.spoil, served.elsewhere, served.speaks_json = None, None, False, "", True
    served.files.clear()
    served.asked.clear()
    served.headers.clear()
    return served


@pytest.fixture
def mirror(running: Mirror) -> Mirror:
    return running


def test_a_page_comes_in_both_forms_with_links_to_the_mirror(mirror: Mirror, index: Index) -> None:
    content = index.add("both", "1.0.0")
    (one,) = pages(mirror, "/~c/simple/both/")
    file = "both-1.0.0-py3-none-any.whl"
    digest = hashlib.sha256(content).hexdigest()
    assert one["url"] == f"http://127.0.0.1:3141/~c/files/both/{file}"
    assert one["hashes"] == {"sha256": digest}
    assert (one["requires-python"], one["upload-time"]) == (">=3.8", "2026-01-01T00:00:00Z")
    told = ask(mirror, "/simple/both/", accept="text/html")[2].decode()
    assert f'href="http://127.0.0.1:3141/files/both/{file}#sha256={digest}"' in told
    assert 'data-requires-python="&gt;=3.8"' in told
    assert f'data-core-metadata="sha256={hashlib.sha256(metadata(file)).hexdigest()}"' in told
    assert index.address not in told
    assert read_page(told.encode(), "text/html", "http://127.0.0.1:3141/simple/both/")[0]["hashes"] == one["hashes"]


def test_an_index_that_speaks_html_only_is_given_as_json_too(mirror: Mirror, index: Index) -> None:
    index.speaks_json = False
    content = index.add("old", "2.0.0")
    (one,) = pages(mirror, "/simple/old/")
    assert one["hashes"] == {"sha256": hashlib.sha256(content).hexdigest()}
    assert (one["requires-python"], one["yanked"]) == (">=3.8", 'too "old"')
    assert ask(mirror, "/files/old/old-2.0.0-py3-none-any.whl") == (200, "", content)


def test_files_come_unchanged_and_once_from_where_the_index_says(mirror: Mirror, index: Index) -> None:
    with serving(Index()) as far:
        content = far.add("far", "1.0.0")
        index.add("far", "1.0.0")
        index.elsewhere = far.address
        for path in ("/files/far/far-1.0.0-py3-none-any.whl", "/~x/files/Far/far-1.0.0-py3-none-any.whl"):
            assert ask(mirror, path) == (200, "", content)
        assert far.asked == ["/packages/far/far-1.0.0-py3-none-any.whl"]
        assert "/packages" not in "".join(index.asked)


def test_separate_metadata_is_given_and_checked(mirror: Mirror, index: Index) -> None:
    index.add("meta", "1.0.0")
    file = "meta-1.0.0-py3-none-any.whl"
    assert ask(mirror, f"/files/meta/{file}.metadata") == (200, "", metadata(file))
    index.files["meta"] = {}
    assert ask(mirror, "/files/meta/meta-9.0.0-py3-none-any.whl.metadata")[:2] == (404, "missing")


def test_a_file_that_differs_from_its_listed_digest_is_never_served(mirror: Mirror, index: Index) -> None:
    index.add("spoilt", "1.0.0")
    index.spoil = True
    status, marker, body = ask(mirror, "/files/spoilt/spoilt-1.0.0-py3-none-any.whl")
    assert (status, marker) == (502, "outage") and b"digest" in body
    index.spoil = False
    assert ask(mirror, "/files/spoilt/spoilt-1.0.0-py3-none-any.whl")[0] == 200


def test_names_are_normalized_and_asked_once_by_many(mirror: Mirror, index: Index) -> None:
    index.files["some-thing"] = {}
    content = index.files["some-thing"]["some_thing-1.0-py3-none-any.whl"] = b"x" * 100_000
    with ThreadPoolExecutor(8) as pool:
        paths = ["/files/Some_Thing/some_thing-1.0-py3-none-any.whl"] * 8
        answers = list(pool.map(lambda path: ask(mirror, path)[2], paths))
    assert set(answers) == {content}
    assert index.asked == ["/simple/some-thing/", "/packages/some-thing/some_thing-1.0-py3-none-any.whl"]


def test_c76_what_is_not_there_is_missing_and_an_index_out_of_order_an_outage(mirror: Mirror, index: Index) -> None:
    index.add("here", "1.0.0")
    for path in ("/~m/simple/no-such-thing/", "/~m/files/here/here-9.9.9-py3-none-any.whl"):
        assert ask(mirror, path)[:2] == (404, "missing")
    index.answer_with = 401
    assert ask(mirror, "/~o/simple/other/")[:2] == (502, "outage")
    index.answer_with = None
    index.files["login"] = {}
    index.page = b"<html>please log in</html>"
    assert ask(mirror, "/~o/simple/login/")[:2] == (502, "outage")
    assert [entry.marker for entry in mirror.entries("o")] == ["outage", "outage"]


def test_everything_but_reading_projects_is_refused(mirror: Mirror, index: Index) -> None:
    for number, (method, path) in enumerate(REFUSED):
        status, marker, _ = ask(mirror, f"/~r{number}{path}", method)
        assert (status, marker) == (403, "refused"), path
        assert mirror.entries(f"r{number}")[0].kind == "refused"
    assert index.asked == []


def test_every_request_is_logged_with_its_caller_and_registry(mirror: Mirror, index: Index) -> None:
    content = index.add("logged", "1.0.0")
    ask(mirror, "/~l/simple/logged/")
    ask(mirror, "/~l/files/logged/logged-1.0.0-py3-none-any.whl")
    page, file = mirror.entries("l")
    assert (page.registry, page.kind, page.package, page.cache) == ("pypi", "project", "logged", "miss")
    assert (file.kind, file.item, file.size_bytes) == ("file", "logged-1.0.0-py3-none-any.whl", len(content))


def test_a_full_cache_works_without_the_index_and_is_kept_by_sha256(index: Index, tmp_path: Path) -> None:
    content = index.add("kept", "1.0.0")
    path = "/~c/files/kept/kept-1.0.0-py3-none-any.whl"
    told = {"cache": tmp_path, "upstream": "http://127.0.0.1:9", "pypi": True}
    with Mirror(**told, pypi_upstream=f"{index.address}/simple", fresh_s=0) as mirror:
        assert ask(mirror, path)[2] == content
        digest = hashlib.sha256(content).hexdigest()
        blob = tmp_path / "pypi" / "blobs" / digest[:2] / digest
        assert blob.read_bytes() == content
        index.answer_with = 401
        assert ask(mirror, path) == (200, "", content)
        assert ask(mirror, "/~c/simple/kept/")[0] == 200
        assert [entry.cache for entry in mirror.entries("c")] == ["miss", "hit", "stale"]
        blob.write_bytes(b"poison")
        assert ask(mirror, path)[:2] == (502, "outage")
        index.answer_with = None
        assert ask(mirror, path) == (200, "", content)


def test_a_private_authority_and_a_password_are_those_of_pips_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    pem = tmp_path / "own.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=private", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem, "-out", tmp_path / "ca.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    pem.write_bytes(pem.read_bytes() + (tmp_path / "ca.pem").read_bytes())
    with serving(Index(), pem) as index:
        content = index.add("secret", "1.0.0")
        address = index.address.replace("https://", "https://user:p%40ss@") + "/simple/"
        _pip(tmp_path, monkeypatch, **{"global.index-url": address, "global.cert": str(tmp_path / "ca.pem")})
        told = pypi_settings.settings()
        assert "p@ss" not in repr(told) and "user" not in told.address
        with Mirror(cache=tmp_path / "cache", upstream="http://127.0.0.1:9", pypi=True) as mirror:
            assert ask(mirror, "/files/secret/secret-1.0.0-py3-none-any.whl") == (200, "", content)
            log = mirror._log
            assert log and b"p@ss" not in log.read_bytes()
        assert index.headers[0]["Authorization"] == "Basic dXNlcjpwQHNz"


def test_the_machines_proxy_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Index()) as proxy:
        content = proxy.add("one", "1.0.0")
        proxy.elsewhere = "http://index.test"
        for name in ("NO_PROXY", "no_proxy", "http_proxy", "HTTP_PROXY"):
            monkeypatch.delenv(name, raising=False)
        _pip(tmp_path, monkeypatch, **{"global.index-url": "http://index.test/simple", "global.proxy": proxy.address})
        told = {"cache": tmp_path / "cache", "upstream": "http://127.0.0.1:9", "pypi": True}
        with Mirror(**told) as mirror:
            assert ask(mirror, f"/files/one/{WHEEL}") == (200, "", content)
        assert proxy.asked == ["http://index.test/simple/one/", f"http://index.test/packages/one/{WHEEL}"]


def _pip(folder: Path, monkeypatch: pytest.MonkeyPatch, **told: str) -> None:
    """A pip on the PATH that tells this configuration."""
    program = folder / "bin" / "pip3"
    program.parent.mkdir(exist_ok=True)
    lines = "".join(f"{name}='{value}'\n" for name, value in told.items())
    (folder / "told").write_text(lines)
    program.write_text(f'#!/bin/sh\n[ "$*" = "config list" ] && cat {folder}/told\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")
    for name in ("CDB_PIP_INDEX", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)


def test_the_environment_goes_before_pips_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _pip(tmp_path, monkeypatch, **{
        "global.index-url": "http://a.test/simple", ":env:.index-url": "http://b.test/simple",
        "global.trusted-host": "b.test",
    })  # fmt: skip
    told = pypi_settings.settings()
    assert (told.address, told.verify) == ("http://b.test/simple", False)
    monkeypatch.setenv("CDB_PIP_INDEX", "http://c.test/simple/")
    assert pypi_settings.settings().address == "http://c.test/simple"


def test_a_machine_without_an_index_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDB_PIP_INDEX", raising=False)
    with pytest.raises(InfraError, match="CDB_PIP_INDEX"):
        pypi_settings.settings()


def test_pip_itself_says_which_index_is_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", USUAL_PATH)
    if shutil.which("pip3") is None:
        pytest.skip("pip is not installed on this machine")
    assert machine.pip_default_index().startswith("https://")


def test_paths_are_read_as_installers_write_them() -> None:
    assert parse("GET", "/~a%20b/simple/Zope.Interface/") == Ask("a b", "project", "zope-interface")
    assert parse("GET", "/files/x/x-1.0%2Bcpu-py3-none-any.whl") == Ask("", "file", "x", "x-1.0+cpu-py3-none-any.whl")
    assert parse("GET", "/files/x/x-1.0.tar.gz.metadata").kind == "metadata"
    assert parse("GET", f"/simple/{'x' * 300}/").kind == "refused"


def test_the_form_is_the_one_that_is_liked_best() -> None:
    assert chosen_form(f"{JSON}, {HTML}; q=0.1, text/html; q=0.01") == JSON
    assert (
        chosen_form("text/html") == chosen_form("*/*") == chosen_form("") == chosen_form(f"{JSON};q=0") == "text/html"
    )
    assert chosen_form(f"{JSON};q=0.1, {HTML}") == HTML
    assert chosen_form("application/vnd.pypi.simple.latest+json") == JSON


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"files": [1]}', b'{"files": [{"filename": "x"}]}', b"\xff"])
def test_what_is_no_page_is_told_from_an_empty_one(body: bytes) -> None:
    with pytest.raises(NoPage):
        read_page(body, JSON, "https://index.test/simple/x/")
    assert read_page(b'{"files": []}', JSON, "https://index.test/simple/x/") == []
    assert read_page(b'<meta name="pypi:repository-version" content="1.0">', "text/html", "http://i.test/x/") == []


def test_links_that_lead_down_to_plain_http_or_to_no_file_are_left_out() -> None:
    page = b"""<base href="https://files.test/a/"><a href="b/x-1.tar.gz">x</a><a href="http://files.test/x-2.tar.gz">x</a>
    <a href="file:///etc/x-3.tar.gz">x</a><a href="/help">help</a><a href="../%78-4.zip#md5=ab">x</a>"""
    found = read_page(page, "text/html", "https://index.test/simple/x/")
    assert [(one["url"], one["hashes"]) for one in found] == [
        ("https://files.test/a/b/x-1.tar.gz", {}), ("https://files.test/%78-4.zip", {"md5": "ab"}),
    ]  # fmt: skip
