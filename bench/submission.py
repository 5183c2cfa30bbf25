"""A sealed submission: the final application byte for byte in `ID/`, and `ID.manifest.json` beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench import __version__
from bench.atomic import sync_folder, write_json
from bench.errors import DataError
from bench.tree import Entry, differences, digest, list_tree, shown
from bench.tree_links import refused_links

SCHEMA = "cdb.submission/1"
MADE_ELSEWHERE = "made elsewhere"


class LeftOut(BaseModel):
    """Something of the workspace that is not in the submission as it was, and why; of a part, what it came to."""

    model_config = ConfigDict(extra="forbid")
    path: str
    reason: str
    files: int | None = None
    bytes: int | None = None


class SubmissionManifest(BaseModel):
    """What is known of a submission. Explained field by field in docs/records.md."""

    model_config = ConfigDict(extra="forbid")
    schema_: Literal["cdb.submission/1"] = Field("cdb.submission/1", alias="schema")
    case: str
    agent: str
    model: str | None = None
    attempt: int = 1
    outcome: str
    """A row of bench.outcomes.TRIAL, or "made elsewhere" for a tree that no harness of ours made."""
    reason: str = ""
    flags: list[str] = Field(default_factory=list)
    digest: str
    start_digest: str | None = None
    changed_files: int | None = None
    changes: list[str] = Field(default_factory=list)
    files: list[dict[str, Any]]
    left_out: list[LeftOut] = Field(default_factory=list)
    refused: list[LeftOut] = Field(default_factory=list)
    altered: list[LeftOut] = Field(default_factory=list)
    unlisted: dict[str, int] = Field(default_factory=dict)
    patch: str | None = None
    started_at: str | None = None
    duration_s: float | None = None
    usage: dict[str, Any] = Field(default_factory=dict)
    image: str | None = None
    versions: dict[str, str] = Field(default_factory=lambda: {"cdb": __version__})


def manifest_path(submissions: Path, case: str) -> Path:
    return submissions / f"{case}.manifest.json"


def seal(staged: Path, submissions: Path, manifest: SubmissionManifest) -> Path:
    """Move the whole tree `staged` to `submissions/CASE` by rename, then write its manifest; gives the folder.

    `staged` must lie on the same file system. An unsealed leftover of the same case (a run was killed between
    rename and manifest) is replaced; a sealed one is never touched: DataError.
    """
    target = submissions / manifest.case
    path = manifest_path(submissions, manifest.case)
    if path.exists():
        raise DataError(f"{target} is sealed already; choose another --submissions folder for a new attempt")
    submissions.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    staged.rename(target)
    sync_folder(submissions)
    write_json(path, manifest.model_dump(mode="json", by_alias=True))
    return target


def describe_tree(folder: Path, start: list[Entry] | None) -> dict[str, Any]:
    """The manifest's fields that follow from the tree: files, digest, and what changed against the start."""
    return describe_entries(list_tree(folder), start)


def describe_entries(entries: Sequence[Entry], start: list[Entry] | None) -> dict[str, Any]:
    """As `describe_tree`, from the tree's canonical list."""
    found: dict[str, Any] = {"files": list(entries), "digest": digest(entries)}
    if start is not None:
        changes = differences(start, entries)
        found |= {"start_digest": digest(start), "changed_files": len(changes), "changes": changes}
    return found


def seal_in_place(folder: Path, start: list[Entry] | None, *, who: dict[str, Any]) -> SubmissionManifest:
    """Seal a tree that others put under `submissions/`: write the manifest beside it, tree untouched.

    Raises DataError naming what no submission may hold: a FIFO, socket or device, a link out of the tree.
    """
    described = describe_tree(folder, start)
    _refuse_links(folder, described["files"])
    manifest = SubmissionManifest(
        case=folder.name,
        agent=str(who.get("agent") or "unknown"),
        model=who.get("model"),
        outcome=MADE_ELSEWHERE,
        **described,
    )
    write_json(manifest_path(folder.parent, folder.name), manifest.model_dump(mode="json", by_alias=True))
    return manifest


def read_manifest(submissions: Path, case: str) -> SubmissionManifest | None:
    """The manifest of one case, or None when there is none. Raises DataError when it cannot be understood."""
    path = manifest_path(submissions, case)
    if not path.exists():
        return None
    try:
        manifest = SubmissionManifest.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, ValidationError) as error:
        raise DataError(f"{path} is no {SCHEMA} manifest: {error}") from error
    if manifest.case != case:
        raise DataError(f"{path} is the seal of {manifest.case!r}, not of {case!r}; put the right manifest back")
    return manifest


def check_seal(submissions: Path, manifest: SubmissionManifest) -> None:
    """Compare a sealed tree with its manifest. Raises DataError naming the files that differ."""
    folder = submissions / manifest.case
    if digest(manifest.files) != manifest.digest:
        raise DataError(f"{manifest_path(submissions, manifest.case)}: its file list does not match its own digest")
    if not folder.is_dir():
        raise DataError(f"{folder} is gone, though its manifest is there; put the sealed tree back")
    found = list_tree(folder)
    if digest(found) == manifest.digest:
        _refuse_links(folder, found)
        return
    lines = differences(manifest.files, found)
    more = f" and {len(lines) - 5} more" if len(lines) > 5 else ""
    raise DataError(
        f"{folder} is not what was sealed ({'; '.join(lines[:5])}{more}); put the sealed files back, "
        f"or remove {manifest.case}.manifest.json to have it sealed anew as a submission of unknown origin"
    )


def _refuse_links(folder: Path, entries: Sequence[Entry]) -> None:
    for path, reason in refused_links(entries).items():
        name = shown({"path": path.decode("utf-8", "backslashreplace")})
        raise DataError(f"{folder}: {name} may not stay ({reason}); remove the link and seal it again")


def who_made(submissions: Path) -> dict[str, Any]:
    """`entry.json` of a folder made elsewhere: agent, model, harness, notes; empty when there is none."""
    path = submissions / "entry.json"
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} must be an object with agent, model, harness and notes")
    if wrong := [
        key for key in ("agent", "model", "harness", "notes") if not isinstance(content.get(key, ""), str | None)
    ]:
        raise DataError(f"{path}: {wrong[0]} must be a text")
    unknown = set(content) - {"agent", "model", "harness", "notes", "attempt"}
    if unknown:
        raise DataError(f"{path}: unknown keys {sorted(unknown)}; known: agent, model, harness, notes, attempt")
    attempt = content.get("attempt", 1)
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 1:
        raise DataError(f"{path}: attempt must be a whole number from 1, not {attempt!r}")
    return content
