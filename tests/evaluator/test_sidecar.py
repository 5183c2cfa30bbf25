"""The browser's side-car sees the application through a real Chromium, and neither reaches anything else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Playwright

from bench.errors import InfraError
from bench.strict_json import read_json
from evaluator import sidecar
from evaluator.build import build
from evaluator.recon import _look
from evaluator.serve import ServedApp, serve
from evaluator.serve_plan import learn_plan
from evaluator.sidecar import SidecarBrowser, browser_for, playwright_driver
from sandboxes.engine import engine
from sandboxes.hardening import USER
from sandboxes.mirror import Mirror

pytestmark = [pytest.mark.docker, pytest.mark.browser]

APPS = Path(__file__).parent.parent / "apps"


@pytest.fixture(scope="module")
def driver() -> Iterator[Playwright]:
    with playwright_driver() as started:
        yield started


@pytest.fixture(scope="module")
def spa() -> Iterator[ServedApp]:
    with serve(learn_plan(APPS / "spa"), APPS / "spa", run="test", case="sidecar") as app:
        yield app


@pytest.fixture(scope="module")
def browser(spa: ServedApp, driver: Playwright) -> Iterator[SidecarBrowser]:
    with browser_for(spa, run="test", case="sidecar", driver=driver) as opened:
        yield opened


def test_node_keeps_playwrights_compiled_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDB_CACHE", str(tmp_path))
    monkeypatch.setenv("NODE_COMPILE_CACHE", "taken away again, and put back at the end as it was")
    monkeypatch.delenv("NODE_COMPILE_CACHE")

    def start() -> None:
        with playwright_driver():
            pass

    thread = threading.Thread(target=start)  # the module's own driver has this one
    thread.start()
    thread.join(timeout=60)
    assert any((tmp_path / "node").rglob("*"))


def test_it_says_what_it_looks_with(browser: SidecarBrowser) -> None:
    assert browser.browser.version in browser.facts.chromium
    assert browser.facts.sandbox, browser.facts.sandbox_off_because


def test_c71_a_deep_link_opens_the_application_with_its_modules(browser: SidecarBrowser) -> None:
    with browser.open() as visit:
        assert visit.goto("/a/b?q=1") == 200
        assert visit.page.inner_text("#route") == "route /a/b"
        assert visit.page.evaluate("() => fetch('/assets/nope.js').then((r) => r.status)") == 404
        assert visit.page.evaluate("() => document.querySelector('img').naturalWidth") == 20


def test_c72_a_video_seeks_in_the_browser(browser: SidecarBrowser) -> None:
    with browser.open() as visit:
        visit.goto("/")
        reached = visit.page.evaluate(
            """async () => {
                const video = document.querySelector('video');
                if (video.readyState < 1) await new Promise((done) => video.addEventListener('loadedmetadata', done));
                video.currentTime = 5;
                await new Promise((done) => video.addEventListener('seeked', done));
                return [video.currentTime, video.duration, video.videoWidth];
            }"""
        )
        assert reached == [pytest.approx(5, abs=0.1), pytest.approx(12, abs=0.3), 96]


def test_neither_browser_nor_application_reaches_this_machine(browser: SidecarBrowser, spa: ServedApp) -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        listener.settimeout(0.1)
        port = listener.getsockname()[1]
        hosts = ["172.17.0.1", socket.gethostbyname(socket.gethostname())]
        with browser.browser.new_context() as context:  # without AppBrowser's own refusals: the network alone
            page = context.new_page()
            page.goto(spa.url)
            script = "(url) => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'refused')"
            for host in hosts:
                assert page.evaluate(script, f"http://{host}:{port}/") == "refused"
            assert page.evaluate(script, "http://169.254.169.254/latest/meta-data") == "refused"
        with pytest.raises(TimeoutError):
            listener.accept()


def test_the_side_car_shares_only_the_network_and_is_gone_afterwards(spa: ServedApp, driver: Playwright) -> None:
    with browser_for(spa, run="test", case="alone", driver=driver) as opened:
        (container,) = engine().containers.list(
            ignore_removed=True, filters={"label": ["cdb.role=browser", "cdb.case=alone"]}
        )
        host = container.attrs["HostConfig"]
        assert host["NetworkMode"] == f"container:{spa.container_id}"
        assert (host["PidMode"], host["IpcMode"]) == ("", "private")
        assert opened.answers()
    assert engine().containers.list(ignore_removed=True, all=True, filters={"label": "cdb.case=alone"}) == []


def test_one_driver_serves_one_side_car_after_another_with_clean_state(spa: ServedApp, driver: Playwright) -> None:
    seen = []
    for _ in range(2):
        with browser_for(spa, run="test", case="sidecar", driver=driver) as opened, opened.open() as visit:
            visit.goto("/")
            seen.append(visit.page.evaluate("() => localStorage.getItem('left')"))
            visit.page.evaluate("() => localStorage.setItem('left', 'over')")
    assert seen == [None, None]


@pytest.mark.parametrize("victim", ["container", "chromium"])
def test_a_browser_that_is_lost_is_the_machines_fault(spa: ServedApp, driver: Playwright, victim: str) -> None:
    with (
        pytest.raises(InfraError, match="browser was lost"),
        browser_for(spa, run="test", case="lost", driver=driver) as opened,
    ):
        (container,) = engine().containers.list(ignore_removed=True, filters={"label": "cdb.case=lost"})
        page = opened.browser.new_context().new_page()
        if victim == "container":
            container.kill()
        else:
            container.exec_run(["pkill", "-9", "-f", "chromium|headless_shell"], user=USER)
        page.goto(spa.url)


def test_an_error_of_the_page_is_passed_on_as_it_is(spa: ServedApp, driver: Playwright) -> None:
    with (
        pytest.raises(PlaywrightError, match="no-such-thing"),
        browser_for(spa, run="test", case="sidecar", driver=driver) as opened,
        opened.open() as visit,
    ):
        visit.page.click("#no-such-thing", timeout=100)


def test_a_browser_that_does_not_start_is_the_machines_fault(
    spa: ServedApp, driver: Playwright, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecar, "START_S", 0.0)
    monkeypatch.setattr(sidecar, "LOOK_S", 0.0)
    with pytest.raises(InfraError, match="did not start"), browser_for(spa, run="test", case="slow", driver=driver):
        pass


def test_two_side_cars_work_at_once_from_two_threads(spa: ServedApp) -> None:
    titles: list[str] = []

    def look() -> None:
        with browser_for(spa, run="test", case="sidecar") as opened, opened.open() as visit:
            visit.goto("/")
            titles.append(visit.page.title())

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert titles == ["Player", "Player"]


def test_a_vite_application_is_built_served_and_seen(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, driver: Playwright
) -> None:
    tree, out = APPS / "vite", tmp_path_factory.getbasetemp() / "vite-built"  # test_build may have made it
    with Mirror() as mirror:
        built = build(learn_plan(tree), tree, out, run="test", case="vite", mirror=mirror, logs=tmp_path / "logs")
    with (
        serve(built.plan, built.served, run="test", case="vite") as app,
        browser_for(app, run="test", case="vite", driver=driver) as opened,
        opened.open() as visit,
    ):
        assert visit.goto("/somewhere/deep") == 200
        assert visit.page.inner_text("h1") == "Page /somewhere/deep"
        visit.page.click("button")
        visit.page.reload()
        assert visit.page.inner_text("h1") == "About"
        assert visit.page.evaluate("() => fetch('/_attachments/note.txt').then((r) => r.status)") == 200
        assert visit.faults == []


def test_a_node_server_on_ipv6_alone_is_seen(tmp_path: Path, driver: Playwright) -> None:
    import shutil

    tree = tmp_path / "app"
    shutil.copytree(APPS / "servers", tree)
    (tree / "trick.txt").write_text("ipv6-only")
    built = build(
        learn_plan(tree), tree, tmp_path / "out", run="test", case="v6", mirror=None, logs=tmp_path / "logs"
    )
    with (
        serve(built.plan, built.served, run="test", case="v6", ready_s=20) as app,
        browser_for(app, run="test", case="v6", driver=driver) as opened,
        opened.open() as visit,
    ):
        visit.goto("/")
        assert visit.page.inner_text("h1") == "served by ipv6-only"


@pytest.mark.parametrize("source", ["http://[bad", "webpack-internal:///./src/app.js"])
def test_a_page_that_names_no_address_as_its_source_keeps_its_errors_and_its_browser(
    browser: SidecarBrowser, source: str
) -> None:
    with browser.open() as visit:
        visit.goto("/")
        visit.page.evaluate("(source) => eval(`console.error('broken')\\n//# sourceURL=${source}`)", source)
        visit.settle()
        assert visit.page.evaluate("1 + 1") == 2
        assert "error: broken" in visit.faults
    assert browser.answers()


def test_a_page_without_an_accessibility_tree_is_pictured_and_its_console_kept(
    driver: Playwright, tmp_path: Path
) -> None:
    (site := tmp_path / "site").mkdir()
    frames = "<frameset cols='50%,50%'><frame src='a.html'><frame src='a.html'></frameset>"
    (site / "index.html").write_text(f"<script>console.log('here')</script>{frames}")
    (site / "a.html").write_text("<h1>a</h1>")
    with (
        serve(learn_plan(site), site, run="test", case="frames") as app,
        browser_for(app, run="test", case="frames", driver=driver) as opened,
    ):
        files, hung = _look(opened, "submission", tmp_path / "look")
    facts = read_json(tmp_path / "look/submission.json")
    assert not hung
    assert [path.name for path in files if path.suffix == ".jpg"] == [
        "submission-desktop.jpg",
        "submission-phone.jpg",
    ]
    assert "no accessibility snapshot" in facts["error"]
    assert "log: here" in facts["console"]
