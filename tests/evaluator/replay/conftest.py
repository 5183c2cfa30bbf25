"""One Chromium and one server of the fixture applications for each file of replay tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.browser import AppBrowser
from evaluator.records import Replay
from evaluator.replay import run_witness
from evaluator.try_witness import local_browser, serve
from evaluator.witness import load_witness

APPS = Path(__file__).parent.parent / "apps"
Run = Callable[..., Replay]


@pytest.fixture(scope="module")
def browser() -> Iterator[AppBrowser]:
    """Not for the whole session: while Playwright runs, this thread can run no other event loop."""
    with serve(APPS) as address, local_browser(address) as browser:
        yield browser


@pytest.fixture
def run(browser: AppBrowser, tmp_path: Path) -> Run:
    """Runs steps on a fixture page: `run("forms.html", [{…}, …], inputs=…, **arguments of run_witness)`."""

    def on_page(page: str, steps: list[dict[str, Any]], *, inputs: Any = None, **more: Any) -> Replay:
        witness = load_witness(
            {"schema": "cdb.witness/1", "path": f"/{page}", "inputs": inputs or {}, "steps": steps}
        )
        settings = {"app": "submission", "purpose": "propose", "frames_dir": None, "results_root": tmp_path}
        return run_witness(browser, witness, **(settings | more))

    return on_page
