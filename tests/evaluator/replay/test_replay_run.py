"""How a run ends, what it records, and that nothing an application does can hold us up or leak."""

from __future__ import annotations

import socket
import time

import pytest
from PIL import Image

from evaluator.browser import MAX_LINE_CHARS, MAX_LINES, AppBrowser
from evaluator.replay import run_witness
from evaluator.witness import Viewport, WitnessError, load_witness

pytestmark = pytest.mark.browser


def click(name):
    return {"do": "click", "target": {"role": "button", "name": name}}


def says(selector, **wanted):
    return {"expect": "text", "target": {"css": selector}, **wanted}


FINE = says("#state", equals="fine")


def test_a_run_records_every_step_with_pictures_of_the_acting_ones(run, tmp_path):
    steps = [
        {"do": "fill", "target": {"label": "Guest"}, "text": "${name}"},
        click("Add guest"),
        says("#list", contains="${name}"),
        {"expect": "focused", "target": {"label": "Guest"}},
    ]
    folder = tmp_path / "evidence" / "1a"
    replay = run("forms.html", steps, inputs={"name": "Zoë"}, frames_dir=folder, app="start", purpose="vacuity")
    assert (replay.outcome, replay.app, replay.purpose) == ("held", "start", "vacuity")
    assert replay.inputs == {"name": "Zoë"}
    assert [step.index for step in replay.steps] == [0, 1, 2, 3, 4]
    assert replay.steps[1].text == "Fill the field “Guest” with “Zoë”"
    assert replay.steps[3].note == "saw “Zoë”"
    frames = [step.frame for step in replay.steps]
    assert frames == [None, None, None, None, "evidence/1a/04.jpg"]
    with Image.open(tmp_path / "evidence/1a/04.jpg") as picture:
        assert (picture.format, picture.size) == ("JPEG", (1280, 800))


def test_a_failed_check_says_what_was_expected_and_what_was_seen_and_is_pictured(run, tmp_path):
    steps = [says("#total", equals="Total: $5"), says("#total", contains="Total")]
    replay = run("looks.html", steps, frames_dir=tmp_path / "f", patience=0.2)
    assert (replay.outcome, replay.failed_step, len(replay.steps)) == ("failed", 1, 2)
    assert replay.reason == (
        "Step 1, see that the text of the element matching “#total” is “Total: $5”: "
        "saw “Total: $1,234.50 for 3 guests”"
    )
    assert replay.steps[1].frame == "f/01.jpg"


@pytest.mark.parametrize(
    "step, reason",
    [
        (click("Nowhere"), "there is no such element on the page"),
        ({"do": "click", "target": {"css": "#secret"}}, "the element is there but cannot be seen"),
        (click("Send"), "it is disabled"),
        ({"do": "select", "target": {"label": "Room"}, "option": "Suite"}, "it has no such option"),
        ({"do": "fill", "target": {"css": "#event"}, "text": "x"}, "Element is not an <input>"),
        (says("#secret", contains="Secret"), "saw the element is there but cannot be seen"),
        ({"do": "upload", "target": {"css": "#bold"}, "media": "pdf"}, "a click on it opens no file chooser"),
    ],
)
def test_a_step_that_cannot_be_taken_says_why(run, step, reason):
    replay = run("forms.html", [step, says("#event", contains="nothing")], patience=0.2)
    assert (replay.outcome, replay.failed_step) == ("failed", 1)
    assert reason in replay.reason


def test_varied_inputs_replace_the_witnesss_own_and_expose_an_output_made_for_one_input(browser, tmp_path):
    steps = [
        {"do": "fill", "target": {"label": "Guest"}, "text": "${name}"},
        click("Add guest"),
        says("#list li", equals="${name}"),
    ]
    witness = load_witness(
        {
            "schema": "cdb.witness/1",
            "path": "/forms.html?wrong",
            "inputs": {"name": "Ana Ruiz"},
            "vary": [{"name": "Bo (Li)"}],
            "steps": steps,
        }
    )
    settings = {"app": "submission", "frames_dir": None, "results_root": tmp_path, "patience": 0.3}
    assert run_witness(browser, witness, purpose="propose", **settings).outcome == "held"
    varied = run_witness(browser, witness, purpose="vary", inputs=witness.vary[0], **settings)
    assert (varied.outcome, varied.inputs) == ("failed", {"name": "Bo (Li)"})
    with pytest.raises(WitnessError, match="unknown input nome; this witness has: name"):
        run_witness(browser, witness, purpose="vary", inputs={"nome": "x"}, **settings)


def test_other_addresses_are_refused_and_listed_and_are_no_console_faults(run):
    replay = run("outside.html", [says("#state", equals="offline"), {"expect": "console_clean"}])
    assert replay.outcome == "held", replay.reason
    assert sorted(replay.refused_requests) == [
        "https://api.example.invalid/v1",
        "https://fonts.example.invalid/css",
        "https://images.example.invalid/a.png",
        "wss://live.example.invalid/feed",
    ]


