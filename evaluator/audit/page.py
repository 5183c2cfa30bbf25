"""`cdb audit sample`: draws criteria and makes the page on which people label them blind.

The page holds request, criterion, pictures and the witness's steps, and neither a verdict, whether a step held, who
made the submission nor which judging it is from: nothing of these is written into it. What says so is the design
file, kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bench.atomic import write_bytes
from bench.errors import UsageError
from evaluator.audit.design import FILE, Design, draw, read_design, write_design
from evaluator.audit.frame import Judged, Judging, read_judging
from evaluator.audit.html import Album, json_island, render
from evaluator.records import Column, Replay, SubResult

PAGE = Path("for-labellers") / "audit.html"
MOST_FRAMES = 8
"""Pictures of one part's steps."""


class Shot(NamedTuple):
    caption: str
    key: str


class StepShown(NamedTuple):
    text: str
    note: str
    key: str


@dataclass(frozen=True)
class Part:
    """One sub-requirement: what was tried on the submission, without whether it held."""

    text: str
    steps: list[StepShown]


@dataclass(frozen=True)
class Question:
    """One item of the page."""

    item: str
    request: str
    attachments: list[str]
    criterion: str
    annotation: Shot | None
    pairs: list[tuple[Shot, Shot]]
    parts: list[Part]


class Sampled(NamedTuple):
    """What was written. `left_out`: pictures that did not fit or could not be read."""

    page: Path
    design_file: Path
    design: Design
    left_out: int


def sample(results: list[Path], out: Path, *, column: Column, labels: int, seed: int) -> Sampled:
    """Write `out/for-labellers/audit.html` and `out/design.json`. The same arguments give the same bytes.

    Raises UsageError for no results, one folder twice, or an audit that is there already with another draw.
    """
    if not results:
        raise UsageError("give at least one results folder; what `cdb judge` wrote")
    if len({folder.resolve() for folder in results}) < len(results):
        raise UsageError("a results folder is given twice; its criteria would be drawn twice")
    judgings = [read_judging(folder, column) for folder in results]
    design = draw(judgings, column, labels, seed, out)
    if (out / FILE).is_file() and read_design(out / FILE).audit != design.audit:
        raise UsageError(f"{out} holds another audit; labels of its page would be lost. Choose another folder")
    album = Album()
    questions = [_question(design, number, judgings, album) for number in range(len(design.items))]
    page = render(
        "audit.html.j2", "audit.css", "audit.js",
        audit=design.audit, questions=questions, left_out=album.left_out,
        island=json_island({"audit": design.audit, "pictures": album.uris}),
    )  # fmt: skip
    write_bytes(out / PAGE, page.encode("utf-8"))
    write_design(design, out / FILE)
    return Sampled(out / PAGE, out / FILE, design, album.left_out)


def _question(design: Design, number: int, judgings: list[Judging], album: Album) -> Question:
    item = design.items[number]
    judging = judgings[item.results]
    found = next(c for c in judging.criteria if (c.case.case, c.criterion_index) == (item.case, item.criterion_index))
    case, folder = found.case, judging.folder
    annotation = album.take(folder, case.annotation)
    return Question(
        item=item.item,
        request=case.request,
        attachments=[one.path for one in case.attachments],
        criterion=found.text,
        annotation=Shot("Annotated screenshot (part of the request)", annotation) if annotation else None,
        pairs=_pairs(judging, found, album),
        parts=[_part(sub, folder, album) for sub in found.record.sub_requirements] if found.record else [],
    )


def _pairs(judging: Judging, found: Judged, album: Album) -> list[tuple[Shot, Shot]]:
    """Start and submission side by side: the frames that show the criterion best, then the pages as they open."""
    shots, record = judging.case_records[found.case.case].shots, found.record
    rows: list[tuple[str, Any, Any]] = []
    if record:
        rows.append(("at the criterion", record.start_frame, record.submission_frame))
    rows += [
        (f"as it opens, {kind}", shots.get(f"start_{kind}"), shots.get(f"submission_{kind}"))
        for kind in ("desktop", "phone")
    ]
    pairs = [
        (
            Shot(f"Start application, {what}", album.take(judging.folder, start)),
            Shot(f"Submission, {what}", album.take(judging.folder, submission)),
        )
        for what, start, submission in rows
    ]
    return [pair for pair in pairs if pair[0].key or pair[1].key]


def _part(sub: SubResult, folder: Path, album: Album) -> Part:
    shown = next((replay for replay in sub.replays if replay.app == "submission"), None)
    return Part(sub.text, _steps(shown, folder, album) if shown else [])


def _steps(replay: Replay, folder: Path, album: Album) -> list[StepShown]:
    """Steps with what was seen, without whether they held."""
    framed = [step.index for step in replay.steps if step.frame][-MOST_FRAMES:]
    return [
        StepShown(step.text, step.note, album.take(folder, step.frame) if step.index in framed else "")
        for step in replay.steps
    ]
