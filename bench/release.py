"""A downloaded release as opaque bytes: its files, checksums, manifest and archives. Knows no criterion's text.

Layout after the dataset card (Co-Design Bench, Public ME-96): two archives, parquet indexes, rubric exports,
`manifest.json`, `SHA256SUMS`.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bench.atomic import sync_folder, write_json
from bench.errors import DataError, UsageError
from bench.tree import file_sha256

SOLVER_ARCHIVE = "solve_norubric.tar.gz"
EVALUATION_ARCHIVE = "eval_withrubric.tar.gz"
CHECKSUMS = "SHA256SUMS"
MANIFEST = "manifest.json"
SOLVER_ROOT = "solver-inputs"
EVALUATION_ROOT = "evaluation-inputs"
DATASET_CARD = "dataset.json"
"""Written beside `cases/` by extraction: name, version, case ids and counts, so that a run knows its scope."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class Release:
    """A release folder whose manifest was read. `case_ids` in the manifest's order."""

    folder: Path
    name: str
    version: str
    track: str
    case_ids: tuple[str, ...]
    criteria: int


def open_release(folder: Path) -> Release:
    """Read the manifest of a release folder. Raises UsageError for a wrong folder, DataError for a bad manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"{folder} is no release: it has no {MANIFEST}. {_hint(folder)}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); download it again") from error
    ids = _case_ids(manifest, path)
    return Release(
        folder=folder,
        name=str(manifest.get("name") or manifest.get("dataset") or folder.name),
        version=str(manifest.get("version", "")),
        track=str(manifest.get("benchmark_track") or manifest.get("track") or ""),
        case_ids=ids,
        criteria=_criteria_count(manifest, path),
    )


def verify_files(release: Release) -> list[str]:
    """Check every file that SHA256SUMS names; the names of the good ones, in its order.

    Raises DataError for the first bad file, telling a Git-LFS pointer, a truncated archive and changed bytes apart.
    """
    sums = release.folder / CHECKSUMS
    if not sums.is_file():
        raise DataError(f"{sums} is missing, so nothing can be checked; download the whole release again")
    good = []
    for expected, name in _checksum_lines(sums):
        _verify_file(release.folder / name, name, expected)
        good.append(name)
    for archive in (SOLVER_ARCHIVE, EVALUATION_ARCHIVE):
        if archive not in good:
            raise DataError(f"{sums} does not list {archive}; download the whole release again")
    folders = (release.folder, *(release.folder / name for name in ("data", "rubrics")))
    here = {
        p.relative_to(release.folder).as_posix() for f in folders if f.is_dir() for p in f.iterdir() if p.is_file()
    }
    unlisted = sorted(name for name in here - set(good) - {CHECKSUMS} if not PurePosixPath(name).name.startswith("."))
    if unlisted:
        raise DataError(f"{sums} does not list {unlisted[0]}, so it cannot be trusted; remove it or download again")
    return good


def extract(release: Release, work: Path) -> tuple[Path, Path]:
    """Verify, then extract both archives below `work`; gives the solver root and the evaluation root.

    Each root appears under its final name only when it is whole. An earlier extraction of the same release is
    kept as it is. The evaluation root is private to its owner. Raises DataError naming a hostile member.
    """
    verify_files(release)
    roots = work / SOLVER_ROOT, work / EVALUATION_ROOT
    for root, archive, private in ((roots[0], SOLVER_ARCHIVE, False), (roots[1], EVALUATION_ARCHIVE, True)):
        _extract_archive(release, release.folder / archive, root, private=private)
    return roots


def _extract_archive(release: Release, archive: Path, root: Path, *, private: bool) -> None:
    card = {
        "schema": "cdb.dataset/1",
        "name": release.name,
        "version": release.version,
        "track": release.track,
        "archive_sha256": file_sha256(archive),
        "case_ids": list(release.case_ids),
        "tasks": len(release.case_ids),
        "criteria": release.criteria,
    }
    if (root / DATASET_CARD).is_file():
        if json.loads((root / DATASET_CARD).read_text(encoding="utf-8")) == card:
            return
        raise UsageError(f"{root} holds another extraction; remove it or choose another --out")
    if root.exists():
        raise UsageError(f"{root} exists and is not a whole extraction of ours; remove it or choose another --out")
    root.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{root.name}.", dir=root.parent))  # mkdtemp makes it 0700
    try:
        _unpack(archive, staging)
        found = {entry.name for entry in (staging / "cases").iterdir()} if (staging / "cases").is_dir() else set()
        if missing := [case for case in release.case_ids if case not in found]:
            raise DataError(f"{archive.name} lacks {len(missing)} of the manifest's cases, first {missing[0]}")
        write_json(staging / DATASET_CARD, card)
        staging.chmod(0o700 if private else 0o755)
        staging.rename(root)
        sync_folder(root.parent)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _unpack(archive: Path, target: Path) -> None:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                _refuse_hostile(member, archive)
                tar.extract(member, target, filter=_plain_modes)
    except (tarfile.ReadError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{archive.name} cannot be read to its end ({error}); download it again") from error
    except tarfile.FilterError as error:
        raise DataError(f"{archive.name}: refused a member: {error}") from error


def _refuse_hostile(member: tarfile.TarInfo, archive: Path) -> None:
    """tarfile's `data` filter relocates absolute names and falls back on hard links; refuse both outright."""
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isreg() or member.isdir() or member.issym()):
        raise DataError(f"{archive.name}: refused member {member.name!r}: it is no plain file, folder or inner link")


