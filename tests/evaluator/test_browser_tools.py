"""The judge's browser tools on a page that has one of everything, in a real Chromium."""

from __future__ import annotations

import inspect
import io
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from evaluator.browser import AppBrowser, PageHung
from evaluator.browser_tools import effects, shots, touching
from evaluator.browser_tools.compare import compare, differences
from evaluator.browser_tools.effects import NetworkLog
from evaluator.browser_tools.measures import distance, measure
from evaluator.browser_tools.media_states import media_states
from evaluator.browser_tools.recording import record
from evaluator.browser_tools.results import Box
from evaluator.browser_tools.snapshots import snapshot
from evaluator.replay.stage import NotShown, Stage
from evaluator.try_witness import local_browser, serve
from evaluator.witness import Target

pytestmark = pytest.mark.browser

MEDIA = Path(__file__).parent.parent / "apps" / "restless" / "pages" / "media"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppBrowser]:
    root = tmp_path_factory.mktemp("everything")
    shutil.copytree(Path(__file__).parent.parent / "apps" / "everything", root, dirs_exist_ok=True)
    shutil.copytree(MEDIA, root / "media")
    with serve(root) as address, local_browser(address) as opened:
        yield opened


@pytest.fixture
def stage(browser: AppBrowser) -> Iterator[Stage]:
    with browser.open() as visit:
        visit.goto("/")
        yield Stage(visit)


def css(selector: str) -> Target:
    return Target(css=selector)


def button(name: str) -> Target:
    return Target(role="button", name=name)


def test_a_snapshot_has_boxes_open_shadow_trees_and_the_pages_within_the_page(stage: Stage) -> None:
    seen = snapshot(stage)
    assert '- heading "Everything" [level=1] [box=8,' in seen.text
    assert 'button "Deep"' in seen.text
    own, foreign = seen.frames
    assert own.own and 'button "Inner"' in own.text
    assert not foreign.own and foreign.url.startswith(("https://elsewhere.example", "chrome-error:"))
    assert 'button "Deep"' in snapshot(stage, within=css("#host")).text
    assert "Everything" not in snapshot(stage, within=css("#host"), boxes=False).text


def test_a_snapshot_keeps_its_budget_and_goes_on_where_it_ended(stage: Stage) -> None:
    whole = snapshot(stage, budget=100_000)
    assert whole.next_offset is None
    first = snapshot(stage, budget=300)
    assert len(first.text) <= 300 and first.text.endswith("\n") and first.chars == whole.chars
    assert first.next_offset is not None
    rest = snapshot(stage, offset=first.next_offset, budget=100_000)
    assert first.text + rest.text == whole.text
    with pytest.raises(ValueError, match="nothing at 999999"):
        snapshot(stage, offset=999_999)


def test_measures_are_boxes_styles_and_how_two_elements_lie_to_each_other(stage: Stage) -> None:
    seen = measure(stage, css("#left"), css("#right"))
    assert (seen.first.box.width, seen.first.box.height) == (100, 50)
    assert seen.first.look.background == "rgb(0, 0, 255)"
    assert seen.first.look.contrast == pytest.approx(8.59, abs=0.02)  # white on blue, WCAG's own example value
    assert seen.distance is not None
    assert (seen.distance.gap_x, seen.distance.top_edges, seen.distance.overlap) == (20, 0, False)
    assert measure(stage, css("#under")).first.covered_by == "div#cover"
    assert measure(stage, css("#spilling")).first.cut
    with pytest.raises(NotShown):
        measure(stage, css("#nowhere"))


def test_distances_of_boxes() -> None:
    outer, inner = Box(x=0, y=0, width=100, height=100), Box(x=10, y=20, width=10, height=10)
    found = distance(outer, inner)
    assert found.inside and found.overlap and (found.gap_x, found.gap_y) == (-10, -10)
    assert not distance(inner, outer).inside
    assert distance(outer, Box(x=130, y=0, width=5, height=5)).gap_x == 30


def test_media_say_whether_their_time_and_frames_go_on(stage: Stage) -> None:
    video, audio, broken = media_states(stage, 100).media
    assert (video.state, video.advancing, audio.kind) == ("paused", False, "audio")
    assert broken.state == "failed" and broken.error
    stage.one(button("Play")).click()
    video = media_states(stage).media[0]
    assert (video.state, video.advancing, video.frames_advance) == ("playing", True, True)
    assert (video.width, video.seekable_s > 0, video.note) == (64, True, "")


