"""What the page shows of one entry's result on one criterion: verdicts, evidence pictures, witness, replays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaluator.records import (
    COLUMNS,
    CaseRecord,
    Column,
    CriterionRecord,
    Replay,
    SubResult,
    Verdict,
)
from evaluator.report.pictures import Picture, Shelf
from evaluator.report.reading import Results
from evaluator.report.words import PURPOSE_WORDS, in_words, rule_words

WITNESS_MAX_BYTES = 40_000
NOTHING_TO_JUDGE = ("missing", "build_failed", "serve_failed", "app_hang")


@dataclass(frozen=True)
class Mark:
    """A verdict and the columns that share it. None: unscored."""

    verdict: Verdict | None
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Trail:
    """One column's verdict on the way from the judge to the evidence, with its rule in words."""

    column: Column
    verdict: Verdict | None
    rule: str


@dataclass(frozen=True)
class StepView:
    number: int
    text: str
    ok: bool
    note: str
    picture: Picture | None


@dataclass(frozen=True)
class ReplayView:
    """One replay as a sentence; `as_required` is None when an error says nothing about the application."""

    what: str
    result: str
    reason: str
    as_required: bool | None
    seconds: float


@dataclass(frozen=True)
class PartView:
    """One sub-requirement with its witness run and what the replays showed."""

    id: str
    text: str
    core: bool
    credits: list[tuple[Column, bool]]
    said: list[tuple[str, str]]
    """Who, and what they said: the judge's reason, the source it quoted, the refuter's word."""
    lowered: str
    steps_of: str
    steps: list[StepView]
    replays: list[ReplayView]
    console: list[str]
    refused: list[str]
    program: str


@dataclass(frozen=True)
class Finding:
    """One entry's result on one criterion."""

    marks: list[Mark]
    trail: list[Trail]
    reason: str
    start: Picture | None
    submission: Picture | None
    parts: list[PartView]
    flags: list[str]
    replay_command: str

    def verdict(self, column: Column) -> Verdict | None:
        return next(mark.verdict for mark in self.marks if column in mark.columns)


def make_finding(results: Results, case: str, index: int, shelf: Shelf) -> Finding:
    """What `results` say about criterion `index` of `case`; a criterion without a record is unscored."""
    record = results.criteria.get((case, index))
    if record is None:
        return _without_record(results.case_records.get(case))
    trail = [_trail(record, column) for column in COLUMNS]
    reason = record.reason
    if record.outcome != "ok" and trail[-1].verdict is None:
        reason = ": ".join(filter(None, (f"Unscored, {in_words(record.outcome)}", reason)))

    def frame(name: str | None) -> Picture | None:
        return shelf.take_inside(results.folder, name) if name else None

    replayable = any(sub.witness for sub in record.sub_requirements)
    return Finding(
        marks=_marks(trail),
        trail=trail,
        reason=reason,
        start=frame(record.start_frame),
        submission=frame(record.submission_frame),
        parts=[_part(sub, record, results.folder, shelf) for sub in record.sub_requirements],
        flags=[in_words(flag) for flag in record.flags],
        replay_command=f"cdb replay {results.folder.name} {case} {index}" if replayable else "",
    )


def _without_record(case: CaseRecord | None) -> Finding:
    """Nothing in the journal: a FAIL when there was no application to judge, else unscored."""
    verdict: Verdict | None = None
    rule = "not judged"
    if case and case.outcome in NOTHING_TO_JUDGE:
        verdict, rule = "FAIL", in_words(case.outcome)
    trail = [Trail(column, verdict, rule) for column in COLUMNS]
    reason = (case.reason if case else "") or f"No record in the journal ({rule})."
    return Finding(_marks(trail), trail, reason, None, None, [], [], "")


def _trail(record: CriterionRecord, column: Column) -> Trail:
    """A foreign record has one verdict and no columns: it stands for all three."""
    given = record.columns.get(column)
    if given is not None:
        return Trail(column, given.verdict, rule_words(given.rule))
    if record.outcome != "ok":
        return Trail(column, None, in_words(record.outcome))
    return Trail(column, None if record.columns else record.verdict, "no rule given")


