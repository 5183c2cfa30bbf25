"""What an entry's credit rests on, by kind of evidence and column."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from evaluator.evidence_shares import KINDS, evidence_shares
from evaluator.verdict_parts import parts_of
from evaluator.verdicts import FAIL, PARTIAL, PASS, CriterionIndex, VerdictTable


def sub(kind: str, *, card: bool = True, witnessed: bool = True) -> dict[str, Any]:
    more: dict[str, Any] = {
        "witness": {"witness": "a.witness.json"}, "pair": {"pair": {"outcome": "won"}},
        "citation": {"citations": [{"path": "a.js", "quote": "x"}]}, "word": {"pair": {"outcome": "lost"}},
    }[kind]  # fmt: skip
    return {"proposed": True, "card": card, "witnessed": witnessed, **more}


def table(codes: list[list[int]], parts: dict[int, list[dict[str, Any]]]) -> VerdictTable:
    """One attempt; `codes` one row a column (judge, card, witnessed)."""
    array = np.array(codes, dtype=np.uint8)[:, None, :]
    listed = {(0, place): parts_of({"sub_requirements": subs}) for place, subs in parts.items()}
    index = CriterionIndex.__new__(CriterionIndex)
    seen = np.ones(array.shape[1:], dtype=np.bool_)
    return VerdictTable(index, [1], array, seen, {}, listed, {}, Counter(), [])


def test_points_are_split_over_credited_parts() -> None:
    subs = {0: [sub("witness"), sub("pair")], 1: [sub("witness")], 2: [sub("citation", witnessed=False)], 3: []}
    found = evidence_shares(
        table([[PASS, PARTIAL, PASS, PASS], [PASS, PARTIAL, PASS, PASS], [PASS, PARTIAL, FAIL, FAIL]], subs)
    )
    assert found["witnessed"] == {
        "points": 1.5,
        "witness": 66.6667,
        "pair": 33.3333,
        "citation": 0.0,
        "word": 0.0,
        "unknown": 0.0,
    }
    assert found["judge"]["points"] == 3.5
    assert round(found["judge"]["citation"] or 0, 2) == round(found["judge"]["unknown"] or 0, 2) == 28.57


def test_a_part_that_lost_its_credit_has_no_share_and_a_lost_pair_is_a_word() -> None:
    subs = {0: [sub("witness"), sub("word", card=True, witnessed=False)]}
    found = evidence_shares(table([[PASS], [PASS], [PARTIAL]], subs))
    assert (found["witnessed"]["witness"], found["card"]["word"], found["card"]["witness"]) == (100.0, 50.0, 50.0)


def test_no_credit_has_no_shares() -> None:
    found = evidence_shares(table([[FAIL], [FAIL], [FAIL]], {}))
    assert found["card"] == {"points": 0.0, **dict.fromkeys(KINDS)}
