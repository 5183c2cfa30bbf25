"""A task as a solver may see it: the request, the starting application and its assets. No rubric."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.errors import DataError, UsageError
from bench.release import DATASET_CARD
from bench.tree import Entry, digest, list_tree, path_bytes
from bench.tree_links import refused_links

QUERIES = "user_queries.json"
PROJECT = "project"
ANNOTATIONS = "_annotations"
ATTACHMENTS = "_attachments"
VERSION_CONTROL = ".git"
"""No part of an application, at any depth, as a folder, file or link."""


@dataclass(frozen=True)
class Task:
    """One case of an extracted root. Asset paths are relative to `project`, in name order."""

    case_id: str
    folder: Path
    queries: tuple[str, ...]
    """The text of every entry of user_queries.json, in order, verbatim."""

    @property
    def project(self) -> Path:
        return self.folder / PROJECT

    @property
    def request(self) -> str:
        """The documented request: the first entry's text."""
        return self.queries[0]

    @cached_property
    def annotations(self) -> tuple[str, ...]:
        return _files_below(self.project, ANNOTATIONS)

    @cached_property
    def attachments(self) -> tuple[str, ...]:
        return _files_below(self.project, ATTACHMENTS)

    @cached_property
    def start_entries(self) -> list[Entry]:
        """The canonical list of the starting application as a submission would hold it: without `.git`, and without
        links that a snapshot refuses."""
        entries = list_tree(self.project, without=frozenset({VERSION_CONTROL}))
        refused = refused_links(entries)
        return [entry for entry in entries if path_bytes(entry) not in refused]

    @cached_property
    def start_digest(self) -> str:
        return digest(self.start_entries)


@dataclass(frozen=True)
class Dataset:
    """An extracted root: its tasks in scope order, the name it was released under, and its digest."""

    root: Path
    name: str
    tasks: tuple[Task, ...]
    declared: tuple[str, ...]
    """Every case id of the release, whether selected or not."""

    @cached_property
    def digest(self) -> str:
        """sha256 over every selected task's id, request bytes and start digest: equal for both archives' roots."""
        lines = [
            [t.case_id, hashlib.sha256((t.folder / QUERIES).read_bytes()).hexdigest(), t.start_digest]
            for t in self.tasks
        ]
        return "sha256:" + hashlib.sha256(json.dumps(lines).encode()).hexdigest()

    @property
    def scope(self) -> dict[str, Any]:
        """What a result over these tasks may call itself."""
        chosen, declared = len(self.tasks), len(self.declared)
        whole = chosen == declared
        label = f"{self.name}, all {declared} tasks" if whole else f"{self.name}, subset {chosen}/{declared}"
        return {
            "label": label,
            "whole": whole,
            "cases": [t.case_id for t in self.tasks],
            "declared": declared,
        }


def open_dataset(root: Path, only: Iterable[str] = ()) -> Dataset:
    """Read every task below an extracted root. `only` selects case ids.

    Raises UsageError for a wrong folder or an unknown id (with what was probably meant), DataError for a bad case.
    """
    folder = root / "cases"
    if not folder.is_dir():
        raise UsageError(f"{root} holds no cases/ folder. {_hint(root)}")
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    if not found:
        raise UsageError(f"{folder} holds no case; extract the release again with `cdb dataset extract`")
    name, declared = _declared(root, found)
    if missing := [case for case in declared if case not in found]:
        raise DataError(f"{folder} lacks {len(missing)} declared cases, first {missing[0]}; extract again")
    chosen = list(only) or list(declared)
    if unknown := [case for case in chosen if case not in declared]:
        raise UsageError(f"no case {unknown[0]!r} in {root}; known: {', '.join(declared[:8])} …")
    order = [case for case in declared if case in set(chosen)]
    return Dataset(root, name, tuple(read_task(folder / case) for case in order), tuple(declared))


def read_task(folder: Path) -> Task:
    """Read one case folder. Raises DataError naming the file and what is wrong with it."""
    path = folder / QUERIES
    if not (folder / PROJECT).is_dir():
        raise DataError(f"{folder} has no {PROJECT}/ folder; extract the release again")
    if not path.is_file():
        raise DataError(f"{path} is missing; extract the release again")
    try:
        entries = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON in UTF-8 ({error})") from error
    return Task(folder.name, folder, _query_texts(entries, path))


def find_asset(task: Task, relative: str) -> Path | None:
    """The file a request or index names below `project`, compared under NFC; None when there is none."""
    wanted = unicodedata.normalize("NFC", relative)
    for name in (*task.annotations, *task.attachments):
        if unicodedata.normalize("NFC", name) == wanted:
            return task.project / name
    direct = task.project / relative
    return direct if direct.is_file() else None


def _query_texts(entries: Any, path: Path) -> tuple[str, ...]:
    if isinstance(entries, dict):
        entries = [entries]
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{path} must be a list of entries with a `text`; found {type(entries).__name__}")
    texts: list[str] = []
    for number, entry in enumerate(entries):
        text = entry.get("text") if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            found = sorted(entry) if isinstance(entry, dict) else type(entry).__name__
            raise DataError(f"{path}, entry {number}: no `text`; found {found}")
        texts.append(text)
    return tuple(texts)


def _declared(root: Path, found: list[str]) -> tuple[str, list[str]]:
    """Name and case ids as extraction recorded them; for a plain `tar -x`, the folder's own list."""
    card = root / DATASET_CARD
    if not card.is_file():
        return "unnamed dataset", found
    try:
        content = json.loads(card.read_text(encoding="utf-8"))
        return str(content["name"]), [str(case) for case in content["case_ids"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{card} cannot be understood ({error!r}); extract the release again") from error


def _files_below(project: Path, folder: str) -> tuple[str, ...]:
    base = project / folder
    if not base.is_dir():
        return ()
    return tuple(sorted(p.relative_to(project).as_posix() for p in base.rglob("*") if p.is_file()))


def _hint(root: Path) -> str:
    if root.name == "cases":
        return f"Did you mean {root.parent}?"
    for child in ("solver-inputs", "evaluation-inputs", "work/solver-inputs", "work/evaluation-inputs"):
        if (root / child / "cases").is_dir():
            return f"Did you mean {root / child}?"
    return "Pass the folder a release archive was extracted into"
