"""What a criterion's record says of its sub-requirements, as far as scoring asks: kind of evidence, and credit."""

from __future__ import annotations

from typing import Any, NamedTuple

from evaluator.records import COLUMNS, Column

_FIELDS: dict[Column, str] = {"judge": "proposed", "card": "card", "witnessed": "witnessed"}


class Part(NamedTuple):
    """One sub-requirement: what its credit rests on, and in which columns it is credited."""

    kind: str
    credited: tuple[Column, ...]


def parts_of(record: dict[str, Any]) -> tuple[Part, ...]:
    """The sub-requirements of a criterion's record; none for a record of another maker."""
    listed = record.get("sub_requirements")
    subs = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return tuple(Part(_kind(sub), tuple(c for c in COLUMNS if sub.get(_FIELDS[c]) is True)) for sub in subs)


def _kind(sub: dict[str, Any]) -> str:
    pair = sub.get("pair")
    if sub.get("witness"):
        return "witness"
    if isinstance(pair, dict) and pair.get("outcome") == "won":
        return "pair"
    return "citation" if sub.get("citations") else "word"
