"""What the pages show of one entry's result on one criterion: verdicts, pictures, witness, replays, refuter."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluator.records import (
    COLUMNS,
    CaseRecord,
    Column,
    CriterionRecord,
    RefutationRecord,
    Replay,
    SubResult,
    Usage,
    Verdict,
)
from evaluator.report.citations import Quoted, Sources
from evaluator.report.pictures import Kept, Picture, Shelf
from evaluator.report.reading import Results
from evaluator.report.words import PURPOSE_WORDS, REFUTER_WORDS, in_words, rule_words

PROGRAM_MAX_BYTES = 40_000
NOTHING_TO_JUDGE = ("missing", "build_failed", "serve_failed", "app_hang")
BY_REFUTER = ("counter", "attack")


@dataclass(frozen=True)
class Trail:
    """One column's verdict on the way from the judge to the evidence, with its rule's name and its meaning."""

    column: Column
    verdict: Verdict | None
    rule: str
    meaning: str


@dataclass(frozen=True)
class StepView:
    number: int
    text: str
    ok: bool
    note: str
    picture: Picture | None
    ms: int


@dataclass(frozen=True)
class Run:
    """One replay as a sentence with its steps; `as_required` is None when an error says nothing of the app."""

    what: str
    inputs: str
    place: str
    by_refuter: bool
    result: str
    reason: str
    as_required: bool | None
    seconds: float
    shared: bool
    steps: list[StepView]
    console: list[str]
    refused: list[str]


@dataclass(frozen=True)
class Refuted:
    """The refuter's word on one part, with what it brought."""

    outcome: str
    said: str
    reason: str
    inputs: list[tuple[str, str]]
    citations: list[Quoted]
    program: str


@dataclass(frozen=True)
class Pair:
    """A blind pair: the judge was shown both applications unlabelled, in both orders."""

    outcome: str
    choices: str
    reasons: list[str]
    pictures: list[Picture]


@dataclass(frozen=True)
class PartView:
    """One sub-requirement with its witness and what the replays showed."""

    id: str
    text: str
    core: bool
    credits: list[tuple[Column, bool]]
    judge: str
    samples: str
    citations: list[Quoted]
    lowered_by: str
    lowered: str
    runs: list[Run]
    refuted: Refuted | None
    program: str
    pair: Pair | None


@dataclass(frozen=True)
class Finding:
    """One entry's result on one criterion."""

    trail: list[Trail]
    reason: str
    start: Picture | None
    submission: Picture | None
    parts: list[PartView]
    flags: list[str]
    replay_command: str
    traces: list[Kept] = field(default_factory=list)
    usage: list[str] = field(default_factory=list)
    seconds: float = 0.0
    advocate: str = ""

    def verdict(self, column: Column) -> Verdict | None:
        return next(step.verdict for step in self.trail if step.column == column)

    @property
    def lowered(self) -> bool:
        """The three columns do not agree."""
        return len({step.verdict for step in self.trail}) > 1

    @property
    def told(self) -> str:
        """All three columns in words, for who cannot see colours."""
        if not self.lowered:
            return self.trail[0].verdict or "unscored"
        return ", ".join(f"{step.column} {step.verdict or 'unscored'}" for step in self.trail)


def make_finding(results: Results, case: str, index: int, shelf: Shelf, sources: Sources) -> Finding:
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
        trail=trail,
        reason=reason,
        start=frame(record.start_frame),
        submission=frame(record.submission_frame),
        parts=[_part(sub, record, results.folder, shelf, sources) for sub in record.sub_requirements],
        flags=[in_words(flag) for flag in record.flags],
        replay_command=f"cdb replay {results.folder.name} {case} {index}" if replayable else "",
        traces=_traces(record, results.folder, shelf),
        usage=[_usage(who, used) for who, used in record.usage.items() if used.calls],
        seconds=record.duration_s,
        advocate=_advocate(getattr(record, "advocate", None)),
    )


def _without_record(case: CaseRecord | None) -> Finding:
    """Nothing in the journal: a FAIL when there was no application to judge, else unscored."""
    verdict: Verdict | None = None
    rule, meaning = "", "not judged"
    if case and case.outcome in NOTHING_TO_JUDGE:
        verdict, rule, meaning = "FAIL", case.outcome, in_words(case.outcome)
    trail = [Trail(column, verdict, rule, meaning) for column in COLUMNS]
    reason = (case.reason if case else "") or f"No record in the journal ({meaning})."
    return Finding(trail, reason, None, None, [], [], "")


def _trail(record: CriterionRecord, column: Column) -> Trail:
    """A foreign record has one verdict and no columns: it stands for all three."""
    given = record.columns.get(column)
    if given is not None:
        return Trail(column, given.verdict, given.rule, rule_words(given.rule))
    if record.outcome != "ok":
        return Trail(column, None, record.outcome, in_words(record.outcome))
    return Trail(column, None if record.columns else record.verdict, "", "no rule given")


