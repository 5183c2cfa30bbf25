"""The winning verdicts of a journal, ours or foreign, as a table of small numbers: one pass, flat memory."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import DataError
from bench.journal import JournalStream, parse_line
from bench.strict_json import parse_json
from evaluator.cases import Cases
from evaluator.records import COLUMNS, Column, Verdict
from evaluator.verdict_parts import Part, parts_of

NONE, FAIL, PARTIAL, PASS = range(4)
CODES: dict[Any, int] = {None: NONE, "FAIL": FAIL, "PARTIAL": PARTIAL, "PASS": PASS}
NAMES: tuple[Verdict | None, ...] = (None, "FAIL", "PARTIAL", "PASS")
WARNINGS_SHOWN = 20
"""Of each kind of warning this many are written out; the rest is counted."""

_PACKED: dict[Any, int] = {verdict: code * 0b010101 for verdict, code in CODES.items()}
"""The same verdict in all three columns: two bits a column, `judge` lowest."""
MAX_SEQ = 2**63 - 1
"""A foreign line's `seq` beyond it is not looked at: the line's number stands for it."""
_CRITERION_NAMES = ("criterion_index", "rubric_id", "criterion")

Place = tuple[int, int]
"""Attempt (position in `VerdictTable.attempts`) and criterion (position in `CriterionIndex`)."""


class CriterionIndex:
    """Positions of the criteria of a cases.json, in its order, found by case and index, rubric id or text."""

    def __init__(self, cases: Cases) -> None:
        self.keys: list[tuple[str, int]] = []
        self.starts: list[int] = []
        """Position of each case's first criterion."""
        self.by_case: dict[str, dict[str | int, int]] = {}
        for case in cases.cases:
            self.starts.append(len(self.keys))
            if not case.criteria:  # its rubric could not be read: one criterion that nothing can score
                self.keys.append((case.case, 0))
                continue
            names: dict[str | int, int] = {}
            for criterion in case.criteria:
                position = len(self.keys)
                for name in {criterion.criterion, criterion.rubric_id}:
                    names[name] = -1 if name in names else position  # -1: this name stands for several criteria
                names[criterion.criterion_index] = position
                self.keys.append((case.case, criterion.criterion_index))
            self.by_case[case.case] = names

    def find(self, record: dict[str, Any]) -> int | None:
        """Position of the criterion a line is about; None when these cases have no such criterion."""
        case = record["case"] if "case" in record else record.get("case_id")
        names = self.by_case.get(case) if type(case) is str else None
        if names is None:
            return None
        for name in _CRITERION_NAMES:
            if name in record:
                value = record[name]
                kind = type(value)  # True would be found as 1
                if (kind is int or kind is str) and value in names:
                    return names[value]
        return None


@dataclass
class VerdictTable:
    """What won. `codes` has the shape (columns, attempts, criteria), with 0 where there is no verdict."""

    index: CriterionIndex
    attempts: list[int]
    codes: NDArray[np.uint8]
    seen: NDArray[np.bool_]
    """(attempts, criteria): a record is there, with a verdict or without."""
    trouble: dict[Place, tuple[str, str]]
    """Outcome and reason of each record that won without a verdict."""
    parts: dict[Place, tuple[Part, ...]]
    """The sub-requirements of each record that won and has some."""
    cases: dict[str, dict[str, Any]]
    """The last `case` record of each case, for journals of ours."""
    flags: Counter[str]
    warnings: list[str]

    def verdict(self, place: Place, column: Column) -> Verdict | None:
        return NAMES[int(self.codes[COLUMNS.index(column), place[0], place[1]])]


