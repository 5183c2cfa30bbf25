"""Tasks are read verbatim; wrong folders are recognised."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import DataError, UsageError
from bench.task import find_asset, open_dataset, read_task

TRICKY = '"; touch /tmp/pwn; $(id) `x` {{k}} {0} %s 中文 \n\ttab'


def test_c13_the_request_is_byte_for_byte_what_the_file_says(make_dataset: Callable[..., Path]) -> None:
    root = make_dataset({"one": {"index.html": "x"}}, request=TRICKY)
    assert open_dataset(root).tasks[0].request == TRICKY


def test_c1_a_byte_order_mark_is_no_part_of_the_request(make_dataset: Callable[..., Path]) -> None:
    root = make_dataset({"one": {"index.html": "x"}})
    path = root / "cases/one/user_queries.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert open_dataset(root).tasks[0].request == "Please change it."


def test_every_entry_of_the_queries_is_kept_in_order(make_dataset: Callable[..., Path]) -> None:
    root = make_dataset({"one": {"index.html": "x"}})
    entries = [{"text": "first", "turn": 1}, {"text": "second"}]
    (root / "cases/one/user_queries.json").write_text(json.dumps(entries))
    assert open_dataset(root).tasks[0].queries == ("first", "second")


@pytest.mark.parametrize("content", ["{}", "[]", '[{"say": "x"}]', "[1]", "nonsense"])
def test_an_unknown_shape_is_refused_naming_the_file(make_dataset: Callable[..., Path], content: str) -> None:
    root = make_dataset({"one": {"index.html": "x"}})
    (root / "cases/one/user_queries.json").write_text(content)
    with pytest.raises(DataError, match=r"user_queries\.json"):
        open_dataset(root)


def test_c2_an_attachment_named_in_another_normal_form_is_found(make_dataset: Callable[..., Path]) -> None:
    stored = unicodedata.normalize("NFD", "_attachments/é 中文.mp3")
    root = make_dataset({"one": {"index.html": "x", stored: "sound"}})
    task = read_task(root / "cases/one")
    found = find_asset(task, unicodedata.normalize("NFC", stored))
    assert found is not None
    assert found.name == stored.rpartition("/")[2]


def test_c8_wrong_folders_are_refused_with_the_likely_one(make_dataset: Callable[..., Path], tmp_path: Path) -> None:
    root = make_dataset({"one": {"index.html": "x"}}, root="solver-inputs")
    with pytest.raises(UsageError, match=f"Did you mean {root}"):
        open_dataset(root / "cases")
    with pytest.raises(UsageError, match=f"Did you mean {root}"):
        open_dataset(root.parent)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no cases/ folder"):
        open_dataset(tmp_path / "empty")


def test_an_unknown_case_is_refused_and_a_subset_says_so(make_dataset: Callable[..., Path]) -> None:
    root = make_dataset({"one": {"a": "x"}, "two": {"a": "y"}})
    with pytest.raises(UsageError, match="'three'"):
        open_dataset(root, ["three"])
    assert open_dataset(root, ["two"]).scope["label"].endswith("subset 1/2")
    assert open_dataset(root).scope["whole"]


def test_the_digest_follows_request_and_application(make_dataset: Callable[..., Path]) -> None:
    one = open_dataset(make_dataset({"c": {"a": "x"}}, root="one"))
    same = open_dataset(make_dataset({"c": {"a": "x"}}, root="same"))
    other = open_dataset(make_dataset({"c": {"a": "y"}}, root="other"))
    assert one.digest == same.digest != other.digest
