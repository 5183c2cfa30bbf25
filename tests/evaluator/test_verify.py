"""A release is checked whole: the sample passes, and every spoiled copy fails with the file and the remedy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_archives import EVALUATION, NFC, NFD, SOLVER
from spoiled_releases import (
    BOTH,
    CASE,
    CSV,
    JSONL,
    PLAIN,
    QUERIES,
    RUBRIC,
    SPOILED,
    TASKS,
    edit_bytes,
    edit_json,
    edit_member,
    edit_rows,
    reseal,
    spoiled_copy,
)

from bench.errors import DataError
from bench.release import extract, open_release
from evaluator.prepare import prepare
from evaluator.sample_release import make_sample_release
from evaluator.verify import describe_release, require_faultless, table_lines, verify_release

REMEDY = re.compile(r"download|run `git|remove|log in|never give")
BOM = b"\xef\xbb\xbf"


def texts_of(rubric: bytes) -> list[str]:
    return [item["criterion"] for item in json.loads(rubric)["rubrics"]]


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sample_release(tmp_path_factory.mktemp("sample") / "release")


@pytest.fixture
def copy(sample: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the sample release on which edits were made; its checksums are right."""

    def make(*edits: Callable[[Path], None]) -> Path:
        shutil.copytree(sample, tmp_path / "release")
        for edit in edits:
            edit(tmp_path / "release")
        reseal(tmp_path / "release")
        return tmp_path / "release"

    return make


def test_the_sample_release_passes_whole(sample: Path) -> None:
    found = verify_release(sample)
    assert found["faults"] == found["notes"] == []
    assert (found["tasks"], found["criteria"], found["files"]) == (5, 20, 13)
    require_faultless(sample, found)


@pytest.mark.parametrize("fault", SPOILED)
def test_a_spoiled_copy_fails_with_a_message_that_names_file_and_remedy(
    fault: str, sample: Path, tmp_path: Path
) -> None:
    spoiled = SPOILED[fault]
    folder = spoiled_copy(sample, tmp_path / "release", spoiled)
    found = verify_release(folder)
    told = [message for message in found["faults"] if spoiled.file in message and re.search(spoiled.says, message)]
    assert told, found["faults"]
    assert all(REMEDY.search(message) for message in found["faults"]), found["faults"]
    with pytest.raises(DataError, match=re.escape(spoiled.file)):
        require_faultless(folder, found)


@pytest.mark.parametrize("fault", ["LFS pointer", "truncated archive", "flipped byte", "annex link", "missing file"])
def test_c7_what_its_checksum_condemns_is_never_extracted(fault: str, sample: Path, tmp_path: Path) -> None:
    folder = spoiled_copy(sample, tmp_path / "release", SPOILED[fault])
    with pytest.raises(DataError, match=SPOILED[fault].says):
        extract(open_release(folder), tmp_path / "work")
    assert not (tmp_path / "work").exists()


