"""The labelling page in a real Chromium: keys alone do, answers outlive a reload and come out as a file, nothing runs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright
from told_judgings import make_judging

from evaluator.audit.labels import read_labels
from evaluator.audit.page import sample

pytestmark = pytest.mark.browser
HOSTILE = (
    "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\"> {{ 7*7 }} \x1b[31m"
)


def test_a_labeller_works_by_keys_and_saves_a_file_that_the_report_takes(tmp_path: Path) -> None:
    executable = os.environ.get("CDB_CHROMIUM") or shutil.which("chromium")
    if executable is None:
        pytest.skip("no Chromium: set CDB_CHROMIUM")
    folder = make_judging(tmp_path / "r", {"alpha": ["PASS", "FAIL"], "beta": ["PARTIAL"]}, text=HOSTILE)
    made = sample([folder], tmp_path / "audit", column="witnessed", labels=3, seed=1)
    troubles: list[str] = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, chromium_sandbox=os.geteuid() != 0)
        page = chromium.new_page(viewport={"width": 390, "height": 800})
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: troubles.append(request.url) if request.url.startswith("http") else None)
        page.goto(made.page.as_uri())
        assert page.title() == f"Audit {made.design.audit}"
        expect(page.get_by_text("document.title='ran'").first).to_be_visible()
        expect(page.locator("section.item:not([hidden]) img").first).to_have_js_property("naturalWidth", 1100)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.keyboard.press("s")
        expect(page.locator("#progress")).to_contain_text("Write your name")
        page.keyboard.type("Ann Lee")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        expect(page.get_by_role("heading", name="Item 002")).to_be_focused()
        page.keyboard.press("n")
        page.keyboard.type("3 not 1")
        page.keyboard.press("Escape")
        page.keyboard.press("3")
        expect(page.locator("#progress")).to_contain_text("2 of 3")
        page.reload()
        expect(page.locator("#labeller")).to_have_value("Ann Lee")
        expect(page.get_by_role("heading", name="Item 003")).to_be_visible()
        page.keyboard.press("0")
        expect(page.locator("#progress")).to_contain_text("All answered")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("section.item:not([hidden]) input[value=FAIL]")).to_be_checked()
        with page.expect_download() as download:
            page.keyboard.press("s")
        saved = tmp_path / download.value.suggested_filename
        download.value.save_as(saved)
        chromium.close()
    assert saved.name == f"labels-Ann-Lee-{made.design.audit}.json"
    labels = read_labels([saved], made.design)[0]
    assert {item: label.verdict for item, label in labels.labels.items()} == {
        "001": "PASS",
        "002": "FAIL",
        "003": "UNSURE",
    }
    assert labels.labels["002"].note == "3 not 1" and labels.labeller == "Ann Lee"
    assert json.loads(saved.read_text())["schema"] == "cdb.audit_labels/1"
    assert troubles == []
