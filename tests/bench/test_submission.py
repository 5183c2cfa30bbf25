"""A sealed submission is checked by every byte, and faults name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import DataError
from bench.submission import (
    SubmissionManifest,
    check_seal,
    describe_tree,
    read_manifest,
    seal,
    seal_in_place,
    who_made,
)
from bench.tree import list_tree


def staged(tmp_path: Path) -> Path:
    folder = tmp_path / "staged"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.js").write_text("let a = 1;\n")
    (folder / "logo.png").write_bytes(bytes(range(256)))
    return folder


def sealed(tmp_path: Path) -> tuple[Path, SubmissionManifest]:
    tree = staged(tmp_path)
    manifest = SubmissionManifest(case="one", agent="a", outcome="ok", **describe_tree(tree, None))
    seal(tree, tmp_path / "submissions", manifest)
    return tmp_path / "submissions", manifest


def test_a_sealed_tree_passes_and_its_manifest_reads_back(tmp_path: Path) -> None:
    submissions, manifest = sealed(tmp_path)
    found = read_manifest(submissions, "one")
    assert found == manifest
    check_seal(submissions, manifest)


@pytest.mark.parametrize("name", ["src/app.js", "logo.png"])
def test_one_changed_byte_is_named(tmp_path: Path, name: str) -> None:
    submissions, manifest = sealed(tmp_path)
    path = submissions / "one" / name
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"changed: {name}"):
        check_seal(submissions, manifest)


def test_added_and_removed_files_and_a_doctored_list_are_noticed(tmp_path: Path) -> None:
    submissions, manifest = sealed(tmp_path)
    (submissions / "one" / "new.js").write_text("x")
    with pytest.raises(DataError, match=r"added: new\.js"):
        check_seal(submissions, manifest)
    doctored = manifest.model_copy(update={"files": list_tree(submissions / "one")})
    with pytest.raises(DataError, match="does not match its own digest"):
        check_seal(submissions, doctored)


def test_a_sealed_tree_is_never_replaced_but_an_unsealed_leftover_is(tmp_path: Path) -> None:
    submissions, manifest = sealed(tmp_path)
    with pytest.raises(DataError, match="sealed already"):
        seal(staged(tmp_path), submissions, manifest)
    (submissions / "one.manifest.json").unlink()
    (submissions / "one" / "half.js").write_text("x")
    seal(tmp_path / "staged", submissions, manifest)
    check_seal(submissions, manifest)


def test_changes_against_the_start_are_listed(tmp_path: Path) -> None:
    start = staged(tmp_path)
    entries = list_tree(start)
    assert describe_tree(start, entries)["changed_files"] == 0
    (start / "src" / "app.js").write_text("let a = 2;\n")
    assert describe_tree(start, entries)["changes"] == ["changed: src/app.js"]


def test_a_tree_made_elsewhere_is_sealed_as_of_unknown_origin(tmp_path: Path) -> None:
    folder = staged(tmp_path).rename(tmp_path / "one")
    manifest = seal_in_place(folder, None, who={})
    assert (manifest.agent, manifest.outcome) == ("unknown", "made elsewhere")
    check_seal(tmp_path, manifest)


def test_entry_json_may_say_who_made_it_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "entry.json").write_text('{"agent": "a", "model": "m", "harness": "h", "notes": ""}')
    assert who_made(tmp_path)["agent"] == "a"
    (tmp_path / "entry.json").write_text('{"agnet": "a"}')
    with pytest.raises(DataError, match="agnet"):
        who_made(tmp_path)


def test_the_seal_of_another_case_is_no_seal(tmp_path: Path) -> None:
    submissions, _ = sealed(tmp_path)
    (submissions / "two.manifest.json").write_bytes((submissions / "one.manifest.json").read_bytes())
    with pytest.raises(DataError, match="seal of 'one', not of 'two'"):
        read_manifest(submissions, "two")
