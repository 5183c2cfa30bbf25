"""The report in a real Chromium: nothing that data says runs, nothing is asked for elsewhere, keys and sliders work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe import serious
from playwright.sync_api import Browser, Page, expect, sync_playwright
from test_report_results import make_results

from evaluator.report import write_report

pytestmark = pytest.mark.browser

MARK = "window.__ran=(window.__ran||0)+1;document.title='ran'"
PAYLOADS = [
    f"javascript:{MARK}",
    f'<img src=x onerror="{MARK}">',
    f'"><svg onload="{MARK}">',
    f"'><script>{MARK}</script>",
    f"</script><script>{MARK}</script><!--",
    f'</textarea></title></style><iframe srcdoc="<script>parent.{MARK}</script>">',
    f"$\\href{{javascript:{MARK}}}{{x}}$ [x](javascript:{MARK}) {{{{ 7*7 }}}} {{% raw %}}",
    f"</pre></td></details><base href='https://example.invalid/'><a href=\"data:text/html,<script>{MARK}</script>\">",
    "\x1b]8;;https://example.invalid\x07link\x1b]8;;\x07 \x1b[31mred \x9b31m \u202egnp.exe",
]
HOSTILE = " ".join(PAYLOADS)
SHOWN = HOSTILE.replace("\x1b", "␛").replace("\x07", "␇").replace("\x9b", "⟨U+009B⟩").replace("\u202e", "⟨U+202E⟩")
OPEN_ALL = "document.querySelectorAll('details').forEach((box) => { box.open = true; })"
WATCH = "addEventListener('securitypolicyviolation', (e) => { (window.__stopped ||= []).push(e.violatedDirective); }, true)"

PLACES: dict[str, list[str]] = {
    "index.html": ["h1", ".who .name", ".scope", ".plot text"],
    "agents/e1-*.html": ["h1", ".facts dd", ".flag", ".raw pre", ".list td"],
    "cases/booking.html": ["h1", "blockquote", ".criteria h3", ".attachments .name", ".attachments pre", ".made .flag"],
    "criteria/kanban-3.html": [
        "h1", ".reason", ".part h3", ".said", ".d-hit .code", ".steps p", ".step-note", ".raw pre", ".inputs", ".refuter .muted",
    ],
    "trials/booking-e1-*.html": [
        "h1", ".file summary code", ".d-add .code", ".d-del .code", ".moments pre", ".moments .label", ".result", ".raw pre", ".flag",
    ],
}  # fmt: skip
"""Page → places in which a hostile text must stand literally."""


CUT = {".d-hit .code": 280, ".d-add .code": 380, ".d-del .code": 380, ".plot text": 24, ".attachments .name": 55}
"""Characters that a place shows of a long text."""


def plain(text: str) -> str:
    """`text` with every run of white space, `_` and `-` as one space: names of flags are shown in words."""
    return re.sub(r"[\s_-]+", " ", text)


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


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every text from outside is hostile."""
    root = tmp_path_factory.mktemp("hostile")
    folder = make_results(root / "partial", "partial", spell=lambda text: f"{HOSTILE} {text}")
    return write_report([folder], root / "out", title=HOSTILE)


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    opened = context.new_page()
    opened.goto(report.as_uri())
    yield opened
    context.close()


def below(report: Path, pattern: str) -> Path:
    if pattern == "index.html":
        return report
    (found,) = report.with_name("index-files").glob(pattern)
    return found


@pytest.mark.parametrize("name", PLACES)
def test_c112_markup_in_any_text_shows_literally_and_never_runs(browser: Browser, hostile: Path, name: str) -> None:
    context = browser.new_context()
    context.add_init_script(WATCH)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(below(hostile, name).as_uri())
    page.evaluate(OPEN_ALL)
    for place in PLACES[name]:
        told = plain(SHOWN)[: CUT.get(place, len(SHOWN))]
        assert any(told in plain(text) for text in page.locator(place).all_text_contents()), place
    assert page.evaluate("window.__ran") is None and page.evaluate("window.__stopped") is None
    assert page.title() != "ran" and complaints == []
    inert = "iframe, img[onerror], svg[onload], base, object, embed, a[href^='javascript:'], a[href^='data:']"
    assert page.locator(inert).count() == 0
    assert page.locator("script").count() == 1
    root = hostile.parent.as_uri()
    assert [url for url in asked if not url.startswith(("data:", root))] == []
    context.close()


def test_c112_the_files_to_download_hold_hostile_texts_as_texts(browser: Browser, hostile: Path) -> None:
    files = hostile.with_name("index-files")
    assert {path.suffix for path in files.rglob("*") if path.is_file()} <= {
        ".html", ".json", ".svg", ".png", ".csv", ".jpg", ".mp3", ".txt", ".zip",
    }  # fmt: skip
    context = browser.new_context()
    page = context.new_page()
    for plot in ("leaderboard-1", "verdicts", "cost-1"):
        page.goto((files / f"plots/{plot}.svg").as_uri())
        assert page.evaluate("document.querySelectorAll('script, image, a, foreignObject').length") == 0
        assert page.evaluate("window.__ran") is None
    for text in files.glob("media/*.txt"):
        page.goto(text.as_uri())
        assert page.evaluate("document.contentType") == "text/plain" and page.evaluate("window.__ran") is None
    context.close()


