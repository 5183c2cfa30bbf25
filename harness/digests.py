"""The condition `media: digest`: every agent gets the same digests of the attachments, none the files natively."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from bench.media.digest import digest_of
from bench.media.settings import Settings
from bench.media.shown import SCHEMA, TEXT
from bench.task import AttachmentDigest, Dataset, Task
from sandboxes.sandbox import HOME

PLACE = "digest"
"""Folder in the home, so outside the application."""


def with_digests(dataset: Dataset, settings: Settings, progress: Callable[[str], None]) -> Dataset:
    """The same tasks, with a digest of every attachment. Raises InfraError for trouble of this machine."""
    tasks = []
    for task in dataset.tasks:
        if task.attachments:
            progress(f"{task.case_id}: digests of {len(task.attachments)} attachments")
        made = []
        for name in task.attachments:
            digest = digest_of(task.project / name, settings)
            made.append(AttachmentDigest(name, digest.folder, digest.sha256))
        tasks.append(replace(task, digests=tuple(made)))
    return replace(dataset, tasks=tuple(tasks))


def identity(dataset: Dataset, settings: Settings) -> dict[str, Any]:
    """For the lock: how digests were made and what they are. Two runs with other digests are not the same."""
    return {
        "schema": SCHEMA,
        "settings": settings.describe(),
        "digests": {task.case_id: hashes(task) for task in dataset.tasks if task.digests},
    }


def hashes(task: Task) -> dict[str, str]:
    """attachment → hash of its digest, as the agent got it; empty where the files themselves are given."""
    return {one.attachment: one.sha256 for one in task.digests or ()}


def placed(task: Task) -> Iterator[tuple[AttachmentDigest, str]]:
    """Every digest with its folder relative to the home, under a name that needs no quoting."""
    for number, one in enumerate(task.digests or (), 1):
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(one.attachment).name)[-60:].strip("-")
        yield one, f"{PLACE}/{number:02}-{plain}"


def text_paths(task: Task) -> dict[str, str]:
    """attachment → where the text of its digest lies in the container."""
    return {one.attachment: f"{HOME}/{folder}/{TEXT}" for one, folder in placed(task)}


def put_digests(task: Task, home: Path) -> None:
    """Copy the digests into `home`, the folder that becomes the container's home."""
    for one, folder in placed(task):
        shutil.copytree(one.folder, home / folder)