def test_canvases_are_told_blank_still_and_changing(stage: Stage) -> None:
    blank, still, moving, gl = media_states(stage).canvases
    assert blank.blank and not blank.changing
    assert (still.blank, still.changing, still.colours > 1) == (False, False, True)
    assert moving.changing
    assert gl.blank is False and gl.changing is True


def test_pictures_of_window_stretch_element_and_region_show_that_part(stage: Stage) -> None:
    window = shots.window(stage)
    assert (window.shot.width, window.shot.height) == (1280, 800)
    element = shots.element(stage, css("#left"))
    assert (element.shot.width, element.shot.height) == (116, 66)
    with Image.open(io.BytesIO(element.jpeg)) as image:
        assert image.convert("RGB").getpixel((12, 12))[2] > 200  # blue
        assert min(image.convert("RGB").getpixel((2, 2))) > 200  # the page around it
    tall = shots.stretch(stage, 1500)
    assert tall.shot.box.y == 1500 and tall.shot.height == 1500
    part = shots.region(stage, element.shot.box)
    assert differences(part.jpeg, element.jpeg)[0] == 0
    for ask in (
        lambda: shots.stretch(stage, 99_999),
        lambda: shots.region(stage, Box(x=0, y=99_999, width=1, height=1)),
    ):
        with pytest.raises(ValueError, match="the page is"):
            ask()


def test_c90_every_part_of_a_very_tall_page_fits_and_the_whole_is_kept(stage: Stage) -> None:
    stage.page.evaluate("document.body.style.height = '20000px'; document.body.style.width = '2500px'")
    height = shots.page_size(stage).height
    pictures = shots.tiles(stage, most=14)
    assert sum(picture.shot.height for picture in pictures) == height > 20_000
    assert all(max(p.shot.width, p.shot.height) <= 2_000 and len(p.jpeg) <= 5_000_000 * 3 / 4 for p in pictures)
    wide, high = shots.jpeg_size(shots.whole(stage))
    assert wide > 2_500 and high == 16_000


def test_start_and_submission_are_compared_beside_each_other(browser: AppBrowser) -> None:
    with browser.open() as one, browser.open() as other:
        for visit in (one, other):
            visit.goto("/still.html")
        same = compare(Stage(one), Stage(other))
        assert (same.seen.share, same.seen.regions, same.seen.only_submission) == (0.0, [], [])
        other.page.evaluate(
            "document.querySelector('#box').style.background = 'red'; document.querySelector('p').textContent = 'Neu'"
        )
        changed = compare(Stage(one), Stage(other)).seen
        assert 0 < changed.share < 0.1
        box = changed.regions[0].box
        assert box.x <= 400 and box.right >= 600 and box.y <= 300 and box.bottom >= 400  # the changed square
        assert changed.only_start == ["- paragraph: Old"] and changed.only_submission == ["- paragraph: Neu"]
        with Image.open(io.BytesIO(compare(Stage(one), Stage(other)).jpeg)) as pair:
            assert pair.width <= 2_000 and pair.width > 2 * pair.height


def test_a_recording_tells_motion_from_rest_and_when_it_ended(browser: AppBrowser) -> None:
    with browser.open() as visit:
        visit.goto("/still.html")
        stage = Stage(visit)
        rest = record(stage, 0.6)
        assert not rest.seen.moved and len(rest.frames) <= 2
        moved = record(stage, 1.5, lambda: stage.one(button("Slide")).click())
    assert moved.seen.moved and len(moved.frames) > 3
    assert moved.seen.last_change_s is not None and moved.seen.last_change_s < 1.4  # the slide takes 0.5 s
    assert moved.sheet is not None
    with Image.open(io.BytesIO(moved.sheet)) as sheet:
        assert max(sheet.size) <= 2_000


def test_requests_are_listed_with_what_came_of_them(browser: AppBrowser) -> None:
    with browser.open() as visit:
        log = NetworkLog().follow(visit)
        visit.goto("/")
        Stage(visit).one(button("Ask")).click()
        visit.page.wait_for_function("window.asked === 3")
    by_name = {entry.url.rpartition("/")[2]: entry for entry in log.entries}
    assert (by_name["data.json"].status, by_name["data.json"].failed) == (200, False)
    assert by_name["gone.json"].status == 404 and by_name["gone.json"] in log.failed
    assert "BLOCKED" in by_name["feed"].failure


def test_storage_of_every_kind_is_read(stage: Stage) -> None:
    stage.one(button("Keep")).click()
    stage.page.wait_for_function("window.kept === true")
    seen = effects.storage(stage)
    assert (seen.local, seen.session) == ({"draft": "Plan A"}, {"tab": "one"})
    assert [(c.name, c.value, c.persists) for c in seen.cookies] == [("theme", "dark", True)]
    assert (seen.databases, seen.caches) == (["shop (version 1)"], ["pages"])


