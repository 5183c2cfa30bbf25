"""A downloaded release as opaque bytes: its manifest, its checksums, its extraction. Knows no criterion's text.

Layout after the dataset card (Co-Design Bench, Public ME-96): two archives, parquet indexes, rubric exports,
`manifest.json`, `SHA256SUMS`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.archive_rules import Caps
from bench.atomic import sync_folder, write_json
from bench.checksums import file_faults, why_no_content
from bench.errors import DataError, UsageError
from bench.layout import (
    CASES,
    DATASET_CARD,
    EVALUATION_ARCHIVE,
    EVALUATION_ROOT,
    MANIFEST,
    PROJECT,
    QUERIES,
    SOLVER_ARCHIVE,
    SOLVER_ROOT,
    Release,
)
from bench.manifest import read_manifest
from bench.names import twins_told
from bench.strict_json import read_json
from bench.tree import file_sha256
from bench.unpack import unpack
from bench.wrong_folder import no_release

__all__ = [
    "DATASET_CARD",
    "EVALUATION_ARCHIVE",
    "EVALUATION_ROOT",
    "SOLVER_ARCHIVE",
    "SOLVER_ROOT",
    "Release",
    "extract",
    "open_release",
    "verify_files",
]


def open_release(folder: Path) -> Release:
    """Read the manifest of a release folder. Raises UsageError for a wrong folder, DataError for a bad manifest."""
    path = folder / MANIFEST
    if not path.is_file() and not path.is_symlink():
        raise UsageError(no_release(folder))
    if why := why_no_content(path):
        raise DataError(why)
    return read_manifest(path)


def verify_files(release: Release) -> list[str]:
    """Check every file that SHA256SUMS names; the names of the good ones, in its order.

    Raises DataError naming every bad file, with pointers, truncation and changed bytes told apart.
    """
    good, faults, _ = file_faults(release)
    if faults:
        raise DataError(all_faults(release.folder, [fault.message for fault in faults]))
    return good


def all_faults(folder: Path, messages: list[str]) -> str:
    """One message about every fault of a release."""
    if len(messages) == 1:
        return messages[0]
    return f"{folder} has {len(messages)} faults:\n  " + "\n  ".join(messages)


def extract(
    release: Release, work: Path, caps: Caps = Caps(), progress: Callable[[str], None] = lambda _line: None
) -> tuple[Path, Path]:
    """Verify, then extract both archives below `work`; gives the solver root and the evaluation root.

    Each root appears under its final name only when it is whole; one that is there already, of the same archive, is
    kept as it is, so that a call after a kill goes on. The evaluation root is private to its owner. Raises DataError
    naming a hostile member or what is missing, UsageError when something else lies there or another call runs.
    `progress` is told of names that differ in Unicode normalisation only; all of them are kept.
    """
    verify_files(release)
    work.mkdir(parents=True, exist_ok=True)
    solver, evaluation = work / SOLVER_ROOT, work / EVALUATION_ROOT
    with _alone(work):
        for root, archive, mode in ((solver, SOLVER_ARCHIVE, 0o755), (evaluation, EVALUATION_ARCHIVE, 0o700)):
            for note in _extract_archive(release, release.folder / archive, root, mode, caps):
                progress(note)
    return solver, evaluation


def _extract_archive(release: Release, archive: Path, root: Path, mode: int, caps: Caps) -> list[str]:
    card = _card(release, archive)
    staging = root.parent / f".{root.name}.partial"
    if staging.exists():  # of a call that was killed: nobody else is here (`_alone`)
        shutil.rmtree(staging)
    if root.exists() or root.is_symlink():
        _require_ours(root, card)
        root.chmod(mode)
        return list(card["notes"])
    staging.mkdir(mode=0o700)
    try:
        card["notes"] = twins_told(archive.name, unpack(archive, staging, caps))
        _require_cases(release, archive.name, staging / CASES)
        write_json(staging / DATASET_CARD, card)
        staging.chmod(mode)
        os.sync()  # the folder's name must not outlive a power cut that its files do not
        staging.rename(root)
        sync_folder(root.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return list(card["notes"])


def _card(release: Release, archive: Path) -> dict[str, Any]:
    return {
        "schema": "cdb.dataset/1",
        "name": release.name,
        "version": release.version,
        "track": release.track,
        "archive_sha256": file_sha256(archive),
        "case_ids": list(release.case_ids),
        "tasks": len(release.case_ids),
        "criteria": release.criteria,
        "notes": [],
    }


def _require_ours(root: Path, card: dict[str, Any]) -> None:
    """Raises UsageError unless `root` is a whole extraction of the same archive; takes over its notes."""
    path = root / DATASET_CARD
    if root.is_symlink() or not path.is_file():
        raise UsageError(f"{root} exists and is not a whole extraction of ours; remove it or choose another --out")
    found = read_json(path)
    if not isinstance(found, dict) or {**found, "notes": []} != card:
        raise UsageError(f"{root} holds another extraction; remove it or choose another --out")
    gone = [case for case in card["case_ids"] if not (root / CASES / case / QUERIES).is_file()]
    if gone:
        raise UsageError(f"{root} is not whole any more: {len(gone)} cases lack files, first {gone[0]}; remove it")
    card["notes"] = found.get("notes", [])


def _require_cases(release: Release, archive: str, cases: Path) -> None:
    found = {entry.name for entry in cases.iterdir() if entry.is_dir()} if cases.is_dir() else set()
    if missing := [case for case in release.case_ids if case not in found]:
        raise DataError(
            f"{archive} lacks {len(missing)} of the manifest's {len(release.case_ids)} cases, first {missing[0]}; "
            "download it again"
        )
    if more := sorted(found - set(release.case_ids)):
        raise DataError(
            f"{archive} holds {len(more)} cases that the manifest does not name, first {more[0]}; download both again"
        )
    for case in release.case_ids:
        lacking = [name for name, there in _needed(cases / case).items() if not there]
        if lacking:
            raise DataError(f"{archive}: case {case} has no {lacking[0]}; download it again")


def _needed(case: Path) -> dict[str, bool]:
    return {QUERIES: (case / QUERIES).is_file(), f"{PROJECT}/": (case / PROJECT).is_dir()}


@contextmanager
def _alone(work: Path) -> Iterator[None]:
    """Keeps two extractions out of one folder; the lock ends with the process, however it ends."""
    descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"another extraction into {work} is running; wait for it or choose another --out"
            ) from error
        yield
    finally:
        os.close(descriptor)
