"""What can go wrong between a browser and a page that is never at rest: each case on real pages in the side-car."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Playwright

from bench.errors import InfraError
from evaluator import recon
from evaluator.applications import Applications, NotServed
from evaluator.browser_image import browser_facts
from evaluator.build import build
from evaluator.records import Replay
from evaluator.replay import run_witness
from evaluator.serve import ServedApp, serve
from evaluator.serve_plan import learn_plan
from evaluator.sidecar import SidecarBrowser, browser_for, playwright_driver
from evaluator.start_replays import StartReplays
from evaluator.witness import load_witness

pytestmark = [pytest.mark.docker, pytest.mark.browser]

APP = Path(__file__).parent.parent / "apps" / "restless"
Run = Callable[..., Replay]


@pytest.fixture(scope="module")
def driver() -> Iterator[Playwright]:
    with playwright_driver() as started:
        yield started


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApp]:
    out = tmp_path_factory.mktemp("restless")
    built = build(learn_plan(APP), APP, out / "out", run="test", case="restless", mirror=None, logs=out / "logs")
    with serve(built.plan, built.served, run="test", case="restless") as app:
        yield app


@pytest.fixture(scope="module")
def browser(served: ServedApp, driver: Playwright) -> Iterator[SidecarBrowser]:
    with browser_for(served, run="test", case="restless", driver=driver) as opened:
        yield opened


@pytest.fixture
def run(browser: SidecarBrowser, tmp_path: Path) -> Run:
    def on_page(path: str, steps: list[dict[str, Any]], *, frames: bool = False) -> Replay:
        witness = load_witness({"schema": "cdb.witness/1", "path": path, "steps": steps})
        folder = tmp_path / "frames" if frames else None
        return run_witness(
            browser, witness, app="submission", purpose="propose", frames_dir=folder, results_root=tmp_path
        )

    return on_page


def button(name: str) -> dict[str, Any]:
    return {"do": "click", "target": {"role": "button", "name": name}}


def answered(text: str) -> dict[str, Any]:
    return {"expect": "text", "target": {"css": "#answers"}, "equals": text}


def test_c79_polling_events_and_sockets_do_not_hold_the_evidence_up(run: Run, browser: SidecarBrowser) -> None:
    began = time.monotonic()
    counting = [
        {"expect": "text", "target": {"css": f"#{name}"}, "number": {"at_least": 2}, "within_ms": 5000}
        for name in ("polled", "events", "messages")
    ]
    replay = run("/", counting, frames=True)
    assert replay.outcome == "held", replay.reason
    assert replay.steps[-1].frame
    with browser.open() as visit:
        visit.goto("/")
        assert "中文看板" in visit.snapshot()
    assert time.monotonic() - began < 60


def test_c81_chinese_and_emoji_are_drawn_and_not_boxes(browser: SidecarBrowser) -> None:
    drawn = """texts => texts.map(text => {
        const canvas = document.createElement('canvas');
        canvas.width = canvas.height = 64;
        const pen = canvas.getContext('2d');
        pen.font = '48px sans-serif';
        pen.fillText(text, 4, 52);
        return canvas.toDataURL();
    })"""
    with browser.open() as visit:
        visit.goto("/")
        chinese, other, smile, heart, box = visit.page.evaluate(drawn, ["中", "文", "😀", "❤️", "\ue123"])
    assert len({chinese, other, smile, heart, box}) == 5


def test_c82_a_page_that_takes_all_memory_is_a_crash_and_the_next_run_is_well(run: Run) -> None:
    crashed = run(
        "/greedy.html", [button("Take all memory"), {"expect": "visible", "target": {"css": "h2"}, "within_ms": 9000}]
    )
    assert crashed.outcome == "error", crashed.reason
    assert "crashed" in crashed.reason
    assert (
        run("/greedy.html", [{"expect": "visible", "target": {"role": "heading", "name": "Greedy"}}]).outcome
        == "held"
    )


def test_c84_dialogs_are_answered_as_the_witness_says_and_their_words_kept(run: Run) -> None:
    replay = run(
        "/",
        [
            button("提醒"), answered("alerted"), {"expect": "dialog", "contains": "保存成功"},
            button("删除"), answered("confirmed"), {"expect": "dialog", "contains": "删除吗"},
            {"do": "answer_dialogs", "accept": False}, button("删除"), answered("kept"),
            {"do": "answer_dialogs", "accept": True, "text": "小红"}, button("命名"), answered("named 小红"),
            button("守护"), answered("guarded"), {"do": "reload"},
            {"expect": "visible", "target": {"role": "heading"}}, {"expect": "count", "target": {"css": "#answers:empty"}, "equals": 1, "hidden_too": True},
        ],
    )  # fmt: skip
    assert replay.outcome == "held", replay.reason


def test_c86_nothing_a_page_keeps_is_there_in_the_next_run(run: Run) -> None:
    empty = [{"expect": "text", "target": {"css": "#found"}, "equals": "found 0 0 0 0 0 0"}]
    for _ in range(2):
        assert run("/keeper.html", empty).outcome == "held"
    again = run("/keeper.html", [*empty, {"do": "reload"}, *empty])
    assert again.outcome == "failed"  # within one run it does keep things
    assert "found 1 1 3 1 1 0" in again.reason


@pytest.mark.parametrize(
    ("kind", "plays"),
    [
        ('video/mp4; codecs="avc1.42E01E, mp4a.40.2"', True),
        ('video/webm; codecs="vp9, opus"', True),
        ("audio/mpeg", True),
        ('audio/mp4; codecs="mp4a.40.2"', True),
        ("audio/wav", True),
        ("audio/ogg", True),
        ("video/quicktime", False),
    ],
)
def test_c80_what_the_browser_can_play(browser: SidecarBrowser, kind: str, plays: bool) -> None:
    with browser.open() as visit:
        visit.goto("/")
        said = visit.page.evaluate("kind => document.createElement('video').canPlayType(kind)", kind)
    assert bool(said) is plays


@dataclass(frozen=True)
class Both:
    """Start and submission as a look needs them."""

    start: SidecarBrowser
    submission: SidecarBrowser
    start_seen: StartReplays


def at(browser: SidecarBrowser, path: str) -> SidecarBrowser:
    return SidecarBrowser(browser.browser, browser.base_url.rstrip("/") + path, browser.facts)


def test_a_page_that_never_answers_is_the_applications_fault_and_holds_nobody_up(
    browser: SidecarBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recon, "LOOK_S", 4.0)
    both = Both(browser, at(browser, "/hang/"), StartReplays(tmp_path / "seen", "key"))
    with pytest.raises(NotServed) as raised:
        recon.look(cast(Applications, both), tmp_path, tmp_path / "evidence", [])
    assert raised.value.outcome == "app_hang"
    turned = Both(at(browser, "/hang/"), browser, StartReplays(tmp_path / "other", "key"))
    with pytest.raises(InfraError, match="start application's page"):
        recon.look(cast(Applications, turned), tmp_path, tmp_path / "evidence", [])


def test_c80_an_attachment_that_cannot_be_played_here_is_named(browser: SidecarBrowser, tmp_path: Path) -> None:
    both = Both(browser, browser, StartReplays(tmp_path / "seen", "key"))
    files = ["media/clip.mp4", "media/tone.wav", "media/dot.png", "media/broken.mov", "media/gone.mp3", "notes.pdf"]
    seen = recon.look(cast(Applications, both), tmp_path, tmp_path / "evidence", files)
    assert sorted(seen.unplayable) == ["media/broken.mov", "media/gone.mp3"]
    assert {"start_desktop", "submission_phone"} <= set(seen.shots)


def test_c81_the_lock_of_a_judging_names_browser_and_fonts(browser: SidecarBrowser) -> None:
    facts = browser_facts()
    assert browser.browser.version in facts["chromium"]
    assert facts["fonts"] > 20
    assert browser_facts() == facts
