"""Rubrics are read verbatim in several plausible shapes, and anything else is an error that shows what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import DataError, UsageError
from bench.task import open_dataset
from evaluator.rubric import read_rubric, read_rubrics, require_rubrics

TEXTS = ["  Kept as it is,\n with “quotes” and 中文. ", "Second."]


def rubric(tmp_path: Path, content: Any, raw: bytes | None = None) -> Path:
    folder = tmp_path / "case-1"
    folder.mkdir(exist_ok=True)
    (folder / "rubric.json").write_bytes(raw if raw is not None else json.dumps(content).encode())
    return folder


@pytest.mark.parametrize(
    "content",
    [
        TEXTS,
        [{"criterion": t} for t in TEXTS],
        [{"text": t, "weight": 1} for t in TEXTS],
        [{"description": t, "id": n} for n, t in enumerate(TEXTS)],
        {"rubric": TEXTS},
        {"rubrics": [{"rubric_id": f"r{n}", "criterion": t} for n, t in enumerate(TEXTS)], "task_id": "x"},
        {"criteria": [{"text": t} for t in TEXTS]},
        {"items": TEXTS, "version": 2},
        {"items": [{"criterion": t, "text": t, "description": None} for t in TEXTS], "rubric": "free text"},
        [{"criterion": t, "criterion_index": n, "case_id": "case-1"} for n, t in enumerate(TEXTS, 1)],
    ],
)
def test_every_plausible_shape_gives_the_same_texts_in_order(tmp_path: Path, content: Any) -> None:
    found = read_rubric(rubric(tmp_path, content))
    assert [c.text for c in found] == TEXTS
    assert [c.criterion_index for c in found] == [1, 2]


def test_c1_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    found = read_rubric(rubric(tmp_path, None, b"\xef\xbb\xbf" + json.dumps(TEXTS).encode()))
    assert found[0].text == TEXTS[0]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"rules": ["a"]}', "rules"),
        (b'{"rubric": ["a"], "criteria": ["b"]}', "exactly one"),
        (b'[{"criterion": "a", "text": "b"}]', "one text"),
        (b'[{"title": "a"}]', "title"),
        (b'["a", 3]', "criterion 2"),
        (b'["a", " "]', "empty"),
        (b"[]", "empty"),
        (b'{"rubric": ["a"], "rubric": ["b"]}', "given twice"),
        (b'[{"criterion": "a", "weight": NaN}]', "NaN"),
        (b'[{"criterion": "a", "id": "x"}, {"criterion": "b", "id": "x"}]', "share an id"),
        (b'["\xff"]', "UTF-8"),
        (b"[", "strict JSON"),
        (b"{}", r"found keys \[\]"),
        (b"null", "NoneType"),
        (b'{"rubric": {"criteria": ["a"]}}', r"found keys \['rubric'\]"),
        (b'{"criteria": "a"}', r"found keys \['criteria'\]"),
        (b'["a", ["b"]]', "criterion 2.*list"),
        (b'["a", null]', "criterion 2.*NoneType"),
        (b'[{"criterion": "a", "description": "b"}]', r"found keys \['criterion', 'description'\]"),
        (b'[{"criterion": "a", "text": 5}]', "one text"),
        (b'[{"criterion": ["a"]}]', "one text"),
        (b'[{"criterion": "a", "id": ["x"]}]', "id is a list"),
        (b'[{"criterion": "a", "id": true}]', "id is a bool"),
        (b'[{"criterion": "a", "criterion_index": 2}]', "number 2"),
        (b'[{"criterion": "a", "case_id": "case-2"}]', "rubric of 'case-2'"),
        (b'{"case_id": "case-2", "rubric": ["a"]}', "rubric of 'case-2'"),
        (b'["a", {"criterion": "b", "id": "case-1-1"}]', "share an id"),
        (rb'["\ud83d"]', "half a character"),
        (b'[{"criterion": "a", "weight": -Infinity}]', "Infinity"),
        (b'[{"criterion": "a", "weight": 1e400}]', "too large"),
        (b'{"rubric": ["a"], "rubric ": [], "meta": {"k": 1, "k": 2}}', "'k' is given twice"),
        (b"[" * 200_000, "nested too deeply"),
        ('["a"]'.encode("utf-16"), "UTF-8"),
    ],
)
def test_anything_else_is_an_error_that_shows_it(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_rubric(rubric(tmp_path, None, raw))


def test_c8_a_root_without_rubrics_is_recognised(tmp_path: Path) -> None:
    for root in ("solver-inputs", "evaluation-inputs"):
        (tmp_path / root / "cases" / "one").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"1 of 1 cases .*Did you mean .*evaluation-inputs"):
        require_rubrics(tmp_path / "solver-inputs", ["one"])


def test_the_number_of_criteria_is_held_against_what_the_release_declares(tmp_path: Path) -> None:
    for case, texts in (("one", ["A.", "B."]), ("two", ["C."])):
        folder = tmp_path / "cases" / case
        (folder / "project").mkdir(parents=True)
        (folder / "user_queries.json").write_text('[{"text": "x"}]')
        (folder / "rubric.json").write_text(json.dumps(texts))
    card = {"name": "x", "case_ids": ["one", "two"], "criteria": 3}
    (tmp_path / "dataset.json").write_text(json.dumps(card))
    assert [len(rubric) for rubric in read_rubrics(open_dataset(tmp_path)).values()] == [2, 1]
    (tmp_path / "dataset.json").write_text(json.dumps({**card, "criteria": 4}))
    with pytest.raises(DataError, match=r"hold 3 criteria, the release declares 4; extract it again"):
        read_rubrics(open_dataset(tmp_path))
    assert len(read_rubrics(open_dataset(tmp_path, ["two"]))) == 1, "a subset has no declared number"


def test_c1_a_mark_is_no_part_of_the_first_text_whatever_the_shape(tmp_path: Path) -> None:
    for content in (TEXTS, {"rubrics": TEXTS}, [{"text": t} for t in TEXTS]):
        found = read_rubric(rubric(tmp_path, None, b"\xef\xbb\xbf" + json.dumps(content).encode()))
        assert [c.text for c in found] == TEXTS
