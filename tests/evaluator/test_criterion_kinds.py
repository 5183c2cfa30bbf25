"""The criterion kinds that app-editing tasks ask for most: each is a witness that tells a right from a wrong page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluator.browser import AppBrowser
from evaluator.records import Replay
from evaluator.replay import run_witness
from evaluator.try_witness import local_browser, serve
from evaluator.witness import Witness, load_witness

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parent / "kinds"
KINDS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "kinds.yaml").read_text(encoding="utf-8"))
WRONG_PATIENCE = 0.15
GROUPS = {
    "accessibility", "behaviour", "canvas", "charts", "content", "data", "drag and drop", "export", "filtering", "i18n",
    "import", "keyboard", "layout", "media", "notifications", "persistence", "preservation", "responsive", "routing",
    "search", "sorting", "structure", "theme", "timing", "undo", "validation", "visual",
}  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[AppBrowser]:
    with serve(FOLDER) as address, local_browser(address) as opened:
        yield opened


def witness(kind: dict[str, Any], query: str) -> Witness:
    path = f"/{kind['page']}.html{query}{kind.get('hash', '')}"
    parts = {name: kind[name] for name in ("viewport", "inputs", "vary") if name in kind}
    return load_witness({"schema": "cdb.witness/1", "path": path, "steps": kind["steps"], **parts})


def run(browser: AppBrowser, program: Witness, folder: Path, **more: Any) -> Replay:
    settings: dict[str, Any] = {"app": "submission", "purpose": "propose", "frames_dir": None}
    return run_witness(browser, program, results_root=folder, **(settings | more))


def test_there_are_sixty_kinds_and_more_of_every_group() -> None:
    assert len({kind["kind"] for kind in KINDS}) == len(KINDS) >= 60
    assert {kind["group"] for kind in KINDS} == GROUPS


@pytest.mark.parametrize("kind", KINDS, ids=[kind["kind"] for kind in KINDS])
def test_the_witness_holds_on_the_right_page_and_fails_on_the_wrong_one(
    browser: AppBrowser, tmp_path: Path, kind: dict[str, Any]
) -> None:
    more: dict[str, Any] = {}
    if "start" in kind:
        begun = run(browser, witness(kind, kind["start"]), tmp_path, app="start", purpose="vacuity")
        compared = [
            str(n) for n, step in enumerate(kind["steps"], 1) if step.get("expect") in ("changed", "unchanged")
        ]
        assert list(begun.readings) == compared
        assert begun.outcome == ("failed" if kind["steps"][0]["expect"] == "changed" else "held")
        more["reference"] = begun.readings
    right = witness(kind, kind.get("right", ""))
    for inputs in [{}, *right.vary]:
        replay = run(browser, right, tmp_path, inputs=inputs, **more)
        assert (replay.outcome, replay.reason) == ("held", "")
    wrong = witness(kind, kind.get("wrong", "?wrong"))
    for inputs in [{}, *wrong.vary]:
        replay = run(browser, wrong, tmp_path, inputs=inputs, patience=WRONG_PATIENCE, **more)
        if replay.outcome != "held":
            break
    assert replay.outcome == "failed", replay
    failed = wrong.steps[(replay.failed_step or 0) - 1]
    assert hasattr(failed, "expect") or kind.get("at_action"), replay.reason
