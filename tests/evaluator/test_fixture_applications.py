"""The fixture applications are really installed, built without network, served, and seen by a browser."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Playwright

from evaluator.browser import AppPage
from evaluator.build import BuildResult, build
from evaluator.serve import serve
from evaluator.serve_plan import ServePlan, learn_plan
from evaluator.sidecar import browser_for, playwright_driver
from sandboxes.mirror import Mirror

pytestmark = [pytest.mark.docker, pytest.mark.browser]

APPS = Path(__file__).parent.parent / "apps"
See = Callable[..., tuple[BuildResult, AppPage]]


@pytest.fixture(scope="module")
def mirror() -> Iterator[Mirror]:
    with Mirror() as started:
        yield started


@pytest.fixture(scope="module")
def driver() -> Iterator[Playwright]:
    with playwright_driver() as started:
        yield started


@pytest.fixture
def see(tmp_path: Path, mirror: Mirror, driver: Playwright) -> Iterator[See]:
    """Builds, serves and opens an application: a fixture's name, or another tree; `plan` instead of the learned one."""
    with ExitStack() as held:

        def see(app: str | Path, plan: ServePlan | None = None) -> tuple[BuildResult, AppPage]:
            tree = APPS / app if isinstance(app, str) else app
            ran = {"run": "test", "case": tree.name}
            built = build(
                plan or learn_plan(tree), tree, tmp_path / "out", mirror=mirror, logs=tmp_path / "logs", **ran
            )
            assert (built.outcome, built.reason) == ("ok", "")
            served = held.enter_context(serve(built.plan, built.served, **ran))
            browser = held.enter_context(browser_for(served, driver=driver, **ran))
            return built, held.enter_context(browser.open())

        yield see


def test_a_vite_8_application_with_a_relative_base_is_seen(see: See) -> None:
    built, visit = see("vite8")
    assert (built.plan.output, built.flags) == ("site", [])
    assert built.node is not None and built.node.fits  # C74: it needs 20.19 or 22.12 and later
    assert visit.goto("/") == 200
    assert visit.page.inner_text("h1") == "Lanterns"  # out of its .env
    visit.page.wait_for_selector("li:nth-child(3)")
    assert visit.page.locator("li").all_inner_texts() == ["paper", "brass", "glass"]
    assert visit.faults == []


def test_a_vue_application_under_a_base_path_is_seen_with_its_deep_links(see: See) -> None:
    built, visit = see("vue")
    assert built.plan.base_path == "/shelf/"
    assert visit.goto("/book/Maps") == 200
    assert visit.page.inner_text("h1") == "Book: Maps"
    visit.goto("/")
    visit.page.click("text=Add")
    assert visit.page.inner_text("h1") == "Shelf of 3"
    assert visit.page.evaluate("() => getComputedStyle(document.querySelector('h1')).color") == "rgb(20, 90, 60)"
    assert visit.faults == []


def test_a_svelte_application_without_a_build_script_is_seen(see: See) -> None:
    built, visit = see("svelte")
    assert built.plan.build == ["npm", "exec", "--no", "--", "vite", "build"]
    visit.goto("/")
    visit.page.click("text=Count >> nth=1")
    assert visit.page.inner_text("h1") == "Counted 1"
    assert visit.faults == []


def test_c69_a_vite_server_that_checks_host_names_shows_its_page(see: See, tmp_path: Path) -> None:
    shutil.copytree(APPS / "vite", tmp_path / "dev")  # Vite 7, and no allowedHosts
    start = ["npm", "exec", "--no", "--", "vite", "--port", "4000"]
    plan = ServePlan(kind="npm", install=["npm", "ci"], start=start, env={"NODE_ENV": "development"}, by_hand=True)
    _, visit = see(tmp_path / "dev", plan)
    assert visit.goto("/about") == 200
    assert visit.page.inner_text("h1") == "About"
    assert visit.page.url.startswith("http://localhost:4000/")
    assert visit.faults == []


def test_c65_a_hostile_application_reaches_nothing_in_any_phase(
    see: See, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "sk-never-in-a-container")
    tree = tmp_path / "hostile"
    shutil.copytree(APPS / "hostile", tree)
    with socket.create_server(("0.0.0.0", 0)) as listener:
        reached = threading.Event()

        def accept() -> None:
            try:
                listener.accept()
                reached.set()
            except OSError:
                pass

        threading.Thread(target=accept, daemon=True).start()
        port = listener.getsockname()[1]
        hosts = ["172.17.0.1", socket.gethostbyname(socket.gethostname()), "127.0.0.1", "::1"]
        (tree / "hosts.json").write_text(json.dumps([[host, port] for host in hosts]))
        built, visit = see(tree)
        visit.goto("/")
        attacks: dict[str, Any] = visit.page.evaluate("() => fetch('/attacks').then((answer) => answer.json())")
        title, heading = visit.page.title(), visit.page.inner_text("h1")
        listener.shutdown(socket.SHUT_RDWR)
    assert built.flags == []
    assert sorted(attacks) == ["build", "postinstall", "preinstall", "serve"]
    for phase, found in attacks.items():
        assert (phase, found["reached"], found["read"], found["written"]) == (phase, [], [], [])
        assert "sk-never" not in json.dumps(found["env"])
    assert [attacks[phase]["published"] for phase in ("preinstall", "postinstall")] == [403, 403]
    for phase in ("build", "serve"):  # each begins without what the one before left running or wrote at home
        assert [attacks[phase][name] for name in ("published", "daemons", "npmrc")] == [None, 0, False]
    assert not reached.is_set()
    assert (title.startswith("</title><script>"), heading) == (True, "Hostile")


@pytest.mark.slow
def test_a_next_export_is_built_without_its_web_font_and_seen(see: See) -> None:
    built, visit = see("next-export")
    assert (built.plan.output, built.flags) == ("out", ["fonts_absent"])
    assert visit.goto("/about") == 200
    visit.page.click("text=Closed")
    assert visit.page.inner_text("button") == "Open"
    assert "Lora" in visit.page.evaluate("() => getComputedStyle(document.body).fontFamily")
    assert visit.goto("/nowhere") == 404
