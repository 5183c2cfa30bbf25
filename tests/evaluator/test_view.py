"""`cdb view`: who may ask for what, and that the page follows a run without losing the reader's place."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from test_report_in_browser import browser as browser  # noqa: PLC0414
from test_report_results import make_results

from bench.errors import UsageError
from evaluator.view import LiveReport, find_results, serve
from evaluator.view.server import Server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose judging of one entry has come half way."""
    root = tmp_path_factory.mktemp("view")
    folder = make_results(root / "run/gold", "gold")
    journal = folder / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    (root / "rest").write_text("".join(lines[4:]))
    journal.write_text("".join(lines[:4]))
    (root / "run/run.json").write_text(json.dumps({"entries": [{"name": "gold", "results": ["gold"]}]}))
    return root / "run"


@pytest.fixture(scope="module")
def live(run: Path) -> LiveReport:
    return LiveReport([run], run.parent / "pages", title=None, say=print)


@pytest.fixture(scope="module")
def server(live: LiveReport) -> Iterator[Server]:
    with serve(live.files, live.home) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(timeout=10)


def ask(server: Server, path: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """(status, headers in lower case, body); `path` goes out as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest(method, path, skip_host="host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return found


def test_it_listens_on_the_loopback_address_only_and_its_token_is_long(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32 and server.token in server.address


def test_the_page_is_served_with_headers_that_keep_others_out(server: Server) -> None:
    status, headers, body = ask(server, f"/{server.token}/")
    assert status == 200 and body.startswith(b"\n<!doctype html>"[body[:1] != b"\n" :])
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    status, headers, _ = ask(server, f"/{server.token}/index-files/plots/verdicts.svg")
    assert status == 200 and "sandbox" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/", "/index.html", "/TOKEN", "/wrong/", "/wrong/index.html", "/TOKENx/", "/TOKEN/../TOKEN/",
        "/TOKEN/../../../../etc/passwd", "/TOKEN/%2e%2e/%2e%2e/etc/passwd", "/TOKEN//etc/passwd", "/TOKEN/..%2frun.json",
        "/TOKEN/index-files", "/TOKEN/index-files/", "/TOKEN/index-files/cases/", "/TOKEN/index-files/../../run/run.json",
        "/TOKEN/index-files/site.json", "/TOKEN/index-files\\cases", "/TOKEN/%00", "/TOKEN/index.html%00.txt", "/TOKEN/.",
    ],
)  # fmt: skip
def test_whatever_is_not_a_page_of_the_report_is_not_there(server: Server, path: str) -> None:
    status, _, body = ask(server, path.replace("TOKEN", server.token))
    assert (status, body) == (404, b"404 Not Found\n")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "[::1]:PORT", ""])
def test_another_hosts_name_is_refused(server: Server, host: str) -> None:
    assert ask(server, f"/{server.token}/", host=host.replace("PORT", str(server.port)))[0] == 421
    assert ask(server, f"/{server.token}/", host=f"localhost:{server.port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH"])
def test_only_get_and_head_are_answered(server: Server, method: str) -> None:
    status, headers, _ = ask(server, f"/{server.token}/", method=method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    status, headers, body = ask(server, f"/{server.token}/", method="HEAD")
    assert status == 200 and body == b"" and int(headers["content-length"]) > 1000


def test_a_recording_can_be_asked_for_in_parts(server: Server, live: LiveReport) -> None:
    name = next(name for name in live.files() if name.endswith(".mp3"))
    path, whole = f"/{server.token}/{name}", live.files()[name].read_bytes()
    assert ask(server, path, range="bytes=1-2")[::2] == (206, whole[1:3])
    assert ask(server, path, range="bytes=-1")[::2] == (206, whole[-1:])
    assert ask(server, path, range="bytes=2-")[1]["content-range"] == f"bytes 2-{len(whole) - 1}/{len(whole)}"
    assert ask(server, path, range="bytes=99-")[0] == 416
    assert ask(server, path, range="lines=1")[::2] == (200, whole)
    tag = ask(server, path)[1]["etag"]
    assert ask(server, path, if_none_match=tag)[0] == 304


def test_results_are_found_in_a_run_and_a_folder_without_any_is_refused(run: Path, tmp_path: Path) -> None:
    assert find_results([run]) == [run / "gold"]
    assert find_results([run / "gold", run]) == [run / "gold"]
    assert find_results([run.parent / "run"]) == [run / "gold"]
    with pytest.raises(UsageError, match="holds no results yet"):
        find_results([tmp_path])


def test_a_run_that_has_judged_nothing_yet_is_waited_for(run: Path, tmp_path: Path) -> None:
    plan = {"entries": [{"name": "gold", "results": ["gold"]}]}
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text(json.dumps(plan))
    live = LiveReport([tmp_path / "run"], tmp_path / "out", title=None, say=print)
    assert "Nothing is judged yet" in live.files()["index.html"].read_text()
    status = {
        "holder": "1 on here",
        "beat": time.time(),
        "done": 2,
        "of": 9,
        "busy": [{"case": "a", "phase": "trial"}],
    }
    (tmp_path / "run/status.json").write_text(json.dumps(status))
    assert live.refresh() is True
    assert "2 of 9 cases are done: a (trial)" in live.files()["index.html"].read_text()
    shutil.copytree(run / "gold", tmp_path / "run/gold")
    assert live.refresh() is True
    assert "Verdicts" in live.files()["index.html"].read_text()


@pytest.mark.browser
def test_the_page_follows_the_run_and_keeps_the_readers_place(
    browser: Browser, server: Server, live: LiveReport, run: Path
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 400})
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(server.address)
    page.locator("#filter").fill("book")
    page.evaluate("scrollTo(0, 500)")
    page.evaluate("window.__same = true")
    before = page.evaluate("scrollY")
    assert page.locator(".c.w-pass").count() < 10
    with (run / "gold/journal.jsonl").open("a") as journal:
        journal.write((run.parent / "rest").read_text())
    assert live.refresh() is True
    expect(page.locator(".strip .c.w-pass")).to_have_count(25, timeout=15_000)
    assert page.evaluate("window.__same") is True  # the page was not loaded again
    assert page.locator("#filter").input_value() == "book" and page.evaluate("scrollY") == before
    assert page.locator(".heat tbody tr:visible").count() == 1
    assert live.refresh() is False
    assert complaints == []
    context.close()
