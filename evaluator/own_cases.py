"""Reads people's own cases, laid out as the dataset card lays out an extracted evaluation archive.

    FOLDER/release.yaml              optional: name, scope, version, released, summary, authors
    FOLDER/cases/CASE_ID/user_queries.json      [{"text": "the request"}]
    FOLDER/cases/CASE_ID/rubric.json            a list of criteria; any shape that evaluators read
    FOLDER/cases/CASE_ID/project/               the starting application, with _annotations/ and _attachments/

Whatever else lies in a case's folder (plans, notes) is never packed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import DataError, UsageError
from bench.strict_json import read_json
from bench.task import QUERIES, read_task
from bench.yaml_file import read_yaml
from evaluator.attachments import primary_kind
from evaluator.case_source import CASE_ID, CaseSource, Criterion
from evaluator.release_card import ReleaseAbout
from evaluator.rubric import RUBRIC, parse_rubric

ABOUT = "release.yaml"


class _About(BaseModel):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    name: str = Field("", max_length=200)
    scope: str = Field("", pattern=r"^[A-Za-z0-9._-]{0,60}$")
    version: str = "1.0.0"
    released: str = ""
    summary: str = "Cases of one's own, in the layout of Co-Design Bench."
    authors: str = "unknown"


def case_folders(folder: Path) -> list[Path]:
    """The case folders below `folder`, sorted by id. Raises UsageError with what was probably meant."""
    place = folder / "cases"
    if not place.is_dir():
        hint = f"Did you mean {folder.parent}?" if folder.name == "cases" else "See docs/own-dataset.md"
        raise UsageError(f"{folder} holds no cases/ folder. {hint}")
    found = sorted(entry for entry in place.iterdir() if entry.is_dir() and entry.name[0] not in "._")
    if not found:
        raise UsageError(f"{place} holds no case: add a folder CASE_ID/ with {QUERIES}, {RUBRIC} and project/")
    return found


def read_about(folder: Path, cases: int) -> ReleaseAbout:
    """What the release says of itself: `release.yaml`, or what can be said without one. Raises DataError."""
    path = folder / ABOUT
    content: object = {}
    if path.is_file():
        try:
            content = read_yaml(path) or {}
        except UsageError as error:
            raise DataError(str(error)) from error
    try:
        given = _About.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole file"
        raise DataError(f"{path}: {where}: {first['msg']}; known keys: {', '.join(_About.model_fields)}") from error
    scope = given.scope or f"Own-{cases}"
    return ReleaseAbout(
        name=given.name or f"Own cases {scope}",
        scope=scope,
        version=given.version,
        released=given.released or f"{datetime.now(UTC):%Y-%m-%d}",
        summary=given.summary.strip(),
        authors=given.authors,
    )


def read_own_case(folder: Path) -> CaseSource:
    """One case. Raises DataError naming the file and what is wrong with it."""
    case_id = folder.name
    if not CASE_ID.fullmatch(case_id):
        raise DataError(f"{folder}: an id is at most 100 letters, digits, dots, dashes and underscores; rename it")
    task = read_task(folder)
    if not task.request.strip():
        raise DataError(f"{folder / QUERIES}: the first entry has no text; write the request there")
    if not (folder / RUBRIC).is_file():
        raise DataError(f"{folder / RUBRIC} is missing; write the acceptance criteria there, a list of texts")
    content = read_json(folder / RUBRIC)
    criteria = parse_rubric(content, case_id, str(folder / RUBRIC))
    annotations = tuple(name for name in task.annotations if name.lower().endswith(".png"))
    if not annotations:
        where = folder / "project/_annotations"
        raise DataError(f"{where} holds no PNG; put the annotated screenshot there")
    told = content.get("task_id") if isinstance(content, dict) else None
    return CaseSource(
        case_id=case_id,
        task_id=str(told or case_id),
        title=case_id.replace("-", " ").replace("_", " ").capitalize(),
        attachment=primary_kind(task.attachments),
        request=task.request,
        queries=folder / QUERIES,
        project=task.project,
        rubric=folder / RUBRIC,
        annotations=annotations,
        attachments=task.attachments,
        criteria=tuple(Criterion(c.rubric_id, c.text) for c in criteria),
    )
