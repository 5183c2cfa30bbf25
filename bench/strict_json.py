"""JSON from outside, read strictly: a BOM is tolerated; a key given twice, NaN and Infinity are errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from bench.errors import DataError


def read_json(path: Path) -> Any:
    """Parse a UTF-8 JSON file. Raises DataError naming file and place."""
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: bytes, name: str) -> Any:
    """Parse UTF-8 JSON that came from `name`. Raises DataError naming it and the place."""
    try:
        return json.loads(
            content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 ({error}); save it as UTF-8 or download it again") from error
    except ValueError as error:
        raise DataError(f"{name} is not strict JSON: {error}; correct it or download it again") from error
    except RecursionError as error:
        raise DataError(f"{name} is not strict JSON: it is nested too deeply; download it again") from error


def unencodable(text: str) -> str | None:
    """The first lone surrogate of `text` as an escape, None without one. JSON can write it, UTF-8 cannot hold it."""
    return next((f"\\u{ord(c):04x}" for c in text if "\ud800" <= c <= "\udfff"), None)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {twice!r} is given twice")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value
