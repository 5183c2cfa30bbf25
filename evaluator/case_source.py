"""Reads the two folders that a case is made from: the solver's side and the evaluator's side.

Solver side, `SOURCES/<case_id>/`: `case.yaml` (title, attachment), `user_queries.json`, `project/`, and
`edits/*.patch`. Evaluator side, `RUBRICS/<case_id>/`: `rubric.json` and whatever the evaluator keeps beside
it (plan, witnesses, truth). Only the request, `project/` and, for evaluators, `rubric.json` are ever packed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.errors import DataError, UsageError

Attachment = Literal["audio", "video", "document", "image", "none"]
ATTACHMENTS: tuple[Attachment, ...] = get_args(Attachment)

SUFFIXES: dict[Attachment, frozenset[str]] = {
    "audio": frozenset({".wav", ".mp3", ".ogg", ".opus", ".m4a", ".flac", ".aac"}),
    "video": frozenset({".mp4", ".webm", ".mov", ".mkv", ".avi"}),
    "document": frozenset({".pdf", ".docx", ".xlsx", ".pptx", ".csv", ".md", ".txt", ".html"}),
    "image": frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".svg"}),
}

CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


_F = TypeVar("_F", bound=_Form)


class _CaseYaml(_Form):
    title: str = Field(min_length=1)
    attachment: Attachment


class _Rubric(_Form):
    rubric_id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)


class _RubricFile(_Form):
    case_id: str = Field(min_length=1)
    task_id: str = Field(min_length=1)
    rubrics: list[_Rubric] = Field(min_length=1)


@dataclass(frozen=True)
class Criterion:
    """One acceptance criterion as its author wrote it; its index is its place in the list, from 1."""

    rubric_id: str
    text: str


@dataclass(frozen=True)
class CaseSource:
    """One case, read and checked. `annotations` and `attachments` are sorted paths relative to `project`."""

    case_id: str
    task_id: str
    title: str
    attachment: Attachment
    request: str
    queries: Path
    project: Path
    rubric: Path
    annotations: tuple[str, ...]
    attachments: tuple[str, ...]
    criteria: tuple[Criterion, ...]


def read_cases(sources: Path, rubrics: Path) -> list[CaseSource]:
    """Every case that has a folder in `sources`, sorted by id.

    Raises `UsageError` when a folder is missing or holds no case, `DataError` (naming case and file) when a
    source is malformed or a case is present on one side only.
    """
    for folder in (sources, rubrics):
        if not folder.is_dir():
            raise UsageError(f"no folder {folder}: it must hold one folder per case")
    here, there = (_case_ids(folder) for folder in (sources, rubrics))
    if not here:
        raise UsageError(f"{sources} holds no case: add a folder CASE_ID/ there and one in {rubrics}")
    for case_id in sorted(here ^ there):
        missing = rubrics if case_id in here else sources
        raise DataError(f"case {case_id}: no folder {missing / case_id}; a case needs one on both sides")
    return [read_case(sources / case_id, rubrics / case_id) for case_id in sorted(here)]


def read_case(source: Path, rubric_side: Path) -> CaseSource:
    """Read one case from its two folders (both named by the case id). Raises `DataError`."""
    case_id = source.name
    if not CASE_ID.fullmatch(case_id):
        raise DataError(f"case {case_id!r}: an id is letters, digits, dots, dashes and underscores")
    about = _parse(_CaseYaml, _read_yaml(source / "case.yaml", case_id), source / "case.yaml", case_id)
    rubric_path = rubric_side / "rubric.json"
    rubric = _parse(_RubricFile, _read_json(rubric_path, case_id), rubric_path, case_id)
    if rubric.case_id != case_id:
        raise _malformed(case_id, rubric_path, f"case_id is {rubric.case_id!r}; it must be the folder's name")
    if len({r.rubric_id for r in rubric.rubrics}) != len(rubric.rubrics):
        raise _malformed(case_id, rubric_path, "two criteria have the same rubric_id")
    project = source / "project"
    if not project.is_dir():
        raise _malformed(case_id, project, "the starting application is missing")
    return CaseSource(
        case_id=case_id,
        task_id=rubric.task_id,
        title=about.title,
        attachment=about.attachment,
        request=_request(source / "user_queries.json", case_id),
        queries=source / "user_queries.json",
        project=project,
        rubric=rubric_path,
        annotations=_annotations(project, case_id),
        attachments=_attachments(project, about.attachment, case_id),
        criteria=tuple(Criterion(r.rubric_id, r.criterion) for r in rubric.rubrics),
    )


def _case_ids(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name[0] not in "._"}


def _request(path: Path, case_id: str) -> str:
    queries = _read_json(path, case_id)
    if not isinstance(queries, list) or not queries or not isinstance(queries[0], dict):
        raise _malformed(case_id, path, 'it must be a list of objects, the first one {"text": "…"}')
    text = queries[0].get("text")
    if not isinstance(text, str) or not text.strip():
        raise _malformed(case_id, path, "the first entry has no text")
    return text


def _annotations(project: Path, case_id: str) -> tuple[str, ...]:
    found = tuple(path for path in _files(project, "_annotations") if path.lower().endswith(".png"))
    if not found:
        raise _malformed(case_id, project / "_annotations", "it must hold the annotated screenshot as a PNG")
    for path in found:
        if (project / path).read_bytes()[:8] != PNG_SIGNATURE:
            raise _malformed(case_id, project / path, "not a PNG file, whatever its name says")
    return found


def _attachments(project: Path, kind: Attachment, case_id: str) -> tuple[str, ...]:
    """Attachment paths, held against the kind that case.yaml names: the card's table counts by that kind."""
    found, folder = _files(project, "_attachments"), project / "_attachments"
    if kind == "none":
        if found:
            raise _malformed(case_id, folder, f"case.yaml says attachment: none, but {found[0]} is there")
    elif not any(Path(path).suffix.lower() in SUFFIXES[kind] for path in found):
        wanted = ", ".join(sorted(SUFFIXES[kind]))
        raise _malformed(case_id, folder, f"case.yaml says attachment: {kind}, but no file ends in {wanted}")
    return found


def _files(project: Path, folder: str) -> tuple[str, ...]:
    found = (path for path in (project / folder).rglob("*") if path.is_file())
    return tuple(sorted(path.relative_to(project).as_posix() for path in found))


def _read_json(path: Path, case_id: str) -> object:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key appears twice in one object")
        return dict(pairs)

    try:
        value: object = json.loads(_read(path, case_id), object_pairs_hook=unique)
    except ValueError as error:
        raise _malformed(case_id, path, f"not valid JSON: {error}") from error
    return value


def _read_yaml(path: Path, case_id: str) -> object:
    try:
        value: object = yaml.safe_load(_read(path, case_id))
    except yaml.YAMLError as error:
        raise _malformed(case_id, path, f"not valid YAML: {error}") from error
    return value


def _read(path: Path, case_id: str) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise _malformed(case_id, path, "the file is missing") from error
    except UnicodeDecodeError as error:
        raise _malformed(case_id, path, "not UTF-8 text") from error


def _parse(form: type[_F], value: object, path: Path, case_id: str) -> _F:
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise _malformed(case_id, path, f"{where}: {first['msg']}") from error


def _malformed(case_id: str, path: Path, what: str) -> DataError:
    return DataError(f"case {case_id}: {path}: {what}")