def _plain_modes(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    checked = tarfile.data_filter(member, target)
    if member.isreg():
        return checked.replace(mode=0o755 if member.mode & 0o100 else 0o644, deep=False)
    return checked


def _verify_file(path: Path, name: str, expected: str) -> None:
    if not path.is_file():
        raise DataError(f"{name} is missing from {path.parent}; download it again")
    with path.open("rb") as stream:
        head = stream.read(len(_LFS_POINTER))
    if head == _LFS_POINTER:
        raise DataError(f"{name} is a Git-LFS pointer, not the file itself; run `git lfs pull` in {path.parent}")
    if file_sha256(path) == expected:
        return
    if name.endswith(".tar.gz") and _is_truncated(path):
        raise DataError(f"{name} is truncated ({path.stat().st_size} bytes); download it again")
    raise DataError(f"{name} does not match its sha256 in {CHECKSUMS}; it was changed or damaged, download it again")


def _is_truncated(path: Path) -> bool:
    """Whether a gzip file ends before its end marker."""
    try:
        with gzip.open(path) as stream:
            while stream.read(1024 * 1024):
                pass
    except EOFError:
        return True
    except (gzip.BadGzipFile, zlib.error):
        return False
    return False


def _checksum_lines(path: Path) -> Iterator[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 ({error}); download it again") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        expected, separator, name = line.partition(" ")
        name = name.lstrip(" *").removeprefix("./")
        inner = PurePosixPath(name)
        if not separator or len(expected) != 64 or not name or inner.is_absolute() or ".." in inner.parts:
            raise DataError(f"{path}, line {number}: no `sha256  name` line; download it again")
        yield expected.lower(), name


def _case_ids(manifest: Any, path: Path) -> tuple[str, ...]:
    ids = manifest.get("case_ids") or manifest.get("cases") if isinstance(manifest, dict) else None
    if isinstance(ids, list) and all(isinstance(i, dict) for i in ids):
        ids = [i.get("case_id") or i.get("id") for i in ids]
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) and _is_plain(i) for i in ids):
        keys = sorted(manifest) if isinstance(manifest, dict) else type(manifest).__name__
        raise DataError(f"{path} names no case ids under `case_ids` or `cases`; found {keys}")
    if len(set(ids)) != len(ids):
        raise DataError(f"{path} names a case twice")
    return tuple(ids)


def _is_plain(case_id: str) -> bool:
    return case_id not in ("", ".", "..") and "/" not in case_id and "\0" not in case_id


def _criteria_count(manifest: dict[str, Any], path: Path) -> int:
    counts = manifest.get("counts")
    places: list[Any] = [manifest.get("criteria"), manifest.get("criteria_count")]
    if isinstance(counts, dict):
        places += [counts.get("criteria"), counts.get("rubrics")]
    for value in places:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    raise DataError(f"{path} gives no count of criteria (`counts.criteria`); found {sorted(manifest)}")


def _hint(folder: Path) -> str:
    if (folder / "cases").is_dir():
        return "It looks like an extracted root; pass the folder that was downloaded instead"
    for child in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (child / MANIFEST).is_file():
            return f"Did you mean {child}?"
    return "Pass the folder that holds the downloaded archives"
