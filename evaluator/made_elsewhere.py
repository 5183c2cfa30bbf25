"""A submission that no harness of ours sealed: judged by the same rules as a tree out of a container."""

from __future__ import annotations

import os
import shutil
import stat
from functools import partial
from pathlib import Path
from typing import Any

from bench.errors import DataError, UsageError
from bench.submission import (
    MADE_ELSEWHERE,
    SubmissionManifest,
    describe_entries,
    manifest_path,
    seal,
    seal_in_place,
)
from bench.task import Task
from bench.tree import walk
from bench.tree_links import why_refused
from sandboxes.sandbox import TreePolicy, TreeReport, TreeTooLarge
from sandboxes.snapshot import manifest_fields, snapshot, snapshot_policy
from sandboxes.tree_in import tar_stream
from sandboxes.tree_left_out import LeftOutParts
from sandboxes.tree_out import copy_out

SEALED = "sealed"
"""Folder of `cdb prepare`'s output for copies of trees that could not be sealed as they lie there."""


def seal_made_elsewhere(folder: Path, task: Task, out: Path, who: dict[str, Any]) -> tuple[Path, SubmissionManifest]:
    """Seal the tree in place where a snapshot would take all of it as it is; else a copy below `out`, made by the
    snapshot's rules, which records what is not in it. The tree itself is never touched.

    Gives the sealed folder and its manifest. Raises DataError when the tree passes a cap, UsageError when the copy
    would lie where the submissions do.
    """
    if _is_plain(folder, snapshot_policy(task.start_entries)):
        return folder, seal_in_place(folder, task.start_entries, who=who)
    sealed = out / SEALED
    if sealed.resolve() == folder.parent.resolve():
        raise UsageError(f"{folder.parent} is where cleaned copies are put; choose another --out")
    sealed.mkdir(parents=True, exist_ok=True)
    staged = sealed / f".{task.case_id}"
    shutil.rmtree(staged, ignore_errors=True)
    manifest_path(sealed, task.case_id).unlink(missing_ok=True)
    try:
        report = snapshot(partial(copy_tree, folder), staged, task.start_entries)
    except TreeTooLarge as error:
        raise DataError(f"{folder}: {error}; remove what is no part of the application") from error
    manifest = SubmissionManifest(
        case=task.case_id,
        agent=str(who.get("agent") or "unknown"),
        model=who.get("model"),
        outcome=MADE_ELSEWHERE,
        **manifest_fields(report),
        **describe_entries(report.entries, task.start_entries),
    )
    return seal(staged, sealed, manifest), manifest


def told(manifest: SubmissionManifest) -> str:
    """In a few words what of the tree the sealed copy does not hold as it was."""
    parts = [f"left out {node.path} ({node.files} files)" for node in manifest.left_out]
    parts += [f"refused {node.path} ({node.reason})" for node in manifest.refused]
    parts += [f"{node.path}: {node.reason}" for node in manifest.altered]
    more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
    return "; ".join(parts[:3]) + more


def copy_tree(folder: Path, target: Path, policy: TreePolicy, root: str = "") -> TreeReport:
    """Copy a foreign tree as one out of a container: by the policy, links never followed, what may not be is listed.

    `root`: where the tree lay when its links were made; by default where it lies."""
    top = "tree"
    archive = partial(tar_stream, folder, 0, top=top, special=True)
    return copy_out(archive, target, policy, root=root or str(folder.absolute()))


def _is_plain(folder: Path, policy: TreePolicy) -> bool:
    """Whether a snapshot would copy every member as it is; stops at the first that it would not."""
    left_out = LeftOutParts(policy)
    links: dict[str, str] = {}
    files = total = 0
    for relative, full in walk(os.fsencode(folder)):
        status = os.lstat(full)
        path = relative.decode("utf-8", "surrogateescape")
        parts = path.split("/")
        files, total = files + 1, total + status.st_size
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)) or status.st_mode & 0o6000:
            return False
        if left_out.takes(parts, is_folder=False, size=0):
            return False
        if len(relative) > policy.max_path_bytes or len(parts) > policy.max_depth:
            return False
        if status.st_size > policy.max_file_bytes or files > policy.max_files or total > policy.max_bytes:
            return False
        if stat.S_ISLNK(status.st_mode):
            links[path] = os.readlink(full).decode("utf-8", "surrogateescape")
    return all(why_refused(link, links) is None for link in links)
