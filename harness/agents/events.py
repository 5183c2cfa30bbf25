"""Reading an agent's stream of JSON events, however long a line is and whatever else is between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Every line that is a JSON object, in order. Lines have no length limit; the file itself is bounded.

    What is no JSON (a warning, a line cut by the bound, half a line of a process that was killed) is passed over.
    """
    if not path.is_file():
        return
    with path.open("rb") as lines:
        for line in lines:
            if not line.lstrip().startswith(b"{"):
                continue
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event


def last_event(path: Path, *types: str) -> dict[str, Any] | None:
    """The last event whose `type` is one of these."""
    found = None
    for event in events(path):
        if event.get("type") in types:
            found = event
    return found


def number(value: Any) -> float | None:
    """A plain number out of an agent's own words; anything else is None."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any, limit: int = 300) -> str:
    """A short text out of whatever an agent put there."""
    return (value if isinstance(value, str) else json.dumps(value))[:limit] if value else ""
