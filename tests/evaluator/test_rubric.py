"""Rubrics are read verbatim in several plausible shapes, and anything else is an error that shows what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.errors import DataError, UsageError
from evaluator.rubric import read_rubric, require_rubrics

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
