"""What an application and its browser can reach, what the browser gives an application, and what a dead browser costs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Playwright

from bench.errors import InfraError
from evaluator import browser as browser_module
from evaluator import browser_check
from evaluator.browser import PageHung
from evaluator.browser_tools.effects import NetworkLog
from evaluator.browser_tools.media_states import media_states
from evaluator.first_look.outside import outside, watch_outside
from evaluator.replay.stage import Stage
from evaluator.serve import ServedApp, serve
from evaluator.serve_plan import learn_plan
from evaluator.sidecar import SidecarBrowser, browser_for, playwright_driver
from sandboxes.engine import engine

pytestmark = [pytest.mark.docker, pytest.mark.browser]

APP = Path(__file__).parent.parent / "apps" / "reaching"


@pytest.fixture(scope="module")
def served() -> Iterator[ServedApp]:
    with serve(learn_plan(APP), APP, run="test", case="reaching") as app:
        yield app


@pytest.fixture(scope="module")
def driver() -> Iterator[Playwright]:
    with playwright_driver() as started:
        yield started


@pytest.fixture(scope="module")
def browser(served: ServedApp, driver: Playwright) -> Iterator[SidecarBrowser]:
    with browser_for(served, run="test", case="reaching", driver=driver) as opened:
        yield opened


class Listener:
    """A port of this machine on which nobody may be heard, by TCP or UDP."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._held = ExitStack()
        self.tcp = self._held.enter_context(socket.create_server(("0.0.0.0", 0)))
        self.port = self.tcp.getsockname()[1]
        self.udp = self._held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.udp.bind(("0.0.0.0", self.port))
        for one, hear in ((self.tcp, lambda: self.tcp.accept()[1]), (self.udp, lambda: self.udp.recvfrom(2048)[1])):
            one.settimeout(0.1)
            threading.Thread(target=self._listen, args=(one, hear), daemon=True).start()

    def _listen(self, one: socket.socket, hear: object) -> None:
        while one.fileno() != -1:
            try:
                self.heard.append(str(hear()))  # type: ignore[operator]
            except TimeoutError:
                continue
            except OSError:
                return

    def close(self) -> None:
        self._held.close()


def test_nothing_an_application_does_reaches_anything_but_itself_and_all_of_it_is_listed(
    browser: SidecarBrowser,
) -> None:
    listener = Listener()
    try:
        with browser.open() as visit:
            log = NetworkLog().follow(visit)
            watch_outside(visit)
            visit.goto(f"/?host=172.17.0.1:{listener.port}")
            first = visit.context.pages[0]
            first.wait_for_function("document.querySelectorAll('#came li').length === 17", timeout=15_000)
            came = first.locator("#came li").all_inner_texts()
            asked = {(one.kind, one.address) for one in outside(Stage(visit))}
        assert listener.heard == []
        assert [line for line in came if not line.endswith(": refused")] == []
        refused = {urlsplit(url).hostname for url in visit.refused}
        wanted = {
            "172.17.0.1", "169.254.169.254", "fd00:ec2::254", "metadata.google.internal", "host.docker.internal", "127.0.0.1",
            "prefetch.example", "styles.example", "pictures.example", "framed.example", "fetched.example", "kept.example",
            "xhr.example", "beacon.example", "socket.example", "events.example", "worker.example", "module.example",
            "fonts.example", "form.example", "popup.example",
        }  # fmt: skip
        assert wanted - refused == set()
        assert asked >= {
            ("webrtc", f"stun:172.17.0.1:{listener.port}"),
            ("webrtc", "stun:stun.example:3478"),
            ("dns-prefetch", "http://prefetched.example/"),
            ("preconnect", "https://preconnected.example/"),
            ("ping", "https://pinged.example/count"),
            ("service_worker", "worker.js"),
        }
        answered = [entry.url for entry in log.entries if entry.status is not None]
        assert {urlsplit(url).netloc for url in answered} == {urlsplit(browser.base_url).netloc}
    finally:
        listener.close()


