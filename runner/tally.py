"""What a journal of ours holds so far, read on from where it was last left, so that looking often costs little."""

from __future__ import annotations

from pathlib import Path

from bench.journal import Record, parse_line
from bench.usage import summed, usages_of


class Tally:
    """The counts of one journal. The chain is not checked: this is for looking, not for scoring."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials: dict[str, str] = {}
        """Case → outcome of its last trial."""
        self.criteria: dict[tuple[str, int], bool] = {}
        """Criterion → whether its last record has a verdict."""
        self.cases: set[str] = set()
        self.usd: float | None = 0.0
        self._offset = 0
        self._lines = 0

    def read_on(self) -> Tally:
        """Take in what was written since. Raises DataError naming a line that is no record."""
        if not self.path.is_file():
            return self
        with self.path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    break  # torn, or being written
                self._offset += len(line)
                self._lines += 1
                self._take(parse_line(line, self._lines, self.path))
        return self

    @property
    def decided(self) -> int:
        return sum(self.criteria.values())

    def outcomes(self) -> dict[str, int]:
        """How many cases' last trials ended how."""
        listed = list(self.trials.values())
        return {outcome: listed.count(outcome) for outcome in sorted(set(listed))}

    def _take(self, record: Record) -> None:
        match record.get("type"):
            case "trial":
                self.trials[str(record.get("case"))] = str(record.get("outcome"))
            case "criterion":
                key = (str(record.get("case")), int(record.get("criterion_index") or 0))
                self.criteria[key] = record.get("verdict") is not None
            case "case":
                self.cases.add(str(record.get("case")))
        cost = summed(usages_of(record)).get("cost_usd", 0.0)
        self.usd = None if cost is None or self.usd is None else self.usd + cost
