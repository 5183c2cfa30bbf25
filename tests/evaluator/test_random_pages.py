"""Whatever well-formed page an application shows, a visit ends: with pictures, or with the page given up."""

from __future__ import annotations

import html
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from playwright.sync_api import Error as PlaywrightError

from evaluator.browser import AppBrowser, PageHung
from evaluator.try_witness import local_browser, serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LIMIT_S = 20.0
VISIT_S = 8.0
CONTAINERS = (
    "div",
    "section",
    "ul",
    "table",
    "form",
    "details",
    "dialog",
    "svg",
    "button",
    "label",
    "select",
    "iframe",
)
LEAVES = (
    "<input>", "<input type=date>", "<input type=file multiple>", "<video src=gone.mp4 controls autoplay></video>",
    "<audio src=gone.mp3></audio>", "<img src=gone.png>", "<canvas width=9000 height=20></canvas>", "<hr>",
    "<progress></progress>", "<textarea>\n</textarea>", "<meter value=.5></meter>", "<object data=gone.pdf></object>",
)  # fmt: skip
STYLES = (
    "position:fixed;inset:0;z-index:9", "display:none", "width:90000px;height:3px", "height:30000px", "opacity:0",
    "transform:rotate(45deg) scale(20)", "animation:spin .1s infinite", "filter:blur(9px)", "columns:9", "float:right",
    "content-visibility:auto", "overflow:scroll;height:9px", "writing-mode:vertical-rl", "visibility:hidden", "zoom:3",
)  # fmt: skip
SCRIPTS = (
    "alert('a')", "confirm('b')", "prompt('c', 'd')", "throw new Error('x')", "Promise.reject(new Error('y'))",
    "setInterval(() => document.title += '.', 5)", "console.log('\\u0000' + 'z'.repeat(90000))", "print()",
    "requestAnimationFrame(function again() { document.body.append('x'); requestAnimationFrame(again) })",
    "open('gone.html')", "location.hash = 'h' + Math.random()", "history.pushState({}, '', '/deep/er')",
    "fetch('http://203.0.113.1/')", "new WebSocket('ws://203.0.113.1/')", "new EventSource('/gone')",
    "document.body.innerHTML = '<p>' + '<i>q</i>'.repeat(3000)", "document.documentElement.requestFullscreen()",
    "navigator.geolocation.getCurrentPosition(() => {})", "navigator.mediaDevices.getUserMedia({video: true})",
    "addEventListener('beforeunload', (e) => e.preventDefault())", "setTimeout(() => location.reload(), 400)",
    "document.body.remove()", "setTimeout(() => { for (;;) ; }, 100)", "setTimeout(() => close(), 50)",
    "navigator.clipboard.writeText('t')", "new Worker('gone.js')", "document.write('<b>late</b>')",
    "Object.defineProperty(document, 'title', { get() { throw 1 } })", "Array.prototype.map = null",
    "JSON.stringify = () => { throw 1 }", "window.Promise = undefined", "Notification.requestPermission()",
)  # fmt: skip

texts = st.text(max_size=60).map(html.escape)
scripts = st.sampled_from(SCRIPTS).map(
    lambda code: f"<script>try {{ {code} }} catch (e) {{ console.error(e) }}</script>"
)
nodes = st.recursive(
    texts | st.sampled_from(LEAVES),
    lambda inner: st.builds(
        lambda name, style, children: f'<{name} style="{style}">{"".join(children)}</{name}>',
        st.sampled_from(CONTAINERS), st.sampled_from(STYLES), st.lists(inner, max_size=5),
    ),
    max_leaves=25,
)  # fmt: skip
pages = st.builds(
    lambda title, body, code: f"<!doctype html><title>{title}</title>{''.join(body)}{''.join(code)}",
    texts, st.lists(nodes, max_size=6), st.lists(scripts, max_size=4),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[AppBrowser]:
    with serve(folder) as address, local_browser(address) as opened:
        yield opened


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(page=pages)
def test_no_page_crashes_or_hangs_the_driver(browser: AppBrowser, folder: Path, page: str) -> None:
    (folder / "index.html").write_text(page, encoding="utf-8", errors="replace")
    began = time.monotonic()
    with browser.open() as visit:
        try:
            with visit.within(VISIT_S):
                visit.goto("/")
                visit.snapshot()
                visit.screenshot(folder / "page.jpg")
                assert (folder / "page.jpg").stat().st_size > 0
        except PageHung:
            pass
        except PlaywrightError as error:
            assert not visit.crashed, error  # what a page may do: close itself, take its body away, navigate for ever
    assert time.monotonic() - began < LIMIT_S
    assert browser.browser.is_connected()


def test_the_browser_still_works_afterwards(browser: AppBrowser) -> None:
    assert browser.answers()
