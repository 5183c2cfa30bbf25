"""Two judgings side by side: every flip with its evidence, the paired difference, and a refusal of unlike things."""

from __future__ import annotations

from pathlib import Path

import pytest
from told_judgings import make_judging

from bench.errors import UsageError
from evaluator.audit.rejudge import lines, rejudge_diff
from evaluator.audit.rejudge_page import write_diff_page

ONE: dict[str, list[str | None]] = {"alpha": ["PASS", "PASS", "FAIL", "PARTIAL"], "beta": ["FAIL", "PASS"]}
TWO: dict[str, list[str | None]] = {"alpha": ["PASS", "FAIL", "FAIL", "PARTIAL"], "beta": ["FAIL", "PARTIAL"]}


def test_flips_agreement_and_the_paired_difference(tmp_path: Path) -> None:
    a, b = make_judging(tmp_path / "a", ONE), make_judging(tmp_path / "b", TWO, judge="two")
    found = rejudge_diff(a, b, "witnessed")
    flips = [(f["case"], f["criterion_index"], [s["verdict"] for s in f["sides"]]) for f in found["flips"]]
    assert flips == [("alpha", 2, ["PASS", "FAIL"]), ("beta", 2, ["PASS", "PARTIAL"])]
    assert found["flips"][0]["sides"][1]["parts"][0]["replays"][0]["reason"] == "it-did-not-hold"
    assert found["table"]["PASS"] == {"PASS": 1, "PARTIAL": 1, "FAIL": 1, "unscored": 0}
    # Strict: alpha 2/4 → 1/4, beta 1/2 → 0: differences -25 and -50 points.
    strict = found["scores"]["strict"]
    assert (strict["first"], strict["second"], strict["difference"]) == (50.0, 12.5, -37.5)
    assert strict["low"] == -50.0 and strict["high"] == -25.0 and strict["tasks"] == 2
    # Kappa: observed (1 + ¼) over six; margins PASS 3/1, PARTIAL 1/2, FAIL 2/3.
    expected = ((3 * 2 + 1 * 1 + 1 * 3 + 2 * 2) / 4 + 3 * 3 + 2 * 1) / 6
    assert found["agreement"]["value"] == pytest.approx(1 - 1.25 / expected, abs=1e-6)
    assert any("alpha criterion 2: PASS (core_holds" in line for line in lines(found))


def test_the_page_shows_both_sides_and_escapes_everything(tmp_path: Path) -> None:
    hostile = "<script>document.title='ran'</script>"
    a, b = make_judging(tmp_path / "a", ONE, text=hostile), make_judging(tmp_path / "b", TWO, text=hostile)
    page = write_diff_page(rejudge_diff(a, b, "witnessed"), tmp_path / "diff.html").read_text(encoding="utf-8")
    assert hostile not in page and "&lt;script&gt;document" in page
    assert page.count('<section class="flip"') == 2 and page.count('<img src="data:image/webp') == 4
    assert "default-src &#39;none&#39;" in page and page.count("<script") == 1


def test_other_submissions_plans_or_tasks_are_refused_with_the_difference(tmp_path: Path) -> None:
    a = make_judging(tmp_path / "a", ONE)
    for name, other, said in (
        ("digest", make_judging(tmp_path / "b", ONE, digest="e"), "submission of alpha, beta"),
        ("plan", make_judging(tmp_path / "c", ONE, plan="visual"), "criterion plan of alpha, beta"),
        ("tasks", make_judging(tmp_path / "d", {"alpha": ONE["alpha"]}), "only one of them has: beta"),
    ):
        with pytest.raises(UsageError, match=said):
            rejudge_diff(a, other, "witnessed")
        assert name
    with pytest.raises(UsageError, match="given twice"):
        rejudge_diff(a, a, "witnessed")


def test_judgings_that_agree_have_no_flip(tmp_path: Path) -> None:
    found = rejudge_diff(make_judging(tmp_path / "a", ONE), make_judging(tmp_path / "b", ONE, judge="two"), "card")
    assert (
        found["flips"] == [] and found["agreement"]["value"] == 1.0 and found["scores"]["full"]["difference"] == 0.0
    )
