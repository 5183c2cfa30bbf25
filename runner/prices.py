"""Prices for a forecast, from litellm's table read as a file. What is not in it is unknown, never 0."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TABLE = "model_prices_and_context_window_backup.json"


class Price(NamedTuple):
    """USD for one token: new input, input read from a cache, output."""

    input: float
    cached: float
    output: float


def price_of(model: str) -> Price | None:
    """None when nobody knows the model, or the table is not installed (`pip install codesign-bench[models]`)."""
    table = _table()
    for name in (model, model.partition("/")[2]):
        row = table.get(name)
        if isinstance(row, dict) and "input_cost_per_token" in row and "output_cost_per_token" in row:
            fresh = float(row["input_cost_per_token"])
            return Price(
                fresh, float(row.get("cache_read_input_token_cost") or fresh), float(row["output_cost_per_token"])
            )
    return None


@cache
def _table() -> dict[str, Any]:
    found = importlib.util.find_spec("litellm")  # found, not imported
    if found is None or found.origin is None:
        return {}
    path = Path(found.origin).parent / TABLE
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content if isinstance(content, dict) else {}
