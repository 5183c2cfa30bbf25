"""What kind of evidence the credit of an entry rests on: witnesses, blind pairs, citations, a judge's word alone."""

from __future__ import annotations

from collections.abc import Iterable

from evaluator.metrics import percent
from evaluator.records import COLUMNS, Column
from evaluator.verdict_parts import Part
from evaluator.verdicts import PARTIAL, PASS, VerdictTable

KINDS = ("witness", "pair", "citation", "word", "unknown")
_POINTS = {PASS: 1.0, PARTIAL: 0.5}


def evidence_shares(table: VerdictTable) -> dict[Column, dict[str, float | None]]:
    """For each column the points (1 a PASS, ½ a PARTIAL, over all attempts) and the percentage of them by kind.

    A criterion's points are split evenly over its credited sub-requirements. `unknown`: records without any, such as
    a foreign journal's, a verdict that a person set or one that the whole case decided."""
    return {column: _shares(table, column) for column in COLUMNS}


def _shares(table: VerdictTable, column: Column) -> dict[str, float | None]:
    points = dict.fromkeys(KINDS, 0.0)
    codes = table.codes[COLUMNS.index(column)]
    for code, worth in _POINTS.items():
        rows, positions = (codes == code).nonzero()
        for row, position in zip(rows.tolist(), positions.tolist(), strict=True):
            kinds = _credited(table.parts.get((row, position), ()), column)
            for kind in kinds:
                points[kind] += worth / len(kinds)
    total = sum(points.values())
    shares = {kind: percent(points[kind] / total) if total else None for kind in KINDS}
    return {"points": round(total, 4), **shares}


def _credited(parts: Iterable[Part], column: Column) -> list[str]:
    return [part.kind for part in parts if column in part.credited] or ["unknown"]
