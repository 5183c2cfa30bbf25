"""The cases of the site in order, each with its request, its criteria and every entry's finding on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.records import COLUMNS, Column, Verdict
from evaluator.report.anchors import page_name
from evaluator.report.citations import Sources
from evaluator.report.criteria import Finding, make_finding
from evaluator.report.entries import Entry
from evaluator.report.pictures import Kept, Picture, Shelf
from evaluator.report.reading import Json, items, number, read_text
from evaluator.report.solved import Trial
from evaluator.report.trials import TrialView, make_trial
from evaluator.report.words import ATTACHMENT_WORDS

DIGEST_CHARS = 20_000


@dataclass(frozen=True)
class CriterionRow:
    """One criterion and, in the order of the site's entries, what was found. `page` is below the site's folder."""

    page: str
    index: int
    rubric_id: str
    text: str
    kind: str
    findings: list[tuple[Entry, Finding]]

    @property
    def differs(self) -> bool:
        """Entries do not all have the same verdict in the ranking column."""
        return len({finding.verdict("witnessed") for _, finding in self.findings}) > 1


@dataclass(frozen=True)
class Standing:
    """How one entry did on one case: its trial, and passes per column."""

    entry: Entry
    page: str
    passes: dict[Column, int]
    trial: TrialView
    findings: list[Finding]


@dataclass(frozen=True)
class Attachment:
    """One attachment, to be played, looked at or opened; `text` is its digest."""

    name: str
    kind: str
    file: Kept
    picture: Picture | None
    text: str


@dataclass(frozen=True)
class CaseView:
    page: str
    id: str
    title: str
    attachment: str
    request: str
    annotation: Picture | None
    attachments: list[Attachment]
    criteria: list[CriterionRow]
    standings: list[Standing]

    @property
    def differs(self) -> bool:
        return any(row.differs for row in self.criteria)


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


def make_cases(entries: Sequence[Entry], trials: dict[str, dict[str, Trial]], shelf: Shelf) -> list[CaseView]:
    """Every case any entry knows, in the order of the first cases.json that lists it.

    `trials`: slug of the entry → case → trial.
    """
    listed: dict[str, tuple[Json, Path]] = {}
    for entry in entries:
        for case in entry.results.cases:
            listed.setdefault(case["case"], (case, entry.results.folder))
        for case_id in [key[0] for key in entry.results.criteria] + list(entry.results.case_records):
            listed.setdefault(case_id, ({"case": case_id}, entry.results.folder))
    return [_case(case_id, *listed[case_id], entries, trials, shelf) for case_id in listed]


def tally(findings: Iterable[Finding], column: Column) -> Tally:
    """Count verdicts."""
    verdicts: list[Verdict | None] = [finding.verdict(column) for finding in findings]
    return Tally(verdicts.count("PASS"), verdicts.count("PARTIAL"), verdicts.count("FAIL"), verdicts.count(None))


def _case(
    case_id: str,
    case: Json,
    folder: Path,
    entries: Sequence[Entry],
    trials: dict[str, dict[str, Trial]],
    shelf: Shelf,
) -> CaseView:
    own = [trials.get(entry.slug, {}).get(case_id, Trial()) for entry in entries]
    sources = [Sources(trial.submission) for trial in own]
    rows = [
        _row(case_id, criterion, list(zip(entries, sources, strict=True)), shelf)
        for criterion in _criteria(case_id, case, entries)
    ]
    title, request, attachment, annotation = (case.get(k) for k in ("title", "request", "attachment", "annotation"))
    return CaseView(
        page=f"cases/{page_name(case_id)}.html",
        id=case_id,
        title=str(title or case_id),
        attachment=ATTACHMENT_WORDS.get(str(attachment), str(attachment or "")),
        request=str(request or ""),
        annotation=shelf.take(folder / annotation, Path(annotation).name)
        if isinstance(annotation, str) and annotation
        else None,
        attachments=_attachments(case, folder, shelf),
        criteria=rows,
        standings=[
            _standing(entry, place, case_id, rows, trial, shelf)
            for place, (entry, trial) in enumerate(zip(entries, own, strict=True))
        ],
    )


def _attachments(case: Json, folder: Path, shelf: Shelf) -> list[Attachment]:
    project = case.get("project")
    if not isinstance(project, str):
        return []
    found = []
    for item in items(case.get("attachments")):
        name = item.get("path")
        if not isinstance(name, str):
            continue
        path, kind = folder / project / name, str(item.get("kind") or "")
        try:
            inside = path.resolve().is_relative_to((folder / project).resolve())
        except (OSError, ValueError):
            inside = False
        if not inside:
            found.append(Attachment(name, kind, Kept(name=name, note="It leads out of the application."), None, ""))
            continue
        picture = shelf.take(path, name) if kind == "image" else None
        file = Kept(name=name, bytes=int(number(item.get("bytes")) or 0)) if picture else shelf.keep(path, name)
        digest = item.get("digest")
        text = read_text(folder / digest / "digest.md", DIGEST_CHARS) if isinstance(digest, str) else ""
        found.append(Attachment(name, kind, file, picture, text))
    return found


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


def _row(
    case_id: str, criterion: tuple[int, str, str, str], judged: Sequence[tuple[Entry, Sources]], shelf: Shelf
) -> CriterionRow:
    index, rubric_id, text, kind = criterion
    findings = [(entry, make_finding(entry.results, case_id, index, shelf, sources)) for entry, sources in judged]
    page = f"criteria/{page_name(case_id, index)}.html"
    return CriterionRow(page, index, rubric_id, text or "(text not recorded)", kind, findings)


def _standing(
    entry: Entry, place: int, case_id: str, rows: Sequence[CriterionRow], trial: Trial, shelf: Shelf
) -> Standing:
    findings = [row.findings[place][1] for row in rows]
    passes = {column: sum(finding.verdict(column) == "PASS" for finding in findings) for column in COLUMNS}
    page = f"trials/{page_name(case_id, entry.slug)}.html"
    return Standing(entry, page, passes, make_trial(entry.results, case_id, trial, shelf), findings)