@dataclass
class Warnings:
    """Warnings by kind: the first ones in full, the rest as a count, so that a big journal stays readable."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def add(self, kind: str, line: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= WARNINGS_SHOWN:
            self.lines.append(line)

    def all(self) -> list[str]:
        more = [f"{n - WARNINGS_SHOWN} more lines: {kind}" for kind, n in self.counts.items() if n > WARNINGS_SHOWN]
        return [*self.lines, *more]


class _Attempt:
    """The verdicts of one attempt while the journal is read: for each criterion who won and what it says."""

    def __init__(self, criteria: int) -> None:
        self.won_by = array("q", bytes(8 * criteria))  # seq or line number of the winner; 0 = nobody yet
        self.packed = bytearray(criteria)


def read_verdicts(journal: Path, cases: Cases, *, attempts: bool = False) -> VerdictTable:
    """Read a journal, ours or foreign.

    A foreign line needs `case` (or `case_id`), `criterion` (a position, or the text or id of the rubric; also under
    `criterion_index` or `rubric_id`) and `verdict`; it stands for all three columns. A second verdict for a
    criterion is ignored with a warning unless its `supersedes` names the winner so far (`seq`, or the line number).
    In a journal of ours every line has a type, and only a record without a verdict is superseded.
    `attempts`: a line's `attempt` (a whole number from 1) says of which independent attempt it is; otherwise it is
    not looked at. Raises DataError naming the line for a broken chain, a line that is not JSON, or an odd verdict.
    """
    return _Reading(journal, cases, attempts=attempts).table()


class _Reading:
    """One pass over one journal."""

    def __init__(self, journal: Path, cases: Cases, *, attempts: bool) -> None:
        self.journal = journal
        self.index = CriterionIndex(cases)
        self.by_attempt = attempts
        self.ours = journal.is_file() and _is_ours(journal)
        self.found: dict[int, _Attempt] = {}
        self.flags: dict[tuple[int, int], list[str]] = {}
        self.trouble: dict[tuple[int, int], tuple[str, str]] = {}
        self.parts: dict[tuple[int, int], tuple[Part, ...]] = {}
        self.cases: dict[str, dict[str, Any]] = {}
        self.warnings = Warnings()

    def table(self) -> VerdictTable:
        self._read()
        numbers = sorted(self.found) or [1]
        criteria = len(self.index.keys)
        codes = np.zeros((len(COLUMNS), len(numbers), criteria), dtype=np.uint8)
        seen = np.zeros((len(numbers), criteria), dtype=np.bool_)
        for row, number in enumerate(numbers):
            attempt = self.found.get(number) or _Attempt(criteria)
            seen[row] = np.frombuffer(attempt.won_by, dtype=np.int64) != 0
            for column in range(len(COLUMNS)):
                codes[column, row] = np.frombuffer(attempt.packed, dtype=np.uint8) >> 2 * column & 3
        rows = {number: row for row, number in enumerate(numbers)}
        flags = Counter(flag for given in self.flags.values() for flag in given)
        for record in self.cases.values():
            flags.update(_flags(record))
        trouble = {(rows[number], position): said for (number, position), said in self.trouble.items()}
        parts = {(rows[number], position): said for (number, position), said in self.parts.items()}
        return VerdictTable(self.index, numbers, codes, seen, trouble, parts, self.cases, flags, self.warnings.all())

    def _read(self) -> None:
        """The loop that has to be fast: 10⁶ lines take less than twice the time of parsing them."""
        find, found, by_attempt, criteria = self.index.find, self.found, self.by_attempt, len(self.index.keys)
        for number, record in _lines(self.journal, self.warnings, ours=self.ours):
            if "type" in record and record["type"] != "criterion":
                if record["type"] == "case" and type(record.get("case")) is str:
                    self.cases[record["case"]] = record
                continue
            position = find(record)
            if position is None or position < 0:
                self._unknown(number, position)
                continue
            attempt = self._attempt_of(record, number) if by_attempt else 1
            if attempt not in found:
                found[attempt] = _Attempt(criteria)
            if "supersedes" in record or found[attempt].won_by[position]:
                if not self._wins(record, number, attempt, position):
                    continue
                attempt = self._replaced(record, attempt, position)
            self._take(record, number, attempt, position)

    def _take(self, record: dict[str, Any], number: int, attempt: int, position: int) -> None:
        packed = self._codes(record, number)
        slot = self.found[attempt]
        seq = record.get("seq", number)
        slot.won_by[position] = seq if type(seq) is int and 0 < seq <= MAX_SEQ else number
        slot.packed[position] = packed
        if not packed >> 4:
            said = str(record.get("outcome") or "unscored"), str(record.get("reason") or "")
            self.trouble[attempt, position] = said
        elif self.trouble:
            self.trouble.pop((attempt, position), None)
        if record.get("sub_requirements"):
            self.parts[attempt, position] = parts_of(record)
        elif self.parts:
            self.parts.pop((attempt, position), None)
        if record.get("flags"):
            self.flags[attempt, position] = _flags(record)
        elif self.flags:
            self.flags.pop((attempt, position), None)

    def _wins(self, record: dict[str, Any], number: int, attempt: int, position: int) -> bool:
        """Whether a line may stand: the first for its criterion, or one that names the winner it replaces."""
        superseded = record.get("supersedes")
        if not self.found[attempt].won_by[position] and superseded is None:
            return True
        holder = None if superseded is None else self._holder(superseded, position)
        case, index = self.index.keys[position]
        if holder is not None and self.ours and self.found[holder].packed[position]:
            what = f"supersedes the verdict of line {superseded} for {case} criterion {index}, which was decided"
            self.warnings.add("replace a decided verdict, ignored", f"line {number}: {what}, ignored")
            return False
        if holder is not None:
            return True
        if superseded is not None and not self.found[attempt].won_by[position]:
            what = f"supersedes {superseded!r}, which is no verdict for {case} criterion {index}"
            self.warnings.add("supersede nothing that is there, ignored", f"line {number}: {what}, ignored")
            return False
        hint = " (`attempt` is looked at only with --attempts)" if "attempt" in record and not self.by_attempt else ""
        self.warnings.add(
            "second verdicts, ignored", f"line {number}: a second verdict for {case} criterion {index}, ignored{hint}"
        )
        return False

    def _holder(self, superseded: object, position: int) -> int | None:
        """The attempt in which line `superseded` holds this criterion."""
        if type(superseded) is not int:
            return None
        return next((n for n, a in self.found.items() if a.won_by[position] == superseded), None)

    def _replaced(self, record: dict[str, Any], attempt: int, position: int) -> int:
        superseded = record.get("supersedes")
        if superseded is None:
            return attempt
        holder = self._holder(superseded, position)
        return attempt if holder is None else holder

    def _unknown(self, number: int, position: int | None) -> None:
        if position is None:
            kind, what = "no such criterion, ignored", "no such criterion in these cases, ignored"
        else:
            kind, what = "ambiguous, ignored", "its name stands for several criteria; give criterion_index. Ignored"
        self.warnings.add(kind, f"line {number}: {what}")

    def _attempt_of(self, record: dict[str, Any], number: int) -> int:
        attempt = record.get("attempt", 1)
        if type(attempt) is not int or attempt < 1:
            raise DataError(f"{self.journal}, line {number}: attempt {attempt!r}; give a whole number from 1")
        return attempt

    def _codes(self, record: dict[str, Any], number: int) -> int:
        """The verdicts of all columns, packed. A record of ours names all three; any other has one for all."""
        try:
            columns = record.get("columns")
            if not columns:
                return _PACKED[record["verdict"]]
            return (
                CODES[columns["judge"]["verdict"]]
                | CODES[columns["card"]["verdict"]] << 2
                | CODES[columns["witnessed"]["verdict"]] << 4
            )
        except (KeyError, TypeError):
            raise DataError(f"{self.journal}, line {number}: {_odd(record)}") from None


def _odd(record: dict[str, Any]) -> str:
    if "verdict" not in record:
        return f"no `verdict`; found {sorted(record)}"
    given = record.get("columns") or record["verdict"]
    return f"verdict {given!r}; allowed are PASS, PARTIAL and FAIL, for each of the columns {', '.join(COLUMNS)}"


def _flags(record: dict[str, Any]) -> list[str]:
    flags = record.get("flags")
    return [flag for flag in flags if isinstance(flag, str)] if isinstance(flags, list) else []


def _lines(journal: Path, warnings: Warnings, *, ours: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and records. A journal of ours must hold its hash chain; a foreign one is taken as it is."""
    if not journal.is_file():
        raise DataError(f"{journal} does not exist; make it with `cdb judge`")
    if ours:
        stream = JournalStream(journal)
        for number, record in enumerate(stream, start=1):
            if "type" not in record:
                raise DataError(f"{journal}, line {number}: a record without a type; no judging of ours writes one")
            yield number, record
        if stream.torn_bytes:
            warnings.add("torn", "the last line is torn (no newline), ignored")
    else:
        yield from _foreign_lines(journal, warnings)


def _is_ours(journal: Path) -> bool:
    """By the first line that is not blank; a later line of the other kind is an error."""
    with journal.open("rb") as stream:
        return b'"cdb.journal/' in next((line for line in stream if line.strip()), b"")


def _foreign_lines(journal: Path, warnings: Warnings) -> Iterator[tuple[int, dict[str, Any]]]:
    with journal.open("rb", buffering=1 << 20) as stream:
        for number, line in enumerate(stream, start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.isspace():
                continue
            try:
                record = parse_line(line, number, journal)
            except DataError:
                if line.endswith(b"\n"):
                    raise
                warnings.add("torn", "the last line is torn, ignored")
                return
            if "schema" in record or line.count(b'"verdict"') > 1:
                _check_foreign(record, line, number, journal)
            yield number, record


def _check_foreign(record: dict[str, Any], line: bytes, number: int, journal: Path) -> None:
    if str(record.get("schema")).startswith("cdb.journal/"):
        raise DataError(f"{journal}, line {number}: a line of a journal of ours among foreign ones; score them apart")
    parse_json(line, f"{journal}, line {number}")  # raises where one object has a key twice
