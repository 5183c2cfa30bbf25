"""How far a judging has come, from its journal: what needs no more work."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from bench.journal import Record, of_type
from evaluator.cases import Case

Key = tuple[str, int]
"""Case and criterion index."""


@dataclass(frozen=True)
class Judged:
    """The last record of each criterion, and which cases have a record of their own."""

    last: dict[Key, dict[str, Any]]
    recorded: frozenset[str]

    @property
    def decided(self) -> set[Key]:
        """Criteria with a verdict."""
        return {key for key, record in self.last.items() if record["verdict"] is not None}

    def outcome(self, key: Key) -> str:
        """How a criterion stands; "" when it has no record."""
        return str(self.last[key]["outcome"]) if key in self.last else ""

    def is_finished(self, case: Case, done: Set[Key]) -> bool:
        """Every criterion is in `done` and the case has its own record, which is written after them."""
        return case.case in self.recorded and all((case.case, c.criterion_index) in done for c in case.criteria)


def judged_so_far(records: list[Record]) -> Judged:
    last = {(r["case"], r["criterion_index"]): r for r in of_type(records, "criterion")}
    return Judged(last, frozenset(str(record["case"]) for record in of_type(records, "case")))