def test_c112_nothing_that_data_says_reaches_the_terminal_as_a_command(
    run_cdb: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    folder = make_results(tmp_path / "re\x1b[31m\x9b31msults", "gold", spell=lambda text: f"{HOSTILE} {text}")
    for more in ([], ["--json"]):
        out = tmp_path / "out\x1b]0;title\x07\x9b"
        for verb in (["report", folder, "--out", out], ["compare", folder, folder]):
            ended = run_cdb([*verb, *more])
            for text in (ended.stdout, ended.stderr):
                assert all(c.isprintable() or c in "\n\t" for c in text), (verb, text)
            shown = "title" if verb[0] == "report" else "31m"
            assert shown in ended.stdout + ended.stderr, verb  # the text is there, and shown


def test_the_pages_open_without_a_complaint_and_no_picture_is_broken(browser: Browser, report: Path) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for name in (
        "index.html",
        "agents/e1-gold.html",
        "cases/kanban.html",
        "criteria/kanban-2.html",
        "trials/kanban-e3-stub.html",
    ):
        page.goto(below(report, name).as_uri())
        page.evaluate(OPEN_ALL)
        widths = page.evaluate(
            "Promise.all([...document.images].map((image) => { image.loading = 'eager'; return image.decode().then("
            "() => image.naturalWidth); }))"
        )
        assert all(width > 0 for width in widths) and (
            name in ("index.html", "agents/e1-gold.html") or len(widths) > 2
        )
    assert complaints == []
    assert all(url.startswith((report.parent.as_uri(), "data:")) for url in asked)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, report: Path, scheme: str) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    for name in (
        "index.html",
        "agents/e3-stub.html",
        "cases/booking.html",
        "criteria/booking-1.html",
        "trials/booking-e3-stub.html",
    ):
        page.goto(below(report, name).as_uri())
        page.evaluate(OPEN_ALL)
        assert serious(page) == [], name
    context.close()


def test_the_policy_stops_script_that_is_not_the_pages_own(page: Page) -> None:
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = \"document.title = 'ran'\";"
        " document.body.append(s); document.body.setAttribute('onclick', \"document.title = 'ran'\"); }"
    )
    page.locator("h1").click()
    assert page.title() == "Results on sample · Co-Design Bench"


def test_the_witnessed_column_is_shown_first_and_the_switch_changes_every_verdict(page: Page, report: Path) -> None:
    cell = page.locator(".heat tbody tr").first.locator("td").nth(2).locator("a").first
    colour = "(cell) => getComputedStyle(cell).backgroundColor"
    failed = cell.evaluate(colour)
    assert page.locator(".board:visible").get_attribute("aria-label") == "Ranking, column witnessed"
    page.get_by_role("radio", name="judge").check(force=True)
    passed = page.locator(".heat tbody tr").first.locator("td").first.locator("a").first.evaluate(colour)
    assert cell.evaluate(colour) == passed != failed
    assert page.locator(".board:visible").get_attribute("aria-label") == "Ranking, column judge"
    page.goto(below(report, "criteria/booking-1.html").as_uri())  # the choice holds on the next page
    assert page.locator("#column-judge").is_checked()


def test_a_cell_leads_to_the_evidence_it_stands_for(page: Page) -> None:
    page.locator(".strip a").nth(7).click()
    page.wait_for_url(re.compile("criteria/booking-3.html#e2-partial"))
    assert page.evaluate("document.activeElement.id") == "e2-partial"


def test_keys_walk_parts_pages_and_cells_and_can_be_switched_off(page: Page, report: Path) -> None:
    page.locator(".strip a").first.focus()
    for key in ("ArrowRight", "ArrowDown", "End", "ArrowUp"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('href')").endswith("criteria/booking-5.html#e3-stub")
    assert page.locator(".strip a[tabindex='0']").count() == 1
    page.goto(below(report, "criteria/booking-1.html").as_uri())
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "e1-gold"
    page.keyboard.press("n")
    page.wait_for_url(re.compile("criteria/booking-2.html"))
    page.keyboard.press("u")
    page.wait_for_url(re.compile("cases/booking.html#criterion-2"))
    page.keyboard.press("?")
    page.locator("#keys-on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    assert page.locator("#column-witnessed").is_checked()


def test_the_table_of_verdicts_can_be_filtered(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("spoken")
    assert page.locator(".heat tbody tr:visible").count() == 1
    expect(page.locator("#filter-count")).to_have_text("1 of 5 cases")


def test_the_slider_cuts_the_start_application_and_a_picture_can_be_enlarged(page: Page, report: Path) -> None:
    page.goto(below(report, "trials/booking-e3-stub.html").as_uri())
    slider = page.locator(".compare input").first
    slider.fill("20")
    clip = page.locator(".compare-start").first.evaluate("(box) => getComputedStyle(box).clipPath")
    assert clip == "inset(0px calc(100% - 20%) 0px 0px)" or clip == "inset(0px 80% 0px 0px)"
    page.get_by_role("button", name="Side by side").first.click()
    assert page.locator(".compare-start").first.evaluate("(box) => getComputedStyle(box).clipPath") == "none"
    page.goto(below(report, "cases/booking.html").as_uri())
    page.locator("a.picture").first.click()
    expect(page.locator("#large")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280, 1720])
def test_nothing_is_wider_than_the_window(browser: Browser, report: Path, hostile: Path, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    for root in (report, hostile):
        for name in PLACES:
            page.goto(below(root, name).as_uri())
            page.evaluate(OPEN_ALL)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
    context.close()


def test_the_pages_read_without_script_and_on_paper(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    page.locator("label[for=column-card]").click()
    assert page.locator(".board:visible").get_attribute("aria-label") == "Ranking, column card"
    page.locator(".strip a").first.click()
    assert page.locator(".trail").first.is_visible() and page.locator(".compare figure").count() >= 2
    page.emulate_media(media="print")
    assert not page.locator(".keys-button").is_visible() and page.locator(".trail").first.is_visible()
    context.close()
