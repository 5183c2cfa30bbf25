"""Reading acceptance criteria: several plausible file shapes, text and order kept verbatim, nothing guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import DataError, UsageError
from evaluator.strict_json import read_json

RUBRIC = "rubric.json"
_LISTS = ("rubric", "rubrics", "criteria", "items")
_TEXTS = ("criterion", "text", "description")
_IDS = ("rubric_id", "id", "criterion_id")


class Criterion(NamedTuple):
    """One acceptance criterion: position in its task from 1, record id, and the text as the file has it."""

    criterion_index: int
    rubric_id: str
    text: str


def read_rubric(case_folder: Path) -> tuple[Criterion, ...]:
    """The criteria of one case of an evaluation root, in the file's order.

    Accepted shapes: a list of strings; a list of objects whose text is under `criterion`, `text` or
    `description`; an object holding such a list under `rubric`, `rubrics`, `criteria` or `items`. A missing id
    becomes `CASE-N`. Raises DataError that shows the keys found for any other shape.
    """
    path = case_folder / RUBRIC
    return parse_rubric(read_json(path), case_folder.name, str(path))


def parse_rubric(content: Any, case: str, name: str) -> tuple[Criterion, ...]:
    """As `read_rubric`, for parsed JSON that came from `name`."""
    items = _list_in(content, name)
    criteria = tuple(_criterion(item, n, case, name) for n, item in enumerate(items, start=1))
    ids = [criterion.rubric_id for criterion in criteria]
    if len(set(ids)) != len(ids):
        raise DataError(f"{name}: two criteria share an id; found {ids}")
    return criteria


def require_rubrics(root: Path, cases: list[str]) -> None:
    """Raises UsageError when cases have no rubric, with the folder that was probably meant."""
    missing = [case for case in cases if not (root / "cases" / case / RUBRIC).is_file()]
    if not missing:
        return
    sibling = root.parent / "evaluation-inputs"
    hint = f"Did you mean {sibling}?" if sibling.is_dir() and sibling != root else "Extract eval_withrubric.tar.gz"
    raise UsageError(
        f"{len(missing)} of {len(cases)} cases under {root} have no {RUBRIC} (first {missing[0]}): "
        f"are these the solver's inputs? {hint}"
    )


def _list_in(content: Any, name: str) -> list[Any]:
    if isinstance(content, dict):
        found = [key for key in _LISTS if isinstance(content.get(key), list)]
        if len(found) != 1:
            raise DataError(f"{name}: expected exactly one list under {_LISTS}; found keys {sorted(content)}")
        content = content[found[0]]
    if not isinstance(content, list) or not content:
        raise DataError(f"{name}: expected a list of criteria; found {type(content).__name__}, maybe empty")
    return content


def _criterion(item: Any, index: int, case: str, name: str) -> Criterion:
    if isinstance(item, str):
        return Criterion(index, f"{case}-{index}", _text(item, index, name))
    if not isinstance(item, dict):
        raise DataError(f"{name}, criterion {index}: expected a text or an object; found {type(item).__name__}")
    texts = [key for key in _TEXTS if isinstance(item.get(key), str)]
    if len(texts) != 1:
        raise DataError(f"{name}, criterion {index}: expected one text under {_TEXTS}; found keys {sorted(item)}")
    given = next((item[key] for key in _IDS if item.get(key) not in (None, "")), f"{case}-{index}")
    return Criterion(index, str(given), _text(item[texts[0]], index, name))


def _text(text: str, index: int, name: str) -> str:
    if not text.strip():
        raise DataError(f"{name}, criterion {index}: the text is empty")
    return text