def test_the_browser_gives_every_application_the_same_world(browser: SidecarBrowser) -> None:
    """Window, language, time zone, what may be used without asking, devices that are not real, sound without a click."""
    with browser.open() as visit:
        visit.goto("/worker.js")  # a page without scripts
        seen = visit.page.evaluate(
            """async () => {
                const allowed = {};
                for (const name of ['camera', 'microphone', 'geolocation', 'notifications', 'clipboard-read', 'clipboard-write']) {
                    allowed[name] = (await navigator.permissions.query({name})).state;
                }
                const place = await new Promise(done => navigator.geolocation.getCurrentPosition(p => done(p.coords.latitude)));
                return {allowed, place, size: [innerWidth, innerHeight, devicePixelRatio], language: navigator.languages,
                    zone: Intl.DateTimeFormat().resolvedOptions().timeZone, date: new Date(0).toLocaleString()};
            }"""
        )
    assert set(seen["allowed"].values()) == {"granted"}
    assert (seen["size"], seen["language"], seen["zone"]) == ([1280, 800, 1], ["en-US"], "UTC")
    assert (round(seen["place"], 2), seen["date"]) == (51.48, "1/1/1970, 12:00:00 AM")


def test_camera_and_microphone_are_there_and_give_pictures_and_sound(browser: SidecarBrowser) -> None:
    with browser.open() as visit:
        visit.goto("/worker.js")
        loud = visit.page.evaluate(
            """async () => {
                const stream = await navigator.mediaDevices.getUserMedia({video: true, audio: true});
                const video = document.body.appendChild(document.createElement('video'));
                video.autoplay = true;
                video.srcObject = stream;
                const context = new AudioContext(), meter = context.createAnalyser();
                context.createMediaStreamSource(stream).connect(meter);
                const heard = new Float32Array(meter.fftSize);
                for (let n = 0; n < 60; n++) {
                    await new Promise(done => setTimeout(done, 50));
                    meter.getFloatTimeDomainData(heard);
                    if (heard.some(v => Math.abs(v) > 0.01)) return context.state;
                }
                return 'silent';
            }"""
        )
        (camera,) = media_states(Stage(visit)).media
    assert loud == "running"  # a context that needed a click would be suspended
    assert (camera.source, camera.state, camera.frames_advance) == ("a stream", "playing", True)


def test_c80_c81_the_doctor_names_what_the_browser_cannot_play_or_draw(browser: SidecarBrowser) -> None:
    with browser.open() as visit:
        visit.goto("/worker.js")
        found = browser_check.lacking(visit)
        visit.page.evaluate(
            """() => {
                HTMLMediaElement.prototype.canPlayType = kind => kind.includes('avc1') ? '' : 'probably';
                const draw = OffscreenCanvasRenderingContext2D.prototype.fillText;
                OffscreenCanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
                    draw.call(this, /[中文かな한글]/u.test(text) ? '\ue123' : text, x, y);
                };
            }"""
        )
        broken = browser_check.lacking(visit)
    # The application has none of the clips, which is what a browser that plays nothing looks like.
    assert [one.partition(":")[0] for one in found] == [f"{name} does not play" for name in browser_check.SAMPLES]
    assert "no codec for H.264 and AAC" in broken
    assert any(one.endswith("fonts-noto-cjk is missing") for one in broken)
    assert not any("emoji" in one for one in broken)
    assert not browser_check.judged(broken, "Chromium 1", sandbox=True).ok


def test_a_browser_that_answers_nothing_any_more_is_given_up_as_the_machines_fault(
    served: ServedApp, driver: Playwright, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole container is frozen, so that not even closing the context is answered."""
    monkeypatch.setattr(browser_module, "CUT_S", 1.0)
    began = time.monotonic()
    with (
        pytest.raises(InfraError, match="browser was lost"),
        browser_for(served, run="test", case="frozen", driver=driver) as opened,
    ):
        (container,) = engine().containers.list(
            ignore_removed=True, filters={"label": ["cdb.role=browser", "cdb.case=frozen"]}
        )
        with opened.open() as visit:
            visit.goto("/worker.js")
            container.pause()
            with pytest.raises(PageHung), visit.within(1.0):
                visit.page.evaluate("1")
        raise PlaywrightError("what a caller would meet next")
    assert time.monotonic() - began < 60