def test_each_run_starts_with_fresh_storage(run):
    for _ in range(2):
        replay = run("outside.html", [says("#state", equals="offline")])
        assert "log: visits 1" in replay.console


def test_script_errors_and_console_lines_are_recorded_within_bounds(run):
    replay = run("effects.html?wrong", [click("Break"), {"do": "wait", "ms": 100}, {"expect": "console_clean"}])
    assert replay.outcome == "failed"
    assert "error: it broke" in replay.console
    assert any(line.startswith("pageerror: undefinedFunction") for line in replay.console)
    talkative = run("broken.html", [click("Talk much"), {"do": "wait", "ms": 300}, FINE])
    assert len(talkative.console) == MAX_LINES
    assert max(map(len, talkative.console)) == MAX_LINE_CHARS


@pytest.mark.parametrize("button", ["Hang now", "Hang soon"])
def test_a_page_in_an_endless_loop_fails_with_that_reason_and_does_not_hold_us_up(run, tmp_path, button):
    began = time.monotonic()
    replay = run("broken.html", [click(button), {"do": "wait", "ms": 200}, FINE], patience=0.3, frames_dir=tmp_path)
    assert replay.outcome == "failed"
    assert "the page stopped answering" in replay.reason
    assert time.monotonic() - began < 40


def test_the_browser_goes_on_after_a_hung_page(run):
    assert run("broken.html", [FINE]).outcome == "held"


def test_a_page_that_keeps_asking_its_server_does_not_hold_us_up(run):
    replay = run("broken.html", [click("Poll"), {"do": "reload"}, click("Poll"), FINE])
    assert replay.outcome == "held"


def test_time_running_out_on_a_page_that_answers_is_an_error_and_no_verdict(run):
    steps = [{"do": "wait", "ms": 3000}] * 3 + [FINE]
    replay = run("broken.html", steps, deadline_s=6)
    assert replay.outcome == "error"
    assert "time was over" in replay.reason
    assert replay.duration_s < 20


def test_a_crashed_page_is_an_error_and_no_verdict(browser, run, monkeypatch):
    from evaluator.replay import act

    def crash(stage, step):
        stage.visit.context.new_cdp_session(stage.page).send("Page.crash")

    monkeypatch.setattr(act, "_point", crash)
    replay = run("broken.html", [click("Poll"), FINE])
    assert (replay.outcome, replay.failed_step) == ("error", 1)
    assert "crashed" in replay.reason


def test_an_address_nobody_listens_at_is_an_error_and_no_verdict(browser, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    nowhere = AppBrowser(browser.browser, f"http://127.0.0.1:{port}")
    witness = load_witness({"schema": "cdb.witness/1", "steps": [FINE]})
    settings = {"app": "submission", "purpose": "propose", "frames_dir": None, "results_root": tmp_path}
    replay = run_witness(nowhere, witness, **settings)
    assert (replay.outcome, replay.failed_step) == ("error", 0)
    assert f"127.0.0.1:{port} gave no page: ERR_CONNECTION_REFUSED" in replay.reason


def test_later_steps_go_to_the_window_the_application_opened(run):
    steps = [click("New window"), {"do": "fill", "target": {"label": "Guest"}, "text": "Bo"}, click("Add guest")]
    replay = run("effects.html", [*steps, says("#list", equals="Bo"), {"expect": "url", "equals": "/forms.html"}])
    assert replay.outcome == "held", replay.reason


def test_masking_hides_that_the_browser_is_automated(run):
    look = [says("#agent", contains="webdriver true")]
    assert run("effects.html", look).outcome == "held"
    masked = run("effects.html", look, masked=True, patience=0.2)
    assert masked.outcome == "failed"
    assert "webdriver false" in masked.reason
    assert "Headless" not in masked.reason


def test_a_viewport_can_be_put_in_place_of_the_witnesss_own(run):
    look = [{"expect": "visible", "target": {"text": "Phone menu"}}]
    assert run("looks.html", look, patience=0.2).outcome == "failed"
    assert run("looks.html", look, viewport=Viewport(width=390, height=844)).outcome == "held"


def test_a_picture_of_a_long_page_stays_within_2000_px_and_a_snapshot_names_what_is_there(browser, tmp_path):
    with browser.open() as visit:
        assert visit.goto("/looks.html") == 200
        visit.screenshot(tmp_path / "long.jpg", full_page=True)
        assert '- link "Guide"' in visit.snapshot()
    with Image.open(tmp_path / "long.jpg") as picture:
        assert picture.size[0] == 1280
        assert 1500 < picture.size[1] <= 2000
