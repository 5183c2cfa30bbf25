"""Reading acceptance criteria: several plausible file shapes, text and order kept verbatim, nothing guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bench.errors import DataError, UsageError
from bench.layout import CASES, EVALUATION_ROOT
from bench.strict_json import read_json, unencodable
from bench.task import Dataset

RUBRIC = "rubric.json"
_LISTS = ("rubric", "rubrics", "criteria", "items")
_TEXTS = ("criterion", "text", "description")
_IDS = ("rubric_id", "id", "criterion_id")


class Criterion(NamedTuple):
    """One acceptance criterion: position in its task from 1, record id, and the text as the file has it."""

    criterion_index: int
    rubric_id: str
    text: str
    id_key: str | None = None
    """The key under which the file itself gives the id; None when it gives none."""


def read_rubrics(dataset: Dataset, damaged: dict[str, str] | None = None) -> dict[str, tuple[Criterion, ...]]:
    """The rubric of every selected task, by case.

    Raises UsageError when cases have none, DataError when a file is malformed or, over a whole dataset, when the
    number of criteria is not what its release declares. `damaged`: malformed files are left out and explained here
    instead (case → why), unless every one is malformed.
    """
    require_rubrics(dataset.root, [task.case_id for task in dataset.tasks])
    rubrics = {}
    for task in dataset.tasks:
        try:
            rubrics[task.case_id] = read_rubric(task.folder)
        except DataError as error:
            if damaged is None or len(damaged) == len(dataset.tasks) - 1:
                raise
            damaged[task.case_id] = str(error)
    found = sum(len(rubric) for rubric in rubrics.values())
    if not damaged and dataset.criteria is not None and dataset.scope["whole"] and found != dataset.criteria:
        raise DataError(
            f"the {RUBRIC} files below {dataset.root} hold {found} criteria, the release declares "
            f"{dataset.criteria}; extract it again with `cdb dataset extract`"
        )
    return rubrics


def read_rubric(case_folder: Path) -> tuple[Criterion, ...]:
    """The criteria of one case of an evaluation root, in the file's order.

    Accepted shapes: a list of strings; a list of objects whose text is under `criterion`, `text` or
    `description`; an object holding such a list under `rubric`, `rubrics`, `criteria` or `items`. A missing id
    becomes `CASE-N`. Raises DataError that shows the keys found for any other shape, for two texts or two lists
    that contradict each other, and for a rubric that names another case or another order.
    """
    path = case_folder / RUBRIC
    return parse_rubric(read_json(path), case_folder.name, str(path))


def parse_rubric(content: Any, case: str, name: str) -> tuple[Criterion, ...]:
    """As `read_rubric`, for parsed JSON that came from `name`."""
    _require_case(content, case, name)
    items = list_in(content, _LISTS, name)
    criteria = tuple(_criterion(item, n, case, name) for n, item in enumerate(items, start=1))
    ids = [criterion.rubric_id for criterion in criteria]
    if twice := [given for given in ids if ids.count(given) > 1]:
        raise _bad(name, f"two criteria share an id, {twice[0]!r}")
    return criteria


def require_rubrics(root: Path, cases: list[str]) -> None:
    """Raises UsageError when cases have no rubric, with the folder that was probably meant."""
    missing = [case for case in cases if not (root / CASES / case / RUBRIC).is_file()]
    if not missing:
        return
    sibling = root.absolute().parent / EVALUATION_ROOT
    same = sibling == root.absolute() or not (sibling / CASES).is_dir()
    hint = "Extract eval_withrubric.tar.gz and pass its root" if same else f"Did you mean {sibling}?"
    raise UsageError(
        f"{len(missing)} of {len(cases)} cases under {root} have no {RUBRIC} (first {missing[0]}): "
        f"are these the solver's inputs? {hint}"
    )


def list_in(content: Any, keys: tuple[str, ...], name: str) -> list[Any]:
    """The list that `content` is, or holds under exactly one of `keys`. Raises DataError that shows what is there."""
    if isinstance(content, dict):
        found = [key for key in keys if isinstance(content.get(key), list)]
        if len(found) != 1:
            raise _bad(name, f"expected exactly one list under {keys}; found keys {sorted(content)}")
        content = content[found[0]]
    if not isinstance(content, list) or not content:
        raise _bad(name, f"expected a list of criteria; found {type(content).__name__}, maybe empty")
    return content


def _criterion(item: Any, index: int, case: str, name: str) -> Criterion:
    where = f"{name}, criterion {index}"
    if isinstance(item, str):
        return Criterion(index, f"{case}-{index}", _text(item, where))
    if not isinstance(item, dict):
        raise _bad(where, f"expected a text or an object; found {type(item).__name__}")
    _require_case(item, case, where)
    if item.get("criterion_index", index) != index:
        raise _bad(where, f"it calls itself number {item['criterion_index']!r}; the order must be the file's")
    given = {key: item[key] for key in _TEXTS if item.get(key) is not None}
    texts = list(given.values())
    if len(set(map(repr, texts))) != 1 or not isinstance(texts[0], str):
        raise _bad(where, f"expected one text under {_TEXTS}; found keys {sorted(item)}")
    id_key = next((key for key in _IDS if item.get(key) not in (None, "")), None)
    if id_key is None:
        return Criterion(index, f"{case}-{index}", _text(texts[0], where))
    if type(item[id_key]) not in (str, int):
        raise _bad(where, f"its {id_key} is a {type(item[id_key]).__name__}; an id is a text or a number")
    return Criterion(index, str(item[id_key]), _text(texts[0], where), id_key)


def _require_case(content: Any, case: str, name: str) -> None:
    named = content.get("case_id") if isinstance(content, dict) else None
    if named not in (None, case):
        raise _bad(name, f"it is the rubric of {named!r}, not of {case!r}")


def _text(text: str, where: str) -> str:
    if not text.strip():
        raise _bad(where, "the text is empty")
    if escape := unencodable(text):
        raise _bad(where, f"the text holds {escape}, half a character")
    return text


def _bad(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what}. Correct the file, or download the release again")
