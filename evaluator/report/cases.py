"""The cases of the page in order, each with its request, its criteria and every entry's finding on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.records import COLUMNS, Column, Verdict
from evaluator.report.anchors import anchor
from evaluator.report.criteria import Finding, make_finding
from evaluator.report.entries import Entry
from evaluator.report.pictures import Picture, Shelf
from evaluator.report.reading import Json, items
from evaluator.report.words import ATTACHMENT_WORDS, SHOT_WORDS, in_words


@dataclass(frozen=True)
class CriterionRow:
    """One criterion and, in the order of the page's entries, what was found."""

    anchor: str
    index: int
    rubric_id: str
    text: str
    kind: str
    findings: list[tuple[Entry, str, Finding]]
    """(entry, its anchor within this criterion, finding)"""


@dataclass(frozen=True)
class Standing:
    """How one entry did on one case: passes per column, the outcome when it was no plain judging, its shots."""

    entry: Entry
    passes: dict[Column, int]
    outcome: str
    reason: str
    flags: list[str]
    shots: list[tuple[str, Picture]]


@dataclass(frozen=True)
class CaseView:
    anchor: str
    id: str
    title: str
    attachment: str
    request: str
    annotation: Picture | None
    criteria: list[CriterionRow]
    standings: list[Standing]


@dataclass(frozen=True)
class Tally:
    """How many criteria of an entry have each verdict in one column."""

    passed: int
    partial: int
    failed: int
    unscored: int

    def parts(self) -> list[tuple[str, str, int]]:
        """(CSS name, word, count) of what is there, best first."""
        named = [("pass", "pass", self.passed), ("partial", "partial", self.partial), ("fail", "fail", self.failed)]
        return [part for part in [*named, ("none", "unscored", self.unscored)] if part[2]]


def make_cases(entries: Sequence[Entry], shelf: Shelf) -> list[CaseView]:
    """Every case any entry knows, in the order of the first cases.json that lists it."""
    listed: dict[str, tuple[Json, Path]] = {}
    for entry in entries:
        for case in entry.results.cases:
            listed.setdefault(case["case"], (case, entry.results.folder))
        for case_id in [key[0] for key in entry.results.criteria] + list(entry.results.case_records):
            listed.setdefault(case_id, ({"case": case_id}, entry.results.folder))
    known = [(case_id, *listed[case_id]) for case_id in listed]
    _stock(known, entries, shelf)
    return [_case(case_id, case, folder, entries, shelf) for case_id, case, folder in known]


def _stock(known: Sequence[tuple[str, Json, Path]], entries: Sequence[Entry], shelf: Shelf) -> None:
    """Give room on the shelf first to what verdicts stand on, case by case, then to the cases' own shots.

    Frames of single steps, asked for last while the findings are made, get what is left.
    """
    for case_id, case, folder in known:
        _annotation(case, folder, shelf)
        for entry in entries:
            for (owner, _), record in entry.results.criteria.items():
                for name in (record.start_frame, record.submission_frame):
                    if owner == case_id and name:
                        shelf.take_inside(entry.results.folder, name)
    for entry in entries:
        for case_record in entry.results.case_records.values():
            for name in case_record.shots.values():
                shelf.take_inside(entry.results.folder, name)


def tally(cases: Sequence[CaseView], entry: Entry, column: Column) -> Tally:
    """Count `entry`'s verdicts over all criteria of `cases`."""
    verdicts: list[Verdict | None] = [
        finding.verdict(column)
        for case in cases
        for row in case.criteria
        for owner, _, finding in row.findings
        if owner is entry
    ]
    return Tally(verdicts.count("PASS"), verdicts.count("PARTIAL"), verdicts.count("FAIL"), verdicts.count(None))


def _case(case_id: str, case: Json, folder: Path, entries: Sequence[Entry], shelf: Shelf) -> CaseView:
    rows = [_row(case_id, criterion, entries, shelf) for criterion in _criteria(case_id, case, entries)]
    title, request, attachment = (case.get(key) for key in ("title", "request", "attachment"))
    return CaseView(
        anchor=anchor("case", case_id),
        id=case_id,
        title=str(title or case_id),
        attachment=ATTACHMENT_WORDS.get(str(attachment), str(attachment or "")),
        request=str(request or ""),
        annotation=_annotation(case, folder, shelf),
        criteria=rows,
        standings=[_standing(entry, case_id, rows, shelf) for entry in entries],
    )


def _annotation(case: Json, folder: Path, shelf: Shelf) -> Picture | None:
    name = case.get("annotation")
    return shelf.take(folder / name, Path(name).name) if isinstance(name, str) and name else None


def _criteria(case_id: str, case: Json, entries: Sequence[Entry]) -> list[tuple[int, str, str, str]]:
    """(index, rubric id, text, kind) by index: the rubric's own list, then what only a journal knows."""
    found: dict[int, tuple[int, str, str, str]] = {}
    for item in items(case.get("criteria")):
        index = item.get("criterion_index")
        if isinstance(index, int):
            found[index] = (index, str(item.get("rubric_id") or ""), str(item.get("criterion") or ""), "")
    for entry in entries:
        for (owner, index), record in entry.results.criteria.items():
            if owner != case_id:
                continue
            have = found.get(index, (index, "", "", ""))
            kind = "" if record.kind == "mixed" else record.kind
            found[index] = (index, have[1] or record.rubric_id, have[2] or record.criterion, have[3] or kind)
    return [found[index] for index in sorted(found)]


def _row(case_id: str, criterion: tuple[int, str, str, str], entries: Sequence[Entry], shelf: Shelf) -> CriterionRow:
    index, rubric_id, text, kind = criterion
    findings = [
        (entry, anchor("case", case_id, index, entry.slug), make_finding(entry.results, case_id, index, shelf))
        for entry in entries
    ]
    return CriterionRow(
        anchor("case", case_id, index), index, rubric_id, text or "(text not recorded)", kind, findings
    )


def _standing(entry: Entry, case_id: str, rows: Sequence[CriterionRow], shelf: Shelf) -> Standing:
    record = entry.results.case_records.get(case_id)
    mine = [finding for row in rows for owner, _, finding in row.findings if owner is entry]
    passes = {column: sum(finding.verdict(column) == "PASS" for finding in mine) for column in COLUMNS}
    if record is None:
        return Standing(entry, passes, "no case record", "", [], [])
    names = [name for name in SHOT_WORDS if name in record.shots]
    names += sorted(record.shots.keys() - SHOT_WORDS.keys())
    shots = [
        (SHOT_WORDS.get(name, name), shelf.take_inside(entry.results.folder, record.shots[name])) for name in names
    ]
    return Standing(
        entry, passes, in_words(record.outcome), record.reason, [in_words(f) for f in record.flags], shots
    )
