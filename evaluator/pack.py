"""Packs a release from case sources: every file of the dataset card, the same bytes each time.

The card (Co-Design Bench ME-96) is the specification of names, layout and fields. What a case keeps beside
its request, project and rubric (recorded edits, plans, witnesses, truth) never enters an archive;
`_refuse_secret` checks it by content, not by name.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.errors import DataError, UsageError
from evaluator.case_source import CaseSource, read_cases
from evaluator.fixed_archive import Member, sha256_of, tree_members, write_tar_gz, write_zip
from evaluator.own_cases import case_folders, read_about, read_own_case
from evaluator.release_card import ReleaseAbout, citation, readme
from evaluator.release_index import (
    TRACK,
    json_bytes,
    rubric_exports,
    rubric_rows,
    write_rubric_index,
    write_task_index,
)

SOLVER_ARCHIVE = "solve_norubric.tar.gz"
EVALUATION_ARCHIVE = "eval_withrubric.tar.gz"


def pack_release(sources: Path, rubrics: Path, out: Path, about: ReleaseAbout) -> Path:
    """Write the release made of every case in `sources` and `rubrics` to the folder `out`; returns `out`.

    `out` appears whole or not at all. It may be missing, empty, or an earlier release, which is replaced.
    Raises `UsageError` for an `out` that holds something else and `DataError` for a malformed case.
    """
    _check_replaceable(out)
    return write_release(read_cases(sources, rubrics), out, about)


def pack_own_cases(folder: Path, out: Path) -> tuple[Path, ReleaseAbout]:
    """As `pack_release` for people's own cases (`evaluator.own_cases`); also what the release says of itself."""
    _check_replaceable(out)
    if out.resolve().is_relative_to((folder / "cases").resolve()):
        raise UsageError(f"{out} lies among the cases that are packed; choose another --out")
    cases = [read_own_case(case) for case in case_folders(folder)]
    about = read_about(folder, len(cases))
    return write_release(cases, out, about), about


def write_release(cases: Sequence[CaseSource], out: Path, about: ReleaseAbout) -> Path:
    """Write the release of `cases` to `out`, whole or not at all; an earlier release there is replaced."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as room:
        made = Path(room) / "release"
        _write_release(made, cases, about)
        if out.exists():
            out.rename(Path(room) / "before")
        made.rename(out)
    return out


def archive_members(cases: Sequence[CaseSource], *, with_rubric: bool) -> Iterator[Member]:
    """The members of the solver's archive, or of the evaluation archive when `with_rubric`.

    Raises `DataError` when a held-out file or, for the solver, a criterion's text lies in a project.
    """
    yield Member("cases", "folder", b"")
    for case in cases:
        held_out, base = _hold_out(case), f"cases/{case.case_id}"
        yield Member(base, "folder", b"")
        for member in tree_members(case.project, f"{base}/project"):
            _refuse_secret(member, case, held_out)
            yield member
        if with_rubric:
            yield Member(f"{base}/rubric.json", "file", case.rubric.read_bytes())
        yield Member(f"{base}/user_queries.json", "file", case.queries.read_bytes())


def _write_release(out: Path, cases: Sequence[CaseSource], about: ReleaseAbout) -> None:
    (out / "data").mkdir(parents=True)
    (out / "rubrics").mkdir()
    write_tar_gz(out / SOLVER_ARCHIVE, archive_members(cases, with_rubric=False))
    write_tar_gz(out / EVALUATION_ARCHIVE, archive_members(cases, with_rubric=True))
    rows = rubric_rows(cases)
    if len({row["rubric_id"] for row in rows}) != len(rows):
        raise DataError("two cases share a rubric_id; ids must differ over the whole release")
    write_task_index(out / "data" / "tasks.parquet", cases)
    write_rubric_index(out / "data" / "rubrics.parquet", rows)
    for name, content in rubric_exports(cases).items():
        (out / "rubrics" / name).write_bytes(content)
    package = f"{about.package}-Rubrics-{len(rows)}.zip"
    write_zip(out / package, {f"{case.case_id}/rubric.json": case.rubric.read_bytes() for case in cases})
    (out / "README.md").write_bytes(readme(about, cases).encode())
    (out / "CITATION.cff").write_bytes(citation(about).encode())
    archives = {name: _seal(out / name) for name in (SOLVER_ARCHIVE, EVALUATION_ARCHIVE, package)}
    manifest = {
        "name": about.name,
        "version": about.version,
        "scope": about.scope,
        "benchmark_track": TRACK,
        "counts": {"tasks": len(cases), "criteria": len(rows)},
        "case_ids": [case.case_id for case in cases],
        "archives": archives,
    }
    (out / "manifest.json").write_bytes(json_bytes(manifest))
    (out / "SHA256SUMS").write_bytes(_checksums(out).encode())


def _seal(path: Path) -> dict[str, object]:
    return {"sha256": sha256_of(path), "size_bytes": path.stat().st_size}


def _checksums(out: Path) -> str:
    """Lines for `sha256sum -c`, every file but the list itself."""
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    return "".join(f"{sha256_of(out / name)}  {name}\n" for name in names)


def _hold_out(case: CaseSource) -> dict[str, Path]:
    """SHA-256 → path of every file beside the packed ones, on either side, and of the rubric itself."""
    packed = {case.queries, case.queries.parent / "case.yaml"}
    beside = [case.rubric.parent.rglob("*"), case.queries.parent.rglob("*")]
    files = (path for side in beside for path in side if path.is_file() and path not in packed)
    return {sha256_of(path): path for path in files if not path.is_relative_to(case.project)}


def _refuse_secret(member: Member, case: CaseSource, held_out: dict[str, Path]) -> None:
    if member.kind != "file":
        return
    secret = held_out.get(hashlib.sha256(member.content).hexdigest())
    if secret and member.content:
        raise DataError(f"case {case.case_id}: {member.path} is a copy of {secret}; remove it from project/")
    for number, criterion in enumerate(case.criteria, 1):
        if criterion.text.encode() in member.content:
            raise DataError(
                f"case {case.case_id}: {member.path} holds the text of criterion {number}; "
                "a solver would read it, so take it out"
            )


def _check_replaceable(out: Path) -> None:
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is not a folder; name one that is new, empty or an earlier release")
    if out.is_dir() and any(out.iterdir()) and not (out / "SHA256SUMS").is_file():
        raise UsageError(f"{out} holds files that are no release; name a folder that is new or empty")
