"""`evidence/CASE/manifest.json`: every file of a case's evidence with its hash, and the blobs they share.

Above `minimal` each file lies in `blobs/AB/SHA256` too, as a hard link: what is the same (a start application's
pictures, a page seen again) takes its room once, and a file can be found by its hash alone.
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import Field

from bench.atomic import write_bytes, write_json
from bench.strict_json import read_json
from evaluator.evidence.levels import EvidenceLevel
from evaluator.records import Strict

MANIFEST = "manifest.json"
BLOBS = "blobs"
Kind = Literal[
    "picture", "pair", "frame", "snapshot", "witness", "facts", "har", "body", "trace", "conversation", "log"
]


APPENDED: tuple[Kind, ...] = ("conversation", "log")
"""Written line by line, and perhaps again into the same file: never a blob, which nothing may write into."""


class Kept(Strict):
    """One file. `path`: below `evidence/CASE/`; `criterion`: whose it is, null for the case's."""

    path: str
    kind: Kind
    bytes: int
    sha256: str
    criterion: int | None = None


class Manifest(Strict):
    """`manifest.json` (`cdb.evidence/1`)."""

    schema_: Literal["cdb.evidence/1"] = Field("cdb.evidence/1", alias="schema")
    case: str
    level: EvidenceLevel
    files: list[Kept]


def keep_evidence(results: Path, case: str, level: EvidenceLevel) -> str | None:
    """Write the manifest of a case's evidence as it lies there now, and its blobs. Returns the manifest's sha256, or
    None where the case has no evidence. Links and what is no file are left out: evidence has none."""
    folder = results / "evidence" / case
    if not folder.is_dir():
        return None
    files = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink()):
        name = path.relative_to(folder).as_posix()
        if name == MANIFEST:
            continue
        digest = sha256_of(path)
        if level != "minimal" and kind_of(name) not in APPENDED:
            _as_blob(path, results / BLOBS, digest)
        first = PurePosixPath(name).parts[0]
        files.append(
            Kept(
                path=name,
                kind=kind_of(name),
                bytes=path.stat().st_size,
                sha256=digest,
                criterion=int(first) if first.isdecimal() and "/" in name else None,
            )
        )
    manifest = Manifest(case=case, level=level, files=files)
    write_json(folder / MANIFEST, manifest.model_dump(mode="json", by_alias=True))
    return sha256_of(folder / MANIFEST)


def keep_pair(results: Path, folder: Path, start: str | None, submission: str | None, level: EvidenceLevel) -> None:
    """`pair.jpg`: what shows the criterion best on both applications, in one picture, the start on the left."""
    if level == "minimal" or start is None or submission is None:
        return
    from evaluator.browser_tools.compare import beside

    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / "pair.jpg", beside((results / start).read_bytes(), (results / submission).read_bytes()))


def check_evidence(results: Path, case: str) -> list[str]:
    """What does not fit the manifest: files that are gone, changed or were added. Blobs only save room.

    Raises DataError for a manifest that cannot be read."""
    folder = results / "evidence" / case
    manifest = Manifest.model_validate(read_json(folder / MANIFEST))
    problems, known = [], {MANIFEST}
    for one in manifest.files:
        known.add(one.path)
        path = folder / one.path
        if not path.is_file():
            problems.append(f"{one.path} is gone")
        elif sha256_of(path) != one.sha256:
            problems.append(f"{one.path} was changed")
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return problems + [f"{name} was added" for name in sorted(there - known)]


_KINDS: tuple[tuple[str, Kind], ...] = (
    (".witness.json", "witness"),
    (".counter.json", "witness"),
    (".har", "har"),
    (".zip", "trace"),
    (".snapshot.txt", "snapshot"),
    ("conversation.jsonl", "conversation"),
    (".log", "log"),
)


def kind_of(name: str) -> Kind:
    """What a file of the evidence is, by its name."""
    path = PurePosixPath(name)
    if path.parts[0].startswith("build"):
        return "log"
    if "har" in path.parts[:-1] and path.suffix != ".har":
        return "body"
    for ending, kind in _KINDS:
        if path.name.endswith(ending):
            return kind
    if path.suffix in (".jpg", ".png"):
        return "pair" if path.name.startswith("pair") else "frame" if "frame-" in path.name else "picture"
    return "conversation" if "judge" in path.parts or "refuter" in path.parts else "facts"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _blob(blobs: Path, digest: str) -> Path:
    return blobs / digest[:2] / digest


def _as_blob(path: Path, blobs: Path, digest: str) -> None:
    """Make `path` a link to the blob of its content, which it becomes where there is none. Several cases are kept at
    the same time: whoever links first is the blob. Where a file system has no hard links nothing is shared."""
    blob = _blob(blobs, digest)
    blob.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, blob)
        return
    except FileExistsError:
        if blob.samefile(path):
            return
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.EXDEV):
            raise
        return
    shared = path.with_name(f".{path.name}.blob")
    os.link(blob, shared)
    shared.replace(path)
