"""What goes into a bundle: for each judging its files, for each place of submissions the solve entry around it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import DataError, UsageError
from bench.submission import check_seal, manifest_path, read_manifest
from bench.tree import printable, walk
from bench.tree_links import why_refused
from evaluator.bundle.layout import ENTRIES, RESULT_FILES, RESULTS, START
from evaluator.cases import Case, read_cases, write_cases
from evaluator.exports.entry import results_name

MINE = "mine"
"""Text of ours that nothing is bound to: secrets are taken out of it."""
BOUND = "bound"
"""Text of ours that a hash chain, a seal or a digest is bound to, or that is computed anew: it must stay as it is."""
THEIRS = "theirs"
"""An application, or no text at all: copied byte for byte."""

_TEXT = (".json", ".jsonl", ".txt", ".md", ".log")


@dataclass(frozen=True)
class Source:
    """A file or link on its way into the bundle."""

    name: bytes
    """Its path in the bundle, as bytes."""
    path: bytes
    kind: str


@dataclass
class Contents:
    """Everything that goes in, in no order, and what is told of it. `made`: where files made for it are put."""

    made: Path
    sources: list[Source] = field(default_factory=list)
    left_out: list[dict[str, str]] = field(default_factory=list)
    places: dict[Path, str] = field(default_factory=dict)
    """Submissions folder → its path in the bundle."""
    entry_of: dict[str, str | None] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    sealed: set[str] = field(default_factory=set)
    """Submissions that are in already, of another judging of the same ones."""

    def add(self, name: str, path: Path, kind: str) -> None:
        self.sources.append(Source(os.fsencode(name), os.fsencode(path), kind))

    def add_tree(self, name: str, folder: Path, *, mine: bytes = b"", without: frozenset[str] = frozenset()) -> None:
        """An application as it is, but for links that no bundle may hold: those that do not end inside it.

        `mine`: a file of it that is ours."""
        nodes = list(walk(os.fsencode(folder), without))
        paths = {os.fsdecode(relative): Path(os.fsdecode(full)) for relative, full in nodes}
        links = {inner: os.readlink(path) for inner, path in paths.items() if path.is_symlink()}
        refused = {link: why for link in links if (why := why_refused(link, links))}
        for link, why in sorted(refused.items()):
            self.left_out.append({"what": printable(f"{name}/{link}"), "why": printable(why)})
        for relative, full in nodes:
            if os.fsdecode(relative) not in refused:
                kind = MINE if relative == mine else THEIRS
                self.sources.append(Source(os.fsencode(name) + b"/" + relative, full, kind))

    def add_evidence(self, name: str, folder: Path) -> None:
        """Evidence of criteria (`CASE/NN/`) is bound by the journal; what lies beside it is ours to redact."""
        for relative, full in walk(os.fsencode(folder)):
            parts = os.fsdecode(relative).split("/")
            text = parts[-1].endswith(_TEXT)
            bound = len(parts) > 2 and parts[1].isdecimal()
            kind = (BOUND if bound else MINE) if text else THEIRS
            self.sources.append(Source(os.fsencode(name) + b"/" + relative, full, kind))


def gather(results: list[Path], made: Path, *, start: bool, built: bool, trajectories: bool) -> Contents:
    """Look up everything of these results. Raises UsageError for a folder that is no judging of ours, or is being
    written, DataError for a broken seal."""
    contents = Contents(made)
    names = [results_name(folder) for folder in results]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two results folders are called {twice!r}; bundle them apart, or rename one")
    for name, folder in zip(names, results, strict=True):
        _add_results(contents, name, folder, start=start, built=built, trajectories=trajectories)
    if not start:
        told = "the dataset's own terms rule them; `cdb verify --dataset` takes them from an extracted release"
        contents.left_out.append({"what": "starting applications", "why": told})
    if not built:
        contents.left_out.append({"what": "built applications", "why": "left out on request; a replay builds anew"})
    if not trajectories:
        contents.left_out.append({"what": "trial logs and trajectories", "why": "not asked for"})
    contents.left_out.append({"what": "digests of attachments", "why": "made anew from the release by cdb prepare"})
    return contents


def _add_results(
    contents: Contents, name: str, folder: Path, *, start: bool, built: bool, trajectories: bool
) -> None:
    here = f"{RESULTS}/{name}"
    _require_quiet(folder / "journal.lock")
    for needed in RESULT_FILES:
        if not (folder / needed).is_file():
            remedy = (
                "run `cdb score` first" if needed in ("scores.json", "run_card.md", "spend.json") else "is it whole?"
            )
            raise UsageError(f"{folder} has no {needed}, so there is nothing to verify; {remedy}")
        if needed != "cases.json":
            contents.add(f"{here}/{needed}", folder / needed, BOUND)
    if (folder / "evidence").is_dir():
        contents.add_evidence(f"{here}/evidence", folder / "evidence")
    if built and (folder / "built").is_dir():
        _add_built(contents, f"{here}/built", folder / "built")
    cases = read_cases(folder / "cases.json")
    inner = [_inner(contents, here, folder, case, start=start, trajectories=trajectories) for case in cases.cases]
    places = {contents.places[_place(folder, case)] for case in cases.cases if case.submission}
    contents.entry_of[name] = places.pop().split("/")[1] if len(places) == 1 else None
    written = contents.made / name / "cases.json"
    write_cases(cases.model_copy(update={"cases": inner}), written)
    contents.add(f"{here}/cases.json", written, BOUND)


def _require_quiet(lock: Path) -> None:
    """Raises UsageError while the journal beside this lock is being written."""
    if not lock.is_file():
        return
    with lock.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{lock.parent} is being written; wait for it to end, then bundle it") from None


def _add_built(contents: Contents, name: str, folder: Path) -> None:
    for case in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        contents.add_tree(f"{name}/{case.name}", case, mine=b"BUILT.json")


def _place(folder: Path, case: Case) -> Path:
    assert case.submission
    return (folder / case.submission.folder).resolve().parent


def _inner(contents: Contents, here: str, folder: Path, case: Case, *, start: bool, trajectories: bool) -> Case:
    """The case with every path leading within the bundle; its submission and start are put in on the way."""
    project = f"{START}/{case.case}/project"
    update: dict[str, object] = {
        "project": os.path.relpath(project, here),
        "attachments": [one.model_copy(update={"digest": None}) for one in case.attachments],
        "annotation": None,
    }
    if case.annotation:
        inside = os.path.relpath((folder / case.annotation).resolve(), (folder / case.project).resolve())
        update["annotation"] = os.path.relpath(f"{project}/{inside}", here)
    if case.submission:
        place = _place(folder, case)
        if place not in contents.places:
            _add_entry(contents, place, trajectories)
        _add_submission(contents, place, case.case)
        update["submission"] = case.submission.model_copy(
            update={"folder": os.path.relpath(f"{contents.places[place]}/{case.case}", here)}
        )
    if start and case.case not in contents.started:
        contents.started.add(case.case)
        contents.add_tree(project, folder / case.project, without=frozenset({".git"}))
    return case.model_copy(update=update)


def _add_submission(contents: Contents, place: Path, case: str) -> None:
    name = f"{contents.places[place]}/{case}"
    manifest = read_manifest(place, case)
    if manifest is None:
        raise DataError(f"{place / case} has no seal beside it; run `cdb prepare` and `cdb judge` again")
    if name in contents.sealed:
        return
    contents.sealed.add(name)
    check_seal(place, manifest)
    contents.add(f"{name}.manifest.json", manifest_path(place, case), BOUND)
    contents.add_tree(name, place / case)


def _add_entry(contents: Contents, place: Path, trajectories: bool) -> None:
    """The solve entry around a submissions folder: an entry of ours with lock and journal, or the folder alone."""
    entry = place.parent
    of_ours = (entry / "journal.jsonl").is_file() and (entry / "lock.json").is_file()
    base = entry.name if of_ours or place.name in ("submissions", "sealed") else place.name
    taken = {told.split("/")[1] for told in contents.places.values()}
    name = next(n for n in (base, *(f"{base}-{k}" for k in range(2, 10_000))) if n not in taken)
    contents.places[place] = f"{ENTRIES}/{name}/submissions"
    if (place / "entry.json").is_file():
        contents.add(f"{ENTRIES}/{name}/submissions/entry.json", place / "entry.json", MINE)
    if not of_ours:
        return
    for file in ("lock.json", "journal.jsonl"):
        contents.add(f"{ENTRIES}/{name}/{file}", entry / file, BOUND)
    if trajectories and (entry / "trials").is_dir():
        for relative, full in _trial_files(entry / "trials"):
            kind = MINE if relative.endswith((".json", ".jsonl", ".md", ".log", ".txt")) else THEIRS
            contents.add(f"{ENTRIES}/{name}/trials/{relative}", full, kind)


def _trial_files(trials: Path) -> Iterator[tuple[str, Path]]:
    """Prompts, output and trajectories; not the bodies of model calls, the agents' own logs or kept workspaces."""
    for case in sorted(path for path in trials.iterdir() if path.is_dir()):
        for attempt in sorted(path for path in case.iterdir() if path.is_dir()):
            names = ("request.md", "stdout.log", "stderr.log", "trajectory.json", "changes.patch", "error.txt")
            for file in (attempt / name for name in names):
                if file.is_file() and not file.is_symlink():
                    yield f"{case.name}/{attempt.name}/{file.name}", file
            media = attempt / "media"
            for file in sorted(media.iterdir()) if media.is_dir() else []:
                if file.is_file() and not file.is_symlink():
                    yield f"{case.name}/{attempt.name}/media/{file.name}", file