def _part(sub: SubResult, record: CriterionRecord, folder: Path, shelf: Shelf, sources: Sources) -> PartView:
    samples = f"{sum(sub.samples)} of {len(sub.samples)} samples say that it holds" if sub.samples else ""
    return PartView(
        id=sub.id,
        text=sub.text,
        core=sub.core,
        credits=[("judge", sub.proposed), ("card", sub.card), ("witnessed", sub.witnessed)],
        judge=sub.reason,
        samples=samples,
        citations=[sources.in_context(citation) for citation in sub.citations],
        lowered_by=sub.lowered_by,
        lowered=rule_words(sub.lowered_by) if sub.lowered_by else "",
        runs=[_run(replay, record.kind == "preservation", folder, shelf) for replay in sub.replays],
        refuted=_refuted(sub.refutation, folder, sources) if sub.refutation else None,
        program=_program(folder, sub.witness),
        pair=_pair(getattr(sub, "pair", None), folder, shelf),
    )


def _pair(told: Any, folder: Path, shelf: Shelf) -> Pair | None:
    """`told` is the record's own model; records without blind pairs have none."""
    if told is None:
        return None
    pictures = [shelf.take_inside(folder, name) for name in told.pictures]
    return Pair(in_words(told.outcome), ", then ".join(told.choices), list(told.reasons), pictures)


def _advocate(told: Any) -> str:
    """An advocate of a FAIL in one sentence; empty where there was none."""
    if told is None:
        return ""
    claimed = f"claims {told.claimed}, its witnesses show {told.verdict}" if told.claimed else in_words(told.outcome)
    return f"{claimed}{f': {told.reason}' if told.reason else ''}"


def _refuted(word: RefutationRecord, folder: Path, sources: Sources) -> Refuted:
    return Refuted(
        outcome=word.outcome,
        said=REFUTER_WORDS[word.outcome],
        reason=word.reason,
        inputs=sorted((word.inputs or {}).items()),
        citations=[sources.in_context(citation) for citation in word.citations],
        program=_program(folder, word.counter_witness),
    )


def _steps(replay: Replay, folder: Path, shelf: Shelf) -> list[StepView]:
    steps = []
    for place, step in enumerate(replay.steps, start=1):
        note = step.note
        failed = not step.ok and replay.failed_step in (None, step.index)
        if failed and replay.reason not in note:
            note = replay.reason if note in replay.reason else f"{note}: {replay.reason}"
        picture = shelf.take_inside(folder, step.frame) if step.frame else None
        steps.append(StepView(place, step.text, step.ok, note, picture, step.ms))
    return steps


def _run(replay: Replay, preservation: bool, folder: Path, shelf: Shelf) -> Run:
    wanted = "failed" if replay.purpose == "counter" else "held"
    place = "submission" if replay.app == "submission" else "start application"
    what = f"{PURPOSE_WORDS[replay.purpose]} on the {place}"
    if replay.app == "start":
        wanted = "held" if preservation else "failed"
        what = f"On the start application, where it must {'hold too' if preservation else 'fail'}"
    inputs = ", ".join(f"{name} = {value}" for name, value in replay.inputs.items())
    result: str = replay.outcome
    if replay.outcome != "held":
        at = next((i for i, s in enumerate(replay.steps, start=1) if s.index == replay.failed_step), None)
        result = f"{replay.outcome} at step {at}" if at else replay.outcome
    return Run(
        what, inputs, place, replay.purpose in BY_REFUTER, result, replay.reason,
        None if replay.outcome == "error" else replay.outcome == wanted, replay.duration_s, replay.shared,
        _steps(replay, folder, shelf), replay.console, replay.refused_requests,
    )  # fmt: skip


def _traces(record: CriterionRecord, folder: Path, shelf: Shelf) -> list[Kept]:
    """Playwright traces (`*trace*.zip`) in the criterion's evidence folder, named by where they lie in it."""
    evidence = folder / "evidence" / record.case / f"{record.criterion_index:02d}"
    try:
        if not evidence.resolve().is_relative_to(folder.resolve()):
            return []
        found = sorted(path for path in evidence.rglob("*trace*.zip") if path.is_file() and not path.is_symlink())
    except (OSError, ValueError):
        return []
    return [shelf.keep(path, path.relative_to(evidence).as_posix()) for path in found]


def _usage(who: str, used: Usage) -> str:
    cost = "cost unknown" if used.cost_usd is None else f"{used.cost_usd:.4f} USD"
    models = f" ({', '.join(used.models)})" if used.models else ""
    return f"{in_words(who)}{models}: {used.calls} calls, {used.input_tokens + used.output_tokens:,} tokens, {cost}"


def _program(folder: Path, witness: str | None) -> str:
    """The witness file's own text, or why it cannot be shown."""
    if not witness:
        return ""
    try:
        path = (folder / witness).resolve()
        if not path.is_relative_to(folder.resolve()):
            return f"{witness} leads out of the results folder"
        with path.open("rb") as stream:
            content = stream.read(PROGRAM_MAX_BYTES + 1)
    except (OSError, ValueError):
        return f"{witness} is missing from the results folder"
    if len(content) > PROGRAM_MAX_BYTES:
        return f"{witness} is longer than {PROGRAM_MAX_BYTES} bytes"
    return content.decode("utf-8", "replace").strip()
