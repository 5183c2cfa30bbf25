"""Copies of the sample release with one fault each, most of them under checksums that are right again."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from hostile_archives import EVALUATION, SOLVER, write_sums

CASE, PLAIN = "clinic-booking", "plant-shop"
"""A case of the sample with an attachment, and one without."""
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 123456\n"


class Spoiled(NamedTuple):
    """How a copy is spoiled, the file that the message must name, and more that it must say (a pattern)."""

    spoil: Callable[[Path], None]
    file: str
    says: str
    honest: bool = False
    """Whether SHA256SUMS stays what it was, so that the checksum tells."""


def edit_bytes(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes())) and None  # type: ignore[func-returns-value]


def edit_json(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    return edit_bytes(name, lambda content: json.dumps(change(json.loads(content))).encode())


def edit_rows(name: str, change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Path], None]:
    """`change` edits the list of rows in place."""

    def spoil(folder: Path) -> None:
        table = pq.read_table(folder / name)
        rows = table.to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), folder / name)

    return spoil


def edit_member(
    archives: tuple[str, ...], member: str, change: Callable[[bytes], bytes | None]
) -> Callable[[Path], None]:
    """Change a file in archives; None takes it out. A member that is not there is added with what b"" becomes."""

    def spoil(folder: Path) -> None:
        for archive in archives:
            with tarfile.open(folder / archive) as tar:
                found = [(info, tar.extractfile(info).read() if info.isreg() else b"") for info in tar]  # type: ignore[union-attr]
            if not any(info.name == member for info, _ in found):
                found.append((tarfile.TarInfo(member), b""))
            out = io.BytesIO()
            with (
                gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed,
                tarfile.open(fileobj=packed, mode="w") as tar,
            ):
                for info, content in found:
                    changed = change(content) if info.name == member else content
                    if changed is not None:
                        info.size = len(changed)
                        tar.addfile(info, io.BytesIO(changed))
            (folder / archive).write_bytes(out.getvalue())

    return spoil


def edit_package(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (path,) = folder.glob("*.zip")
        with zipfile.ZipFile(path) as package:
            files = {name: package.read(name) for name in package.namelist()}
        with zipfile.ZipFile(path, "w") as package:
            for name, content in files.items():
                package.writestr(name, change(content) if name.startswith(CASE) else content)

    return spoil


def swap(rows: list[dict[str, Any]]) -> None:
    """The texts of the first two criteria of a case change places."""
    rows[0]["criterion"], rows[1]["criterion"] = rows[1]["criterion"], rows[0]["criterion"]


def first_case(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["case_id"] == CASE)


def annex(folder: Path) -> None:
    (folder / SOLVER).unlink()
    (folder / SOLVER).symlink_to(".git/annex/objects/x1/y2/SHA256E-s9--0.tar.gz")


BOTH = (SOLVER, EVALUATION)
QUERIES, RUBRIC = f"cases/{CASE}/user_queries.json", f"cases/{CASE}/rubric.json"
TASKS, RUBRICS = "data/tasks.parquet", "data/rubrics.parquet"
JSONL, CSV, GROUPED = "rubrics/rubrics_20.jsonl", "rubrics/rubrics_20.csv", "rubrics/rubrics_by_task.json"

SPOILED: dict[str, Spoiled] = {
    "LFS pointer": Spoiled(edit_bytes(SOLVER, lambda _: LFS), SOLVER, "Git-LFS pointer.*git lfs pull", True),
    "LFS pointer that is summed": Spoiled(edit_bytes(TASKS, lambda _: LFS), TASKS, "Git-LFS pointer.*git lfs pull"),
    "annex pointer": Spoiled(
        edit_bytes(EVALUATION, lambda _: b"/annex/objects/SHA256E-s9--0.tar.gz\n"), EVALUATION, "git annex get", True
    ),
    "annex link": Spoiled(annex, SOLVER, "git annex get", True),
    "Xet pointer": Spoiled(
        edit_bytes(SOLVER, lambda _: b"# xet version 0\nfilesize = 9\nhash = '0'\n"), SOLVER, "git xet pull", True
    ),
    "log-in page": Spoiled(edit_bytes(SOLVER, lambda _: b"<!DOCTYPE html><html>"), SOLVER, "web page.*log in", True),
    "empty file": Spoiled(edit_bytes(RUBRICS, lambda _: b""), RUBRICS, "empty", True),
    "truncated archive": Spoiled(edit_bytes(SOLVER, lambda b: b[: len(b) // 2]), SOLVER, "truncated", True),
    "truncated index": Spoiled(edit_bytes(TASKS, lambda b: b[:-100]), TASKS, "truncated", True),
    "flipped byte": Spoiled(
        edit_bytes(EVALUATION, lambda b: b[:5000] + bytes([b[5000] ^ 1]) + b[5001:]), EVALUATION, "sha256", True
    ),
    "missing file": Spoiled(lambda folder: (folder / CSV).unlink(), CSV, "missing", True),
    "file nobody vouches for": Spoiled(
        lambda folder: (folder / "rubrics/more.csv").write_text("x") and None, "rubrics/more.csv", "does not list", True  # type: ignore[func-returns-value]
    ),
    "request": Spoiled(
        edit_rows(TASKS, lambda rows: first_case(rows).update(request=first_case(rows)["request"] + " ")),
        QUERIES, "not the request",
    ),
    "request in the archives": Spoiled(
        edit_member(BOTH, QUERIES, lambda b: b.replace(b'"text": "', b'"text": "X', 1)), QUERIES, "not the request"
    ),
    "attachment not in the archive": Spoiled(
        edit_rows(TASKS, lambda rows: first_case(rows)["attachment_paths"].append(f"cases/{CASE}/project/_attachments/x.mp3")),
        TASKS, "x.mp3.*archives lack",
    ),
    "attachment not in the index": Spoiled(
        edit_rows(TASKS, lambda rows: first_case(rows).update(attachment_paths=[])), TASKS, "does not list.*voice-note"
    ),
    "attachment of another case": Spoiled(
        edit_rows(TASKS, lambda rows: first_case(rows).update(annotation_path=f"cases/{PLAIN}/project/x.png")),
        TASKS, "annotation_path.*outside",
    ),
    "case twice in the index": Spoiled(edit_rows(TASKS, lambda rows: rows.append(rows[0])), TASKS, "twice"),
    "case missing in the index": Spoiled(edit_rows(TASKS, lambda rows: rows.pop()), TASKS, "lacks 1 of"),
    "criterion text": Spoiled(
        edit_rows(RUBRICS, lambda rows: first_case(rows).update(criterion="Something else.")), RUBRICS, "criterion 1 of"
    ),
    "criteria in another order": Spoiled(edit_rows(RUBRICS, swap), RUBRICS, "criterion 1 of"),
    "numbers in another order": Spoiled(
        edit_rows(RUBRICS, lambda rows: first_case(rows).update(criterion_index=9)), RUBRICS, "not in order from 1"
    ),
    "criterion missing in the index": Spoiled(edit_rows(RUBRICS, lambda rows: rows.pop(0)), RUBRICS, "holds 3 criteria|not in order|holds"),
    "record id": Spoiled(edit_rows(RUBRICS, lambda rows: first_case(rows).update(rubric_id="other")), RUBRICS, "'other'"),
    "rubric changed in the archive": Spoiled(
        edit_member((EVALUATION,), RUBRIC, lambda b: b.replace(b'"criterion": "', b'"criterion": "X', 1)), CASE, "rubric.json"
    ),
    "rubric with a key twice": Spoiled(
        edit_member((EVALUATION,), RUBRIC, lambda b: b.replace(b"{", b'{"rubrics": [],', 1)), RUBRIC, "given twice"
    ),
    "rubric missing": Spoiled(edit_member((EVALUATION,), RUBRIC, lambda _: None), RUBRIC, "lacks"),
    "rubric for solvers": Spoiled(edit_member((SOLVER,), RUBRIC, lambda _: b"[]"), RUBRIC, "never give it to a solver"),
    "other application": Spoiled(
        edit_member((EVALUATION,), f"cases/{CASE}/project/index.html", lambda b: b + b" "),
        f"cases/{CASE}/project/index.html", "not the same in",
    ),
    "case more in the archives": Spoiled(
        edit_member(BOTH, "cases/more/project/index.html", lambda _: b"x"), SOLVER, "'more'"
    ),
    "member that climbs": Spoiled(edit_member((SOLVER,), "cases/../../x", lambda _: b"x"), SOLVER, r"refused.*\.\./x"),
    "JSONL export": Spoiled(edit_bytes(JSONL, lambda b: b.replace(b'"criterion": "', b'"criterion": "X', 1)), JSONL, CASE),
    "CSV export": Spoiled(edit_bytes(CSV, lambda b: b.rstrip().rpartition(b"\n")[0]), CSV, "task-board"),
    "grouped export": Spoiled(edit_json(GROUPED, lambda c: {**c, CASE: {**c[CASE], "rubrics": c[CASE]["rubrics"][:-1]}}), GROUPED, CASE),
    "case list": Spoiled(edit_bytes("rubrics/case_list.txt", lambda b: b + b"more\n"), "rubrics/case_list.txt", "'more'"),
    "rubric package": Spoiled(
        edit_package(lambda b: b.replace(b'"criterion": "', b'"criterion": "X', 1)), "Rubrics-20.zip", CASE
    ),
    "count in the manifest": Spoiled(
        edit_json("manifest.json", lambda m: {**m, "counts": {"tasks": 5, "criteria": 21}}), "manifest.json", "declares 21 criteria"
    ),
    "checksum in the manifest": Spoiled(
        edit_json("manifest.json", lambda m: {**m, "archives": {**m["archives"], SOLVER: {"sha256": "0" * 64}}}),
        SOLVER, "another one in manifest.json",
    ),
}  # fmt: skip


def reseal(folder: Path) -> None:
    """Make manifest and SHA256SUMS say what the files are now."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes().decode("utf-8-sig"))
    for name, about in manifest["archives"].items():
        about["sha256"] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    bom = path.read_bytes()[:3] if path.read_bytes()[:1] == b"\xef" else b""
    path.write_bytes(bom + json.dumps(manifest).encode())
    write_sums(folder)


def spoiled_copy(release: Path, folder: Path, fault: Spoiled) -> Path:
    """A copy of `release` at `folder` with the fault."""
    import shutil

    shutil.copytree(release, folder)
    fault.spoil(folder)
    if not fault.honest:
        (write_sums if fault.file == "manifest.json" or "manifest.json" in fault.says else reseal)(folder)
    return folder
