"""Is this the folder with one folder for each case? If not, which one was meant."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Collection
from itertools import islice
from pathlib import Path

from bench.errors import DataError, UsageError
from bench.task import QUERIES, Dataset

_MANIFEST = ".manifest.json"
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".7z")
_LOOKED_AT = 2000
"""How many folders are looked at for a hint."""

Progress = Callable[[str], None]


def check_folder(submissions: Path, dataset: Dataset, progress: Progress) -> None:
    """Raise UsageError naming the right folder when `submissions` is another one, DataError when a case's submission
    is there in a form that cannot be judged. Folders of no case are named through `progress`.

    An entry of ours none of whose trials left anything is in order: its submissions folder is empty.
    """
    if not submissions.is_dir():
        unpack = "; unpack it and pass the folder" if submissions.is_file() else ""
        what = "is no folder" if submissions.exists() else "does not exist"
        raise UsageError(f"{submissions} {what}{unpack}; pass the folder that holds one folder for each case")
    cases = set(dataset.declared)
    here = _folders(submissions)
    _refuse_other_folders(submissions, cases, here)
    if not cases & here and not (_is_of_ours(submissions) and not here):
        raise UsageError(f"{submissions} holds no folder named after a case. {_hint(submissions, cases, here)}")
    for case in (task.case_id for task in dataset.tasks):
        _check_form(submissions, case)
    for name in sorted(here - cases):
        progress(f"{submissions / name} is named after no case and is not used{_meant(name, cases)}")


def _folders(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")}


def _is_of_ours(submissions: Path) -> bool:
    return (submissions.parent / "journal.jsonl").is_file()


def _refuse_other_folders(submissions: Path, cases: Collection[str], here: Collection[str]) -> None:
    """Folders that have one folder for each case and yet no submissions in them."""
    present = [submissions / case for case in sorted(cases) if case in here]
    if any((folder / QUERIES).is_file() and (folder / "project").is_dir() for folder in present):
        raise UsageError(
            f"{submissions} holds a dataset's inputs, not submissions; pass the folder with the applications "
            f"that an agent left (runs/RUN/ENTRY/submissions after `cdb solve`)"
        )
    if any((folder / "BUILT.json").is_file() for folder in present):
        raise UsageError(
            f"{submissions} holds built applications of a judging; pass the submissions they were built of"
        )
    if _is_of_ours(submissions) and any((folder / "1").is_dir() and not _is_sealed(folder) for folder in present):
        raise UsageError(
            f"{submissions} holds the logs of trials. Did you mean {submissions.parent / 'submissions'}?"
        )


def _is_sealed(folder: Path) -> bool:
    return folder.with_name(folder.name + _MANIFEST).is_file()


def _check_form(submissions: Path, case: str) -> None:
    folder = submissions / case
    if folder.is_symlink():
        raise DataError(f"{folder} is a link; put the application itself there")
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is no folder; put the application of {case} into a folder of that name")
    if folder.is_dir():
        if not _is_sealed(folder) and not any(folder.iterdir()):
            raise DataError(
                f"{folder} is empty; put the application there, or remove it to have {case} count as missing"
            )
        return
    for name in (f"{case}{suffix}" for suffix in _ARCHIVES):
        if (submissions / name).exists():
            raise DataError(f"{submissions / name} is packed; unpack it into {folder}")


def _hint(submissions: Path, cases: Collection[str], here: Collection[str]) -> str:
    if submissions.name in cases:
        return f"It is one case's folder. Did you mean {submissions.parent}?"
    if below := _below(submissions, cases):
        several = " one of" if len(below) > 1 else ""
        return f"Did you mean{several} {', '.join(map(str, below))}?"
    for above in list(submissions.absolute().parents)[:3]:
        if above.name in cases:
            return f"It lies in one case's folder. Did you mean {above.parent}?"
    if not here:
        return "It is empty" if not any(submissions.iterdir()) else "It holds no folder at all"
    alike = [(name, case) for name in sorted(here) for case in [_alike(name, cases)] if case]
    if alike:
        return (
            f"Its folder {alike[0][0]!r} is not case {alike[0][1]!r}; folders must be named exactly as the cases are"
        )
    return f"It holds {sorted(here)[:4]}, the dataset {sorted(cases)[:4]}"


def _below(submissions: Path, cases: Collection[str]) -> list[Path]:
    """Folders up to three levels down that hold folders named after cases; those called submissions first."""
    found, level = [], [submissions]
    for _ in range(3):
        level = [folder / name for folder in level for name in sorted(_folders(folder))]
        level = list(islice((folder for folder in level if not folder.is_symlink()), _LOOKED_AT))
        found += [folder for folder in level if cases and not set(cases).isdisjoint(_folders(folder))]
    named = [folder for folder in found if folder.name == "submissions"]
    return (named or found)[:4]


def _meant(name: str, cases: Collection[str]) -> str:
    case = _alike(name, cases) or next(iter(difflib.get_close_matches(name, sorted(cases), n=1, cutoff=0.8)), None)
    return f"; is it meant for {case}?" if case else ""


def _alike(name: str, cases: Collection[str]) -> str | None:
    """The case that differs from `name` in letter case, Unicode form, or dashes only."""
    return next((case for case in sorted(cases) if _plain(case) == _plain(name)), None)


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().replace("_", "-").replace(" ", "-").strip("-")
