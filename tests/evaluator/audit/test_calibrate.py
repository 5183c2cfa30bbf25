"""A judge measured against known verdicts: false and missed credit by kind of application, and nothing else measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from told_judgings import make_judging

from bench.errors import UsageError
from evaluator.audit.calibrate import calibrate, lines

TRUTH = {"gold": {"1": "PASS", "2": "PASS"}, "stub": {"1": "FAIL", "2": "PARTIAL"}}


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    for case in ("alpha", "beta"):
        (tmp_path / "truth" / case).mkdir(parents=True)
        (tmp_path / "truth" / case / "truth.json").write_text(json.dumps({"case": case, "truth": TRUTH}))
    return tmp_path / "truth"


def judged(folder: Path, edit: str | None, verdicts: dict[str, list[str | None]], judge: str = "one") -> Path:
    make_judging(folder, verdicts, judge=judge)
    told = json.loads((folder / "cases.json").read_text())
    told["solve"] = {"agent": {"kind": "replay", "edit": edit} if edit else {"kind": "claude-code"}}
    (folder / "cases.json").write_text(json.dumps(told))
    return folder


def test_false_and_missed_credit_by_kind(tmp_path: Path, truth: Path) -> None:
    gold = judged(tmp_path / "gold", "gold", {"alpha": ["PASS", "PARTIAL"], "beta": ["PASS", "PASS"]})
    stub = judged(tmp_path / "stub", "stub", {"alpha": ["PASS", "PARTIAL"], "beta": ["FAIL", "FAIL"]})
    found = calibrate([gold, stub], truth)["columns"]["witnessed"]
    assert found["confusion"]["PASS"] == {"FAIL": 0, "PARTIAL": 1, "PASS": 3, "unscored": 0}
    assert found["confusion"]["FAIL"] == {"FAIL": 1, "PARTIAL": 0, "PASS": 1, "unscored": 0}
    stubs, golds = found["kinds"]["stub"], found["kinds"]["gold"]
    assert (stubs["false_credit"]["n"], stubs["false_credit"]["of"], stubs["false_credit"]["rate"]) == (1, 4, 25.0)
    assert (stubs["missed_credit"]["n"], stubs["missed_credit"]["of"]) == (1, 2)
    assert golds["false_credit"]["rate"] is None and golds["missed_credit"]["n"] == 1
    assert any("stub" in line and "1/4 (25 %" in line for line in lines(calibrate([gold, stub], truth)))


def test_what_has_no_truth_and_several_judges_are_refused(tmp_path: Path, truth: Path) -> None:
    verdicts: dict[str, list[str | None]] = {"alpha": ["PASS", "PASS"]}
    gold = judged(tmp_path / "gold", "gold", verdicts)
    with pytest.raises(UsageError, match="not the sample's recorded edits"):
        calibrate([judged(tmp_path / "own", None, verdicts)], truth)
    with pytest.raises(UsageError, match="has no truth"):
        calibrate([judged(tmp_path / "other", "unheard-of", verdicts)], truth)
    with pytest.raises(UsageError, match="different judges"):
        calibrate([gold, judged(tmp_path / "two", "stub", verdicts, judge="two")], truth)
