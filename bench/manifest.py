"""`manifest.json` of a release: scope, case ids, counts and checksums. The card names these without their keys, so
several plausible ones are read; two that contradict each other are an error, never a choice.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.errors import DataError
from bench.layout import Release
from bench.strict_json import read_json

_IDS = ("case_ids", "cases", "tasks", "case_list")
_ID = ("case_id", "id", "task_id")
_SECTIONS = ("counts", "scope", "totals")
_TASK_COUNTS = ("tasks", "task_count", "num_tasks", "cases", "case_count")
_CRITERIA_COUNTS = ("criteria", "criteria_count", "criterion_count", "num_criteria", "rubrics", "rubric_count")
_SUMS = ("archives", "checksums", "files", "sha256")
_FILE = ("name", "file", "path", "filename")
_MAX_ID_BYTES = 200


def read_manifest(path: Path) -> Release:
    """The release that a manifest declares. Raises DataError naming the file, what is wrong and the keys found."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path} is no manifest: it holds a {type(content).__name__}; download it again")
    ids = _case_ids(content, path)
    tasks = _count(content, _TASK_COUNTS, path)
    if tasks is not None and tasks != len(ids):
        raise DataError(f"{path} declares {tasks} tasks and names {len(ids)} case ids; download it again")
    return Release(
        folder=path.parent,
        name=str(content.get("name") or content.get("dataset") or path.parent.resolve().name),
        version=str(content.get("version", "")),
        track=str(content.get("benchmark_track") or content.get("track") or ""),
        case_ids=ids,
        criteria=_count(content, _CRITERIA_COUNTS, path),
        sha256=dict(_checksums(content)),
    )


def _case_ids(content: dict[str, Any], path: Path) -> tuple[str, ...]:
    lists = [place[key] for place in _places(content) for key in _IDS if isinstance(place.get(key), list)]
    if not lists or not lists[0]:
        raise DataError(f"{path} names no case ids under any of {_IDS}; found keys {sorted(content)}")
    ids, *others = [[_case_id(item, path) for item in found] for found in lists]
    if any(sorted(other) != sorted(ids) for other in others):
        raise DataError(f"{path} holds two lists of cases that differ; download it again")
    if twice := sorted({case for case in ids if ids.count(case) > 1}):
        raise DataError(f"{path} names the case {twice[0]!r} twice; download it again")
    return tuple(ids)


def _case_id(item: Any, path: Path) -> str:
    if isinstance(item, dict):
        item = next((item[key] for key in _ID if key in item), item)
    if not isinstance(item, str) or not _is_plain(item):
        raise DataError(f"{path} names a case {str(item)[:80]!r}, which cannot be a folder's name; download it again")
    return item


def _is_plain(case_id: str) -> bool:
    """Whether an id is safe as the name of a folder and on a terminal."""
    if case_id in ("", ".", "..") or "/" in case_id or len(case_id.encode("utf-8", "replace")) > _MAX_ID_BYTES:
        return False
    return not any(unicodedata.category(c) in ("Cc", "Cs") for c in case_id)


def _count(content: dict[str, Any], keys: tuple[str, ...], path: Path) -> int | None:
    found = [(key, place[key]) for place in _places(content) for key in keys if type(place.get(key)) is int]
    if len({number for _, number in found}) > 1:  # `type`, because to isinstance `True` is an int
        raise DataError(f"{path} contradicts itself: {found}; download it again")
    return found[0][1] if found else None


def _places(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [content, *(content[key] for key in _SECTIONS if isinstance(content.get(key), dict))]


def _checksums(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for section in (content.get(key) for key in _SUMS):
        entries: list[tuple[Any, Any]] = []
        if isinstance(section, dict):
            entries = list(section.items())
        elif isinstance(section, list):
            items = [item for item in section if isinstance(item, dict)]
            entries = [(next((item[key] for key in _FILE if key in item), None), item) for item in items]
        for name, value in entries:
            digest = value.get("sha256") or value.get("checksum") if isinstance(value, dict) else value
            if isinstance(name, str) and isinstance(digest, str):
                yield name.removeprefix("./"), digest.lower().removeprefix("sha256:")
