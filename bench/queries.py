"""`user_queries.json`: what the user asked, verbatim. The card documents one thing of it, `[0].text`.

More entries (further turns, other tracks) and other shapes are taken as they are: an entry is its text, and one
without a text is passed on as its JSON, so that nothing a user said is dropped.
"""

from __future__ import annotations

import json
from typing import Any

from bench.errors import DataError
from bench.strict_json import parse_json, unencodable

_LISTS = ("user_queries", "queries", "turns")
_REMEDY = "correct the file, or download the release again"


def read_queries(content: bytes, name: str) -> tuple[str, ...]:
    """Every entry in order. `content` came from the file `name`.

    Raises DataError when there is no entry, when the first one has no text, or when UTF-8 cannot hold a text.
    """
    entries = _entries(parse_json(content, name), name)
    texts = [_text(entry) for entry in entries]
    if not isinstance(texts[0], str):
        found = sorted(entries[0]) if isinstance(entries[0], dict) else type(entries[0]).__name__
        raise DataError(f"{name}, entry 0: no `text`; found {found}; {_REMEDY}")
    verbatim = [_as_json(entry) if text is None else text for text, entry in zip(texts, entries, strict=True)]
    for number, text in enumerate(verbatim):
        if escape := unencodable(text):
            raise DataError(f"{name}, entry {number}: {escape} is half a character; {_REMEDY}")
    return tuple(verbatim)


def _entries(content: Any, name: str) -> list[Any]:
    if isinstance(content, dict) and "text" not in content:
        lists = [key for key in _LISTS if isinstance(content.get(key), list)]
        if len(lists) != 1:
            raise DataError(f"{name} must be a list of entries with `text`; found keys {sorted(content)}; {_REMEDY}")
        content = content[lists[0]]
    entries = [content] if isinstance(content, dict) else content
    if entries == []:
        raise DataError(f"{name} is empty, it has no request; {_REMEDY}")
    if not isinstance(entries, list):
        raise DataError(
            f"{name} must be a list of entries with a `text`; found {type(content).__name__}, maybe empty"
        )
    return entries


def _text(entry: Any) -> str | None:
    text = entry.get("text") if isinstance(entry, dict) else entry
    return text if isinstance(text, str) else None


def _as_json(entry: Any) -> str:
    return json.dumps(entry, ensure_ascii=False)
