"""What a person should look at first, and that an advocate is heard without changing a verdict."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from evaluator.audit_queue import REASONS, audit_queue, reasons, write_audit_queue
from evaluator.judges.judge import Advocacy


def record(case: str = "shop", index: int = 1, **more: Any) -> dict[str, Any]:
    base = {
        "case": case, "criterion_index": index, "criterion": "It adds up.", "outcome": "ok", "verdict": "PASS",
        "flags": [], "sub_requirements": [], "columns": {"judge": {"verdict": "PASS", "rule": "all_hold"}},
    }  # fmt: skip
    return {**base, **more}


def test_a_plain_verdict_is_not_in_the_queue() -> None:
    assert audit_queue([record(), record(flags=["lowered"], verdict="FAIL")]) == []


def test_the_most_doubtful_comes_first_and_ties_keep_the_rubric_s_order() -> None:
    queue = audit_queue([
        record(index=1, flags=["flaky"]),
        record(index=2, flags=["unplanned", "attempt_holds"], verdict="FAIL"),
        record(index=3, flags=["flaky"]),
        record(index=4, outcome="judge_error", verdict=None, columns={}),
    ])  # fmt: skip
    assert [(one["criterion_index"], one["weight"]) for one in queue] == [(2, 100), (4, 80), (1, 30), (3, 30)]
    assert [one["name"] for one in queue[0]["reasons"]] == ["attempt_holds", "unplanned"]
    assert queue[0]["evidence"] == "evidence/shop/02"


def test_what_the_parts_say_counts_as_well() -> None:
    bare = record(sub_requirements=[{"lowered_by": "no_witness", "refutation": None}])
    doubted = record(sub_requirements=[{"lowered_by": "unstable", "refutation": {"outcome": "inconclusive"}}])
    assert reasons(bare) == ["claimed_not_shown"]
    assert reasons(doubted) == ["unstable", "inconclusive"]


def test_every_set_of_reasons_weighs_what_its_parts_weigh() -> None:
    flags = [
        name for name in REASONS if name not in ("unverified", "judge_error", "claimed_not_shown", "inconclusive")
    ]
    for pair in itertools.combinations(flags, 2):
        [entry] = audit_queue([record(flags=list(pair))])
        assert entry["weight"] == sum(REASONS[name].weight for name in pair)
    weights = [reason.weight for reason in REASONS.values()]
    assert weights == sorted(weights, reverse=True)


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    assert write_audit_queue(tmp_path, [record(flags=["flaky"]), record()]) == 1
    told = json.loads((tmp_path / "audit_queue.json").read_text())
    assert (told["schema"], len(told["criteria"])) == ("cdb.audit_queue/1", 1)


def test_a_tenth_of_the_criteria_is_drawn_the_same_ones_for_every_entry() -> None:
    keys = [(f"case-{n}", index) for n in range(200) for index in range(1, 6)]
    drawn = [key for key in keys if Advocacy(0.1).draws(*key)]
    assert 70 <= len(drawn) <= 130
    assert drawn == [key for key in keys if Advocacy(0.1, 0).draws(*key)]
    assert drawn != [key for key in keys if Advocacy(0.1, 1).draws(*key)]
    assert set(drawn) <= {key for key in keys if Advocacy(0.3).draws(*key)}
    assert [key for key in keys if Advocacy(0.0).draws(*key)] == []
    assert all(Advocacy(1.0).draws(*key) for key in keys)
