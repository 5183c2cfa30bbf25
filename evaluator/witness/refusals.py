"""Turns pydantic's complaints about a witness into sentences: which step, which field, what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from evaluator.witness import actions, checks, parts, targets

_MAX_SHOWN = 5


def explain(error: ValidationError, content: Mapping[str, Any]) -> str:
    """One message for all complaints about the witness `content`, the first five spelled out."""
    found = error.errors(include_url=False, include_input=True)
    lines = [_sentence(one, content) for one in found[:_MAX_SHOWN]]
    if len(found) > _MAX_SHOWN:
        lines.append(f"… and {len(found) - _MAX_SHOWN} more")
    return "this is no witness: " + "; ".join(dict.fromkeys(lines))


def _sentence(one: Any, content: Mapping[str, Any]) -> str:
    where, owner = _place(one["loc"], content)
    kind, ctx = one["type"], one.get("ctx", {})
    if kind == "union_tag_not_found" or (kind == "union_tag_invalid" and len(one["loc"]) == 2):
        says = 'a step has exactly one of "do" and "expect"'
    elif kind == "union_tag_invalid":
        half = "do" if "do" in ctx["discriminator"] else "expect"
        says = f'unknown "{half}": {ctx["tag"]!r}; allowed: {", ".join(_words(half))}'
    elif kind == "extra_forbidden":
        says = f"unknown field; allowed: {', '.join(_fields(owner))}" if owner else "unknown field"
    elif kind == "missing":
        says = "is missing" + (f"; the fields are: {', '.join(_fields(owner))}" if owner else "")
    elif kind == "too_long" and one["loc"] == ("steps",):
        says = f"has {ctx['actual_length']} steps; at most {ctx['max_length']} are allowed"
    else:
        says = one["msg"].removeprefix("Value error, ")
    return f"{where}: {says}" if where else says


def _place(loc: tuple[int | str, ...], content: Mapping[str, Any]) -> tuple[str, type[BaseModel] | None]:
    """Where a complaint lies in words, and the model that owns the field it is about."""
    if len(loc) < 2 or loc[0] != "steps" or not isinstance(loc[1], int):
        return ".".join(str(part) for part in loc), None
    at: Any = content["steps"][loc[1]]
    word = (at.get("do") or at.get("expect")) if isinstance(at, dict) else None
    owner = _model(word)
    path: list[str] = []
    for part in _without_tags(loc[2:], word):
        path.append(part)
        at = at.get(part) if isinstance(at, dict) else None
        if isinstance(at, dict):
            owner = _owner_of(at, part, owner)
    step = f"step {loc[1] + 1}" + (f" ({word})" if isinstance(word, str) else "")
    return step + (f", field {'.'.join(path)}" if path else ""), owner


def _without_tags(loc: tuple[int | str, ...], word: object) -> list[str]:
    """The field names of a place, without what pydantic puts between them to name members of unions."""
    names = [str(part) for part in loc]
    for tag in (("do", "expect"), (word,)):
        if names and names[0] in tag:
            names = names[1:]
    kept: list[str] = []
    for name in names:
        is_tag = name.startswith(("function-", "float", "str")) or (
            kept and kept[-1] in ("after", "during") and name in _models()
        )
        if not is_tag:
            kept.append(name)
    return kept


def _owner_of(at: dict[str, Any], name: str, parent: type[BaseModel] | None) -> type[BaseModel] | None:
    """The model of the object `at`, told by the field's name that holds it."""
    if name in ("target", "of", "within") or (name == "to" and parent is actions.Drag):
        return targets.Target
    if name in ("after", "during"):
        return _model(at.get("do"))
    owners: dict[str, type[BaseModel]] = {
        "at": parts.Point,
        "to_at": parts.Point,
        "region": parts.Region,
        "csv": checks.CsvContent,
        "json": checks.JsonContent,
    }
    return owners.get(name, parts.NumberCheck)


@cache
def _models() -> dict[str, type[BaseModel]]:
    """Each word of `do` and `expect` with its model."""
    found: dict[str, type[BaseModel]] = {}
    for union, key in ((actions.Action, "do"), (checks.Check, "expect")):
        for model in get_args(get_args(union)[0]):
            for word in get_args(model.model_fields[key].annotation):
                found[word] = model
    return found


def _model(word: object) -> type[BaseModel] | None:
    return _models().get(word) if isinstance(word, str) else None


def _words(half: str) -> list[str]:
    """The words allowed for `do` or `expect`."""
    return [word for word, model in _models().items() if half in model.model_fields]


def _fields(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
