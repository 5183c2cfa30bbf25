"""A report of ME-96's size: 96 cases, 521 criteria, 4 entries."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from test_report_in_browser import browser as browser  # noqa: PLC0414

from evaluator.report import write_report
from scripts.make_full_size_results import make

SIZES = {"phone": (390, 844), "laptop": (1280, 800), "wide": (1720, 1000)}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("full")
    return write_report(make(root, distinct=False), root / "report")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_full_size_report_opens_within_two_seconds_without_a_complaint(
    browser: Browser, report: Path, size: str
) -> None:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    complaints: list[str] = []
    files = report.with_name("index-files")
    assert len(list(files.rglob("*.html"))) == 4 + 96 + 521 + 384
    pages = [report, *(next(files.glob(f"{kind}/*.html")) for kind in ("agents", "cases", "criteria", "trials"))]
    for page in pages:
        opened = context.new_page()
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        best = 99.0
        for _ in range(2):  # the machine may be busy with something else just then
            began = time.monotonic()
            opened.goto(page.as_uri())
            opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            best = min(best, time.monotonic() - began)
        assert best < 2.0, (page.name, best)
        assert opened.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        opened.close()
    assert complaints == []
    context.close()
