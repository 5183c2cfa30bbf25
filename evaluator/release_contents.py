"""What is in a release's archive, without extracting it: every path with its digest, the small files themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from bench.archive import Content, hostile, read_members
from bench.archive_rules import Member
from bench.errors import DataError
from bench.layout import CASES, PROJECT, QUERIES, SOLVER_ARCHIVE, Release
from bench.names import nfc_twins, twins_told
from evaluator.rubric import RUBRIC

MAX_SMALL_BYTES = 16 * 1024 * 1024
"""Cap for a single user_queries.json or rubric.json inside an archive."""
_SHOWN = 3
_JUNK = (".DS_Store", "Thumbs.db", "desktop.ini", ".gitkeep")


@dataclass
class Contents:
    """An archive as it was read. `entries` maps a path to what must be equal in both archives."""

    archive: str
    entries: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    small: dict[str, bytes] = field(default_factory=dict)
    """user_queries.json and rubric.json of each case, by path."""
    refused: list[str] = field(default_factory=list)
    """A message for each member that extraction would refuse."""

    @property
    def twins(self) -> list[str]:
        """A line for each group of names that Unicode normalisation alone tells apart."""
        return twins_told(self.archive, nfc_twins([*self.folders, *self.entries]))

    @cached_property
    def by_case(self) -> dict[str, list[str]]:
        """The entries' paths by the case they belong to. To be asked for when the archive was read to its end."""
        found: dict[str, list[str]] = {}
        for path in self.entries:
            if path.startswith(CASES + "/"):
                found.setdefault(path.split("/")[1], []).append(path)
        return found

    def assets(self, case: str, folder: str) -> list[str]:
        """What lies in a folder of a case's project, without what file managers leave there."""
        base = f"{CASES}/{case}/{PROJECT}/{folder}/"
        found = [path for path in self.by_case.get(case, ()) if path.startswith(base)]
        return [path for path in found if _name(path) not in _JUNK and not _name(path).startswith("._")]


def read_contents(release: Release, archive: str) -> Contents:
    """Read one archive to its end, as a stream. Raises DataError when it cannot be read to its end."""
    path = release.folder / archive
    found = Contents(archive)
    small = {f"{CASES}/{case}/{name}" for case in release.case_ids for name in (QUERIES, RUBRIC)}
    for member, content in read_members(path, lambda name, why: found.refused.append(hostile(path, name, why))):
        _take(found, member, content, is_small=member.path in small)
    return found


def content_faults(release: Release, contents: Contents) -> Iterator[str]:
    """Members that may not be, and cases that are missing, incomplete or not in the manifest."""
    yield from contents.refused
    yield from _rubrics_for_solvers(contents)
    for case in release.case_ids:
        base = f"{CASES}/{case}"
        if base not in contents.folders:
            yield f"{contents.archive} lacks the manifest's case {case}; download it again"
            continue
        needed = {QUERIES: f"{base}/{QUERIES}" in contents.entries}
        needed[PROJECT + "/"] = f"{base}/{PROJECT}" in contents.folders
        if contents.archive != SOLVER_ARCHIVE:
            needed[RUBRIC] = f"{base}/{RUBRIC}" in contents.entries
        for name in (name for name, there in needed.items() if not there):
            yield f"{contents.archive} lacks {base}/{name}; download it again"
    cases = {path.split("/")[1] for path in contents.folders if path.startswith(CASES + "/")}
    for case in sorted(cases - set(release.case_ids)):
        yield f"{contents.archive} holds a case {case!r} that manifest.json does not name; download both again"


def archive_differences(solver: Contents, evaluation: Contents) -> Iterator[str]:
    """The evaluation archive must hold the same inputs, byte for byte, and rubrics besides."""
    here = solver.entries
    there = {path: what for path, what in evaluation.entries.items() if not _is_rubric(path)}
    differing = sorted(path for path in here.keys() | there.keys() if here.get(path) != there.get(path))
    differing = [path for path in differing if not _is_rubric(path)]
    for path in differing[:_SHOWN]:
        yield f"{path} is not the same in {solver.archive} and {evaluation.archive}; download both again"
    if len(differing) > _SHOWN:
        yield f"{solver.archive} and {evaluation.archive} differ in {len(differing)} files; download both again"


def _take(found: Contents, member: Member, content: Content | None, *, is_small: bool) -> None:
    parts = member.path.split("/")
    found.folders.update("/".join(parts[:length]) for length in range(1, len(parts)))
    match member.kind:
        case "folder":
            found.folders.add(member.path)
        case "link":
            found.entries[member.path] = f"link to {member.source}"
        case "hard link":
            found.entries[member.path] = found.entries[member.source]
            if is_small:
                raise DataError(f"{found.archive}: {member.path} is a hard link; download it again")
        case "file":
            if is_small and member.size > MAX_SMALL_BYTES:
                what = f"{member.path} has {member.size} bytes, too many for {parts[-1]}"
                raise DataError(f"{found.archive}: {what}; download it again")
            digest, kept = hashlib.sha256(), bytearray()
            while content and (piece := content.read()):
                digest.update(piece)
                if is_small:
                    kept += piece
            found.entries[member.path] = f"{digest.hexdigest()} {member.executable}"
            if is_small:
                found.small[member.path] = bytes(kept)


def _rubrics_for_solvers(contents: Contents) -> Iterator[str]:
    if contents.archive == SOLVER_ARCHIVE:
        for path in (path for path in contents.entries if _is_rubric(path)):
            yield f"{SOLVER_ARCHIVE} holds a rubric ({path}); never give it to a solver, download it again"


def _is_rubric(path: str) -> bool:
    """A file called rubric.json, or one beside a case's project whose name speaks of rubrics."""
    parts = path.lower().split("/")
    return parts[-1] == RUBRIC or (len(parts) == 3 and parts[0] == CASES and "rubric" in parts[-1])


def _name(path: str) -> str:
    return PurePosixPath(path).name
