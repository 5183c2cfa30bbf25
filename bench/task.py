"""A task as a solver may see it: the request, the starting application and its assets. No rubric."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import DataError, UsageError
from bench.layout import ANNOTATIONS, ATTACHMENTS, CASES, DATASET_CARD, EVALUATION_ROOT, PROJECT, QUERIES, SOLVER_ROOT
from bench.names import find_name
from bench.queries import read_queries
from bench.strict_json import read_json
from bench.tree import Entry, digest, list_tree, path_bytes
from bench.tree_links import refused_links
from bench.wrong_folder import no_root, no_root_hint

__all__ = [
    "ANNOTATIONS",
    "ATTACHMENTS",
    "PROJECT",
    "QUERIES",
    "VERSION_CONTROL",
    "AttachmentDigest",
    "Dataset",
    "Task",
    "find_asset",
    "open_dataset",
    "open_solver_inputs",
    "read_task",
]

VERSION_CONTROL = ".git"
"""No part of an application, at any depth, as a folder, file or link."""


class AttachmentDigest(NamedTuple):
    """An attachment, by its path below `project`, and the folder with its digest (`bench.media`)."""

    attachment: str
    folder: Path
    sha256: str
    """Tree digest of the folder."""


@dataclass(frozen=True)
class Task:
    """One case of an extracted root. Asset paths are relative to `project`, in name order."""

    case_id: str
    folder: Path
    queries: tuple[str, ...]
    """Every entry of user_queries.json, in order, verbatim (`bench.queries`)."""
    digests: tuple[AttachmentDigest, ...] | None = None
    """What agents get of the attachments instead of the files themselves, in their order; None: the files."""

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
    criteria: int | None = None
    """How many criteria the release declares over all its cases; None when that is not known."""

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
        return scope_of(self.name, [task.case_id for task in self.tasks], len(self.declared))


def scope_of(name: str, cases: Sequence[str], declared: int) -> dict[str, Any]:
    """What a result over `cases` may call itself, of a release called `name` that declares `declared` cases."""
    whole = len(cases) == declared
    label = f"{name}, all {declared} tasks" if whole else f"{name}, subset {len(cases)}/{declared}"
    return {"label": label, "whole": whole, "cases": list(cases), "declared": declared}


def open_dataset(root: Path, only: Iterable[str] = (), *, prefer: str = EVALUATION_ROOT) -> Dataset:
    """Read every task below an extracted root. `only` selects case ids.

    `prefer` is the name of the root that is meant where a wrong folder leaves a choice. Raises UsageError for a wrong
    folder or an unknown id (with what was probably meant), DataError for a bad case.
    """
    folder = root / CASES
    if not folder.is_dir():
        raise UsageError(no_root(root, prefer))
    found = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != ".")
    if not found:
        raise UsageError(f"{folder} holds no case; extract the release again with `cdb dataset extract`")
    name, declared, criteria = _declared(root, found)
    if missing := [case for case in declared if case not in found]:
        raise DataError(
            f"{folder} lacks {len(missing)} of {len(declared)} declared cases, first {missing[0]}; extract again"
        )
    _require_whole_cases(folder, declared, prefer)
    chosen = list(only) or list(declared)
    if unknown := [case for case in chosen if case not in declared]:
        raise UsageError(f"no case {unknown[0]!r} in {root}; known: {', '.join(declared[:8])} …")
    order = [case for case in declared if case in set(chosen)]
    return Dataset(root, name, tuple(read_task(folder / case) for case in order), tuple(declared), criteria)


def open_solver_inputs(root: Path, only: Iterable[str] = ()) -> Dataset:
    """As `open_dataset`, for the side that may not see what a solution is graded by.

    Raises UsageError, by names alone, when a case holds anything called a rubric: then it is the evaluator's root.
    """
    dataset = open_dataset(root, only, prefer=SOLVER_ROOT)
    cases = [root / CASES / case for case in dataset.declared]
    graded = [path for case in cases for path in sorted(case.iterdir()) if "rubric" in path.name.lower()]
    if not graded:
        return dataset
    sibling = root.absolute().parent / SOLVER_ROOT
    hint = (
        f"Did you mean {sibling}?" if (sibling / CASES).is_dir() else "Extract the solver archive and pass its root"
    )
    raise UsageError(
        f"{root} is for the evaluator only: {len(graded)} files in {len(cases)} cases tell how a solution is graded "
        f"(first {graded[0].relative_to(root)}). {hint}"
    )


def read_task(folder: Path) -> Task:
    """Read one case folder. Raises DataError naming the file and what is wrong with it."""
    if lacking := _lacking(folder):
        raise DataError(f"{folder / lacking} is missing; extract the release again")
    path = folder / QUERIES
    return Task(folder.name, folder, read_queries(path.read_bytes(), str(path)))


def find_asset(task: Task, relative: str) -> Path | None:
    """The file a request or index names below `project`, compared under NFC; None when there is none.

    Raises DataError when several stored names are equal to it under NFC and none is the same.
    """
    name = find_name(relative, (*task.annotations, *task.attachments))
    direct = task.project / (name or relative)
    return direct if direct.is_file() else None


def _lacking(case: Path) -> str | None:
    if not (case / PROJECT).is_dir():
        return PROJECT
    return None if (case / QUERIES).is_file() else QUERIES


def _require_whole_cases(folder: Path, declared: list[str], prefer: str) -> None:
    bad = {case: lacking for case in declared if (lacking := _lacking(folder / case))}
    if not bad:
        return
    first = next(iter(bad))
    message = f"{len(bad)} of {len(declared)} cases in {folder} lack files: first {folder / first / bad[first]}"
    if len(bad) == len(declared):
        raise UsageError(f"{message}. Are these folders cases? {no_root_hint(folder.parent, prefer)}")
    raise DataError(f"{message} is missing; extract the release again")


def _declared(root: Path, found: list[str]) -> tuple[str, list[str], int | None]:
    """Name, case ids and count of criteria as extraction recorded them; for a plain `tar -x`, the folder's list."""
    card = root / DATASET_CARD
    if not card.is_file():
        return "unnamed dataset", found, None
    try:
        content = read_json(card)
        name, ids = str(content["name"]), [str(case) for case in content["case_ids"]]
        criteria = content.get("criteria")
    except (KeyError, TypeError, DataError) as error:
        raise DataError(f"{card} cannot be understood ({error}); extract the release again") from error
    if not ids or len(set(ids)) != len(ids):
        raise DataError(f"{card} declares no case, or one twice; extract the release again")
    return name, ids, criteria if type(criteria) is int else None


def _files_below(project: Path, folder: str) -> tuple[str, ...]:
    base = project / folder
    if not base.is_dir():
        return ()
    return tuple(sorted(p.relative_to(project).as_posix() for p in base.rglob("*") if p.is_file()))
