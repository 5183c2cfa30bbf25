"""What somebody probably meant who named a wrong folder: a release, an extracted root, or one of their parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.layout import CASES, CHECKSUMS, EVALUATION_ARCHIVE, MANIFEST, PROJECT, QUERIES, SOLVER_ARCHIVE

_PARTS = (SOLVER_ARCHIVE, EVALUATION_ARCHIVE, CHECKSUMS)
_HIGH = 7
"""How far above: from a folder in an application to its root."""
_DEEP = 3
"""How far below a folder the right one is looked for: a download cache has it three levels down."""
_MOST = 2000


def no_release(folder: Path) -> str:
    """Why `folder` is no release folder, and which one is probably meant."""
    if not folder.exists():
        return (
            f"{folder} is no release: there is no such folder. {_near(folder, is_release, 'the downloaded folder')}"
        )
    what = f"{folder} is no release: it has no {MANIFEST}"
    parts = [name for name in _PARTS if (folder / name).exists()]
    if parts:
        return f"{what}, though it has {', '.join(parts)}; download {MANIFEST} too"
    if is_root(folder):
        what += f". It looks like an extracted root with {len(_cases(folder))} cases"
        return f"{what}: pass the folder that was downloaded, or give this one to `cdb solve` or `cdb prepare`"
    return f"{what}. {_near(folder, is_release, 'the folder that holds the downloaded archives')}"


def no_root(folder: Path, prefer: str) -> str:
    """Why `folder` is no extracted root, and which one is probably meant: of several, that of the name `prefer`."""
    if not folder.exists():
        return f"{folder} does not exist. {no_root_hint(folder, prefer)}"
    if not folder.is_dir():
        return f"{folder} is a file, not an extracted root; extract the release with `cdb dataset extract`"
    what = f"{folder} holds no {CASES}/ folder"
    if is_release(folder) or (folder / SOLVER_ARCHIVE).is_file():
        return f"{what}: it is a release. Extract it with `cdb dataset extract {folder} --out work`"
    below = [case for case in _subfolders(folder) if (case / PROJECT).is_dir() or (case / QUERIES).is_file()]
    if below and folder.name != CASES:
        what += f", but {len(below)} cases lie in it directly; put them into {folder / CASES}/"
        return f"{what} and pass {folder} again"
    return f"{what}. {no_root_hint(folder, prefer)}"


def no_root_hint(folder: Path, prefer: str) -> str:
    """`Did you mean …?`, or what to pass instead of a folder whose `cases/` holds no case."""
    return _near(folder, is_root, "the folder a release archive was extracted into", prefer)


def is_release(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and any((folder / name).exists() for name in _PARTS)


def is_root(folder: Path) -> bool:
    """Whether `cases/` is there with a case in it."""
    return any((case / PROJECT).is_dir() or (case / QUERIES).is_file() for case in _cases(folder))


def _near(folder: Path, is_right: Callable[[Path], bool], otherwise: str, prefer: str = "") -> str:
    """`Did you mean …?` for the nearest right folder above, below or beside, else what to pass."""
    above = [folder, *folder.absolute().parents][1:_HIGH]
    beside = [other for other in (_subfolders(above[0]) if above else []) if other != folder.absolute()]
    for candidate in (*above, *_below(folder), *beside):
        if _holds(is_right, candidate):
            twin = candidate.parent / prefer
            return (
                f"Did you mean {twin if prefer and candidate not in above and _holds(is_right, twin) else candidate}?"
            )
    return f"Pass {otherwise}"


def _holds(is_right: Callable[[Path], bool], folder: Path) -> bool:
    try:
        return is_right(folder)
    except OSError:  # not ours to look into, so not what is meant
        return False


def _below(folder: Path) -> Iterable[Path]:
    """Folders below, nearest first; a bounded number, and links are not followed."""
    level, seen = [folder], 0
    for _ in range(_DEEP):
        level = [child for parent in level for child in _subfolders(parent)][: _MOST - seen]
        seen += len(level)
        yield from level


def _cases(root: Path) -> list[Path]:
    return _subfolders(root / CASES)


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [e.name for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:  # not there, no folder, or not ours to read: then the right one is not there either
        return []
    return [folder / name for name in sorted(found)]
