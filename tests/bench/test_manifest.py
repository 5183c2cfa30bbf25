"""The manifest's plausible shapes are read alike; what contradicts itself or cannot be a folder is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import DataError
from bench.manifest import read_manifest

IDS = ["b", "a"]


def manifest(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "manifest.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    "content",
    [
        {"case_ids": IDS, "counts": {"tasks": 2, "criteria": 7}},
        {"cases": IDS, "criteria_count": 7},
        {"tasks": [{"case_id": i} for i in IDS], "scope": {"task_count": 2}, "criteria": 7},
        {"scope": {"case_ids": IDS}, "counts": {"rubrics": 7}},
        {"case_ids": IDS, "cases": [{"id": i, "title": "x"} for i in reversed(IDS)], "counts": {"criteria": 7}},
        {"case_ids": IDS, "criteria": 7, "paper": {"tasks": 273, "criteria": 2331}},
    ],
)
def test_every_plausible_shape_gives_ids_in_order_and_the_count(tmp_path: Path, content: Any) -> None:
    found = read_manifest(manifest(tmp_path, content))
    assert (found.case_ids, found.criteria) == (("b", "a"), 7)


@pytest.mark.parametrize(
    "archives",
    [
        {"archives": {"x.tar.gz": {"sha256": "AB", "size_bytes": 1}}},
        {"archives": [{"name": "x.tar.gz", "sha256": "ab"}]},
        {"checksums": {"./x.tar.gz": "sha256:ab"}},
    ],
)
def test_its_checksums_are_found(tmp_path: Path, archives: Any) -> None:
    assert read_manifest(manifest(tmp_path, {"case_ids": IDS, **archives})).sha256 == {"x.tar.gz": "ab"}


def test_no_count_is_unknown_and_never_a_guess(tmp_path: Path) -> None:
    assert read_manifest(manifest(tmp_path, {"case_ids": IDS, "criteria": True})).criteria is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"ids": IDS}, r"no case ids.*\['ids'\]"),
        ({"case_ids": []}, "no case ids"),
        ({"case_ids": ["a", "a"]}, "twice"),
        ({"case_ids": ["../x"]}, "cannot be a folder"),
        ({"case_ids": ["."]}, "cannot be a folder"),
        ({"case_ids": ["a\nb"]}, "cannot be a folder"),
        ({"case_ids": ["a" * 201]}, "cannot be a folder"),
        ({"case_ids": [3]}, "cannot be a folder"),
        ({"case_ids": [{"title": "x"}]}, "cannot be a folder"),
        ({"case_ids": IDS, "cases": ["a", "c"]}, "two lists"),
        ({"case_ids": IDS, "counts": {"tasks": 3}}, "declares 3 tasks and names 2"),
        ({"case_ids": IDS, "criteria": 7, "counts": {"criteria": 8}}, "contradicts itself"),
        ([1], "no manifest"),
        ('{"case_ids": ["a"], "case_ids": ["b"]}', "given twice"),
        ("{", "strict JSON"),
    ],
)
def test_anything_else_is_refused_naming_the_file(tmp_path: Path, content: Any, says: str) -> None:
    with pytest.raises(DataError, match=rf"manifest\.json.*{says}"):
        read_manifest(manifest(tmp_path, content))