def test_downloads_are_read_with_their_hash(stage: Stage) -> None:
    stage.one(button("Export")).click()
    stage.page.wait_for_timeout(50)
    (file,) = effects.downloads(stage)
    assert (file.name, file.bytes, file.text) == ("guests.csv", 19, "name,age\n小红,31\n")
    assert len(file.sha256) == 64


def test_popups_are_listed_looked_at_and_closed(stage: Stage) -> None:
    with stage.visit.context.expect_page():
        stage.one(button("Open")).click()
    stage.visit.loaded()
    first, second = effects.popups(stage)
    assert (first.current, second.current, second.title) == (False, True, "Still")
    (left,) = effects.close_popup(stage, 1)
    assert left.current and left.title == "Everything"
    with pytest.raises(ValueError, match="no further page 1"):
        effects.close_popup(stage, 1)


def test_a_copy_button_works_and_c86_the_next_visit_finds_an_empty_clipboard(browser: AppBrowser) -> None:
    with browser.open() as visit:
        visit.goto("/")
        stage = Stage(visit)
        stage.one(button("Copy")).click()
        visit.page.wait_for_function("document.querySelector('#copied').textContent !== ''")
        assert visit.page.inner_text("#copied") == "copied"
        assert effects.clipboard(stage) == "COPIED 文"
    with browser.open() as visit:
        visit.goto("/")
        assert effects.clipboard(Stage(visit)) == ""


def test_touch_taps_and_swipes_only_where_there_is_a_touch_screen(browser: AppBrowser, stage: Stage) -> None:
    with pytest.raises(ValueError, match="without a touch screen"):
        touching.tap(stage, css("#pad"))
    with browser.open(touch=True) as visit:
        visit.goto("/")
        touched = Stage(visit)
        touching.tap(touched, css("#pad"))
        touching.swipe(touched, css("#pad"), "left", 120)
        assert visit.page.inner_text("#touches") == "tap swipe -120"


def test_files_dragged_and_keys_go_through_the_witness_language(stage: Stage) -> None:
    """Drag and drop, upload and keyboard are acted, not looked at: `evaluator.replay.act` does them."""
    from evaluator.replay.act import act
    from evaluator.witness import load_witness

    program = load_witness({"schema": "cdb.witness/1", "steps": [
        {"do": "drag", "target": {"css": "#card"}, "to": {"css": "#bin"}},
        {"do": "upload", "target": {"css": "#file"}, "name": "notes.txt", "content": "Hallo"},
        {"do": "press", "target": {"css": "#key"}, "key": "Control+k"},
        {"expect": "url", "contains": "/"},
    ]})  # fmt: skip
    for step in program.steps[:-1]:
        act(stage, step)  # type: ignore[arg-type]
    said = stage.page.inner_text("#done")
    assert said == "dropped notes.txt=Hallo ctrl+k"


def test_every_tool_gives_a_hung_page_up_at_its_deadline(
    browser: AppBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The renderer is in an endless loop: each call ends, and the browser goes on."""
    tools: list[Callable[..., object]] = [
        snapshot,
        shots.window,
        media_states,
        partial(measure, first=css("p")),
        effects.storage,
    ]
    for tool in tools:
        began = time.monotonic()
        with browser.open() as visit:
            visit.goto("/still.html")
            monkeypatch.setattr(visit, "within", partial(limited, visit.within))
            with visit.page.expect_console_message():  # not at once: the call that begins it must be answered
                visit.page.evaluate("() => { setTimeout(() => { console.log('hung'); for (;;); }, 300); }")
            with pytest.raises(PageHung):
                tool(Stage(visit))
        assert time.monotonic() - began < 25, tool
    assert browser.answers()


def limited(within: Callable[[float], AbstractContextManager[None]], limit_s: float) -> AbstractContextManager[None]:
    """The call's own deadline, shortened so that a test need not wait for it."""
    assert limit_s >= 1
    return within(1.0)


def test_no_tool_is_without_a_deadline() -> None:
    from evaluator.browser_tools import measures, recording, snapshots
    from evaluator.browser_tools import media_states as media_module

    for module in (effects, shots, touching, media_module, measures, recording, snapshots):
        for name, tool in inspect.getmembers(module, inspect.isfunction):
            own = tool.__module__ == module.__name__ and not name.startswith("_")
            if own and "stage" in inspect.signature(tool).parameters:
                assert hasattr(tool, "__wrapped__"), f"{module.__name__}.{name} has no deadline"
