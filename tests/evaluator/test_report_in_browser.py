"""The report in a real Chromium: nothing that data says runs, nothing is asked for, keys and column switch work."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from test_report_results import make_results

from evaluator.report import write_report

pytestmark = pytest.mark.browser

PAYLOADS = [
    "javascript:document.title='ran'",
    "<img src=x onerror=\"document.title='ran'\">",
    '"><svg onload="document.title=\'ran\'">',
    "'><script>document.title='ran'</script>",
    "</script><script>document.title='ran'</script><!--",
    "</textarea></title></style><iframe srcdoc=\"<script>parent.document.title='ran'</script>\">",
    "$\\href{javascript:document.title='ran'}{x}$ {{ 7*7 }} {% raw %}",
    "\x1b]8;;https://example.invalid\x07link\x1b]8;;\x07 \x1b[31mred \u202egnp.exe",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = os.environ.get("CDB_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.skip("no Chromium: set CDB_CHROMIUM")
    arguments = ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=executable, chromium_sandbox=os.geteuid() != 0, args=arguments
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    return write_report([make_results(root / agent, agent) for agent in ("gold", "partial", "stub")], root / "out")


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    opened = context.new_page()
    opened.goto(report.as_uri())
    yield opened
    context.close()


def test_markup_in_any_text_shows_literally_and_never_runs(browser: Browser, tmp_path: Path) -> None:
    hostile = " ".join(PAYLOADS)
    folder = make_results(tmp_path / "partial", "partial", spell=lambda text: f"{hostile} {text}")
    target = write_report([folder, make_results(tmp_path / "stub", "stub")], tmp_path / "out", title=hostile)
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(target.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    page.locator("#case-booking").evaluate("(box) => box.scrollIntoView()")
    page.locator("#case-booking img[src]").first.wait_for()
    assert page.title().startswith("javascript:document.title=")
    assert complaints == []
    assert [url for url in asked if not url.startswith("data:")] == [target.as_uri()]
    assert page.locator("iframe, img[onerror], svg[onload], a[href^='javascript'], base, object, embed").count() == 0
    shown = hostile.replace("\x1b", "␛").replace("\x07", "␇").replace("\u202e", "⟨U+202E⟩")
    for place in ("h1", "blockquote", ".who .name", ".scope", ".criterion h3", ".steps p", ".step-note", "pre"):
        texts = page.locator(place).all_text_contents()
        assert any(shown in text for text in texts), place
    context.close()


def test_the_page_opens_without_a_complaint_or_a_request_and_no_picture_is_broken(
    browser: Browser, report: Path
) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri())
    assert page.locator("img[data-picture][src]").count() < 10  # they wait until they are near
    page.locator("#case-kanban-2 .finding > summary").first.click()
    picture = page.locator("#case-kanban-2 .pair img[src]").first
    picture.wait_for()
    picture.evaluate("(image) => image.decode()")
    assert picture.evaluate("(image) => image.naturalWidth") == 64
    assert complaints == []
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]
    context.close()


def test_the_policy_stops_script_that_is_not_the_pages_own(page: Page) -> None:
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = \"document.title = 'ran'\";"
        " document.body.append(s); document.body.setAttribute('onclick', \"document.title = 'ran'\"); }"
    )
    page.locator("h1").click()
    assert page.title() == "Results on sample · Co-Design Bench"


def test_the_witnessed_column_is_shown_first_and_the_switch_changes_every_verdict(page: Page) -> None:
    cell = page.locator("#verdicts table").first.locator("tbody tr").nth(2).locator("td").first
    assert cell.inner_text().startswith("FAIL")
    assert page.locator(".board:visible").get_attribute("aria-label") == "Ranking, column witnessed"
    page.get_by_role("radio", name="judge").check(force=True)
    assert cell.inner_text().startswith("PASS")
    assert page.locator(".board:visible").get_attribute("aria-label") == "Ranking, column judge"


def test_a_cell_opens_the_evidence_it_stands_for(page: Page) -> None:
    page.locator(".heat-link").nth(7).click()
    opened = page.locator("details.finding[open]")
    expect(opened).to_have_count(1)  # the hash changes after the click has returned
    assert opened.get_attribute("id") == page.url.split("#")[1]
    assert page.evaluate("document.activeElement.parentElement.id") == opened.get_attribute("id")


def test_keys_walk_cases_and_criteria_and_can_be_switched_off(page: Page) -> None:
    def focused() -> str:
        return str(page.evaluate("document.activeElement.id"))

    page.keyboard.press("n")
    assert focused() == "case-booking"
    page.keyboard.press("n")
    assert focused() == "case-kanban"
    page.keyboard.press("j")
    assert focused() == "case-kanban-1"
    page.keyboard.press("o")
    assert page.locator("#case-kanban-1 details.finding[open]").count() == 3
    page.keyboard.press("k")
    assert focused() == "case-booking-5"
    page.keyboard.press("?")
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    assert page.locator("#column-witnessed").is_checked()


@pytest.mark.parametrize("width", [390, 1280, 1720])
def test_nothing_is_wider_than_the_window(browser: Browser, report: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    context.close()


def test_the_page_reads_without_script(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "This page's small script is off" in str(page.locator("noscript").text_content())
    page.locator("#case-kanban-2 .finding > summary").first.click()
    assert page.locator("#case-kanban-2 .trail").first.is_visible()
    page.locator("label[for=column-card]").click()
    assert page.locator(".board:visible").get_attribute("aria-label") == "Ranking, column card"
    context.close()