def _marks(trail: list[Trail]) -> list[Mark]:
    by_verdict: dict[Verdict | None, list[Column]] = {}
    for step in trail:
        by_verdict.setdefault(step.verdict, []).append(step.column)
    return [Mark(verdict, tuple(columns)) for verdict, columns in by_verdict.items()]


def _part(sub: SubResult, record: CriterionRecord, folder: Path, shelf: Shelf) -> PartView:
    shown = next((r for r in sub.replays if r.app == "submission"), sub.replays[0] if sub.replays else None)
    return PartView(
        id=sub.id,
        text=sub.text,
        core=sub.core,
        credits=[("judge", sub.proposed), ("card", sub.card), ("witnessed", sub.witnessed)],
        said=_said(sub),
        lowered=rule_words(sub.lowered_by),
        steps_of="" if shown is None else _place(shown),
        steps=[] if shown is None else _steps(shown, folder, shelf),
        replays=[_replay(replay, record.kind == "preservation") for replay in sub.replays],
        console=[f"{_place(r)}: {line}" for r in sub.replays for line in r.console],
        refused=[f"{_place(r)}: {line}" for r in sub.replays for line in r.refused_requests],
        program=_program(folder, sub.witness),
    )


def _said(sub: SubResult) -> list[tuple[str, str]]:
    lines = [("Judge", sub.reason)] if sub.reason else []
    lines += [(f"{quoted.path}:{quoted.line}", quoted.quote) for quoted in sub.citations]
    if sub.samples:
        lines.append(("Samples", f"{sum(sub.samples)} of {len(sub.samples)} say that it holds"))
    if sub.refutation:
        lines.append(("Refuter", f"{in_words(sub.refutation.outcome)}: {sub.refutation.reason}"))
    return lines


def _place(replay: Replay) -> str:
    return "submission" if replay.app == "submission" else "start application"


def _steps(replay: Replay, folder: Path, shelf: Shelf) -> list[StepView]:
    steps = []
    for place, step in enumerate(replay.steps, start=1):
        note = step.note
        failed = not step.ok and replay.failed_step in (None, step.index)
        if failed and replay.reason not in note:
            note = replay.reason if note in replay.reason else f"{note}: {replay.reason}"
        picture = shelf.take_inside(folder, step.frame) if step.frame else None
        steps.append(StepView(place, step.text, step.ok, note, picture))
    return steps


def _replay(replay: Replay, preservation: bool) -> ReplayView:
    wanted = "failed" if replay.purpose == "counter" else "held"
    what = f"{PURPOSE_WORDS[replay.purpose]} on the {_place(replay)}"
    if replay.app == "start":
        wanted = "held" if preservation else "failed"
        what = f"On the start application, where it must {'hold too' if preservation else 'fail'}"
    if replay.inputs:
        what += f" ({', '.join(f'{name} = {value}' for name, value in replay.inputs.items())})"
    result: str = replay.outcome
    if replay.outcome != "held":
        place = next((i for i, s in enumerate(replay.steps, start=1) if s.index == replay.failed_step), None)
        where = f" at step {place}" if place else ""
        result = f"{replay.outcome}{where}"
    required = None if replay.outcome == "error" else replay.outcome == wanted
    return ReplayView(what, result, replay.reason, required, replay.duration_s)


def _program(folder: Path, witness: str | None) -> str:
    """The witness file's own text, or why it cannot be shown."""
    if not witness:
        return ""
    try:
        path = (folder / witness).resolve()
        if not path.is_relative_to(folder.resolve()):
            return f"{witness} leads out of the results folder"
        with path.open("rb") as stream:
            content = stream.read(WITNESS_MAX_BYTES + 1)
    except (OSError, ValueError):
        return f"{witness} is missing from the results folder"
    if len(content) > WITNESS_MAX_BYTES:
        return f"{witness} is longer than {WITNESS_MAX_BYTES} bytes"
    return content.decode("utf-8", "replace").strip()