def test_several_faults_are_reported_together_on_the_command_line(
    sample: Path, tmp_path: Path, run_cdb: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    folder = spoiled_copy(sample, tmp_path / "release", SPOILED["LFS pointer"])
    SPOILED["truncated index"].spoil(folder)
    SPOILED["missing file"].spoil(folder)
    ended = run_cdb(["dataset", "verify", folder, "--json"], deadline_s=60)
    assert ended.returncode == 1
    assert "3 faults" in ended.stderr
    assert all(name in ended.stderr for name in (SOLVER, TASKS, CSV))
    assert len(json.loads(ended.stdout)["faults"]) == 3
    assert run_cdb(["dataset", "verify", sample], deadline_s=60).returncode == 0


def test_a_manifest_that_its_checksum_condemns_is_compared_with_nothing(copy: Callable[..., Path]) -> None:
    folder = copy()
    edit_json("manifest.json", lambda m: {**m, "case_ids": [CASE], "counts": {"criteria": 1}})(folder)
    found = verify_release(folder)
    assert len(found["faults"]) == 1
    assert found["faults"][0].startswith("manifest.json does not match")
    assert found["notes"] == ["nothing was compared with manifest.json, bad as it is"]


def test_c1_a_byte_order_mark_in_any_file_is_no_part_of_its_text(copy: Callable[..., Path], tmp_path: Path) -> None:
    queries = f"cases/{CASE}/user_queries.json"
    folder = copy(
        *(edit_bytes(name, lambda b: BOM + b) for name in ("manifest.json", JSONL, CSV, "rubrics/case_list.txt")),
        edit_member((EVALUATION,), RUBRIC, lambda b: BOM + b),
        edit_member(BOTH, queries, lambda b: BOM + b),
    )
    sums = folder / "SHA256SUMS"
    sums.write_bytes(BOM + sums.read_bytes())
    assert verify_release(folder)["faults"] == []
    _, evaluation = extract(open_release(folder), tmp_path / "work")
    assert (evaluation / RUBRIC).read_bytes().startswith(BOM), "the file itself is kept as it is"
    shutil.copytree(evaluation / f"cases/{CASE}/project", tmp_path / "submissions" / CASE)
    cases = prepare(evaluation, tmp_path / "submissions", tmp_path / "out").cases
    assert sum(len(case.criteria) for case in cases) == 20
    assert not [c for case in cases for c in (case.request, *(k.criterion for k in case.criteria)) if "\ufeff" in c]


def test_c2_an_attachment_stored_in_another_normal_form_is_found_and_not_missing(copy: Callable[..., Path]) -> None:
    stored, named = (f"cases/{PLAIN}/project/_attachments/{name} 中文.mp3" for name in (NFD, NFC))
    folder = copy(
        edit_member(BOTH, stored, lambda _: b"sound"),
        edit_rows(
            TASKS, lambda rows: next(r for r in rows if r["case_id"] == PLAIN)["attachment_paths"].append(named)
        ),
    )
    found = verify_release(folder)
    assert found["faults"] == found["notes"] == []


def test_c2_twins_are_a_note_and_a_name_that_could_be_either_is_a_fault(copy: Callable[..., Path]) -> None:
    twins = [f"cases/{PLAIN}/project/_attachments/{name}" for name in ("\u1e69.mp3", "s\u0323\u0307.mp3")]
    third = f"cases/{PLAIN}/project/_attachments/s\u0307\u0323.mp3"

    def name_them(names: list[str]) -> Callable[[Path], None]:
        return edit_rows(
            TASKS, lambda rows: next(r for r in rows if r["case_id"] == PLAIN).update(attachment_paths=names)
        )

    folder = copy(*(edit_member(BOTH, twin, lambda _: b"sound") for twin in twins), name_them(twins))
    found = verify_release(folder)
    assert found["faults"] == []
    assert sum("collision" in note for note in found["notes"]) == 2
    name_them([third])(folder)
    reseal(folder)
    assert any("could be any of" in fault for fault in verify_release(folder)["faults"])


def test_texts_with_any_line_separator_survive_every_export(copy: Callable[..., Path]) -> None:
    """str.splitlines breaks lines at ten characters; JSON Lines at one."""
    odd = 'A\u2028B\u0085C\x0bD, \u201cE\u201d and "F"'
    as_json = json.dumps(odd, ensure_ascii=False).encode()

    def in_json(content: bytes) -> bytes:
        first = json.loads(content.decode().split("\n")[0])["criterion"]
        return content.replace(json.dumps(first, ensure_ascii=False).encode(), as_json)

    rubric = {"rubrics": [{"rubric_id": "x-1", "criterion": odd}]}
    folder = copy(edit_member((EVALUATION,), RUBRIC, lambda _: json.dumps(rubric).encode()))
    rows = edit_rows(
        "data/rubrics.parquet",
        lambda found: found.__setitem__(
            slice(None),
            [{**found[0], "rubric_id": "x-1", "criterion": odd}, *(r for r in found if r["case_id"] != CASE)],
        ),
    )
    rows(folder)
    edit_bytes(
        JSONL,
        lambda b: b"\n".join([in_json(b).split(b"\n")[0], *(r for r in b.split(b"\n") if CASE.encode() not in r)]),
    )(folder)
    reseal(folder)
    faults = verify_release(folder)["faults"]
    assert not [fault for fault in faults if JSONL in fault or "rubrics.parquet" in fault], faults


@pytest.mark.parametrize("shape", ["rows", "list of groups", "under a key"])
def test_grouped_exports_are_understood_in_several_shapes(copy: Callable[..., Path], shape: str) -> None:
    def reshape(content: dict[str, Any]) -> Any:
        rows = [{**r, "case_id": case} for case, group in content.items() for r in group["rubrics"]]
        return {"rows": rows, "list of groups": list(content.values()), "under a key": {"tasks": content, "n": 5}}[
            shape
        ]

    assert verify_release(copy(edit_json("rubrics/rubrics_by_task.json", reshape)))["faults"] == []


def test_an_export_of_an_unknown_shape_shows_what_was_found(copy: Callable[..., Path]) -> None:
    folder = copy(edit_bytes(JSONL, lambda _: b'{"task": "a", "rule": "b"}\n'))
    (fault,) = verify_release(folder)["faults"]
    assert JSONL in fault
    assert "['rule', 'task']" in fault


def test_what_nothing_reads_and_nothing_vouches_for_is_noted(sample: Path, copy: Callable[..., Path]) -> None:
    folder = copy()
    (folder / "my-notes.txt").write_text("mine")
    (folder / "work").mkdir()
    found = verify_release(folder)
    assert found["faults"] == []
    assert found["notes"] == ["my-notes.txt is not in SHA256SUMS and is not looked at"]


def test_info_prints_the_cards_table(sample: Path) -> None:
    found = describe_release(sample)
    assert found["by_attachment"] == {"audio": 1, "video": 1, "document": 1, "image": 1, "none": 1}
    lines = [line.split() for line in table_lines(found)]
    assert lines[0] == ["Primary", "attachment", "Tasks"]
    assert lines[-2:] == [["No", "extra", "attachment", "1"], ["Total", "5"]]


@pytest.mark.parametrize(("audio", "noted"), [(32, False), (31, True)])
def test_info_says_when_a_full_me_96_does_not_come_out_as_the_card_has_it(
    copy: Callable[..., Path], audio: int, noted: bool
) -> None:
    kinds = ["a.MP3"] * audio + ["v.mp4"] * 24 + ["d.pdf"] * 16 + ["i.png"] * 4
    kinds += [""] * (96 - len(kinds))

    def fill(rows: list[dict[str, Any]]) -> None:
        first = dict(rows[0])
        rows[:] = [{**first, "case_id": f"c{n}", "attachment_paths": [k] if k else []} for n, k in enumerate(kinds)]

    ids = [f"c{n}" for n in range(96)]
    manifest = edit_json("manifest.json", lambda m: {**m, "case_ids": ids, "counts": {"tasks": 96, "criteria": 521}})
    found = describe_release(copy(edit_rows(TASKS, fill), manifest))
    assert found["by_attachment"]["audio"] == audio
    assert bool([note for note in found["notes"] if "ME-96" in note and "32" in note]) is noted


GOOD_SHAPES: dict[str, Callable[[Path], None]] = {
    "rubric as texts": edit_member((EVALUATION,), RUBRIC, lambda b: json.dumps(texts_of(b)).encode()),
    "rubric with other ids": edit_member(
        (EVALUATION,),
        RUBRIC,
        lambda b: json.dumps([{"description": t, "id": f"R{n}"} for n, t in enumerate(texts_of(b))]).encode(),
    ),
    "several turns": edit_member(BOTH, QUERIES, lambda b: json.dumps([*json.loads(b), {"track": "RE"}]).encode()),
    "one object": edit_member(BOTH, QUERIES, lambda b: json.dumps(json.loads(b)[0]).encode()),
    "CSV of another system": edit_bytes(CSV, lambda b: BOM + b.replace(b"\n", b"\r\n")),
    "paths with a dot": edit_rows(TASKS, lambda rows: rows[0].update(query_path="./" + rows[0]["query_path"])),
}


@pytest.mark.parametrize("shape", GOOD_SHAPES)
def test_other_shapes_of_the_same_content_pass(copy: Callable[..., Path], shape: str) -> None:
    assert verify_release(copy(GOOD_SHAPES[shape]))["faults"] == []


@pytest.mark.parametrize("paths", [None, [None], ["x", None]])
def test_an_index_with_missing_cells_is_told_and_never_a_crash(copy: Callable[..., Path], paths: Any) -> None:
    folder = copy(edit_rows(TASKS, lambda rows: rows[0].update(attachment_paths=paths, annotation_path=None)))
    faults = verify_release(folder)["faults"]
    assert faults
    assert all(TASKS in fault and "download" in fault for fault in faults)
    if paths:
        with pytest.raises(DataError, match=TASKS):
            describe_release(folder)
