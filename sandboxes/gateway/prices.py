"""What a call costs. The table is litellm's JSON file, read as data: litellm itself is never imported.

A model that is not in any table has no price: its cost is unknown (None), never 0.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from sandboxes.gateway.policy import Price, Tier
from sandboxes.gateway.usage import Tokens

MILLION = 1_000_000
TABLE = "model_prices_and_context_window_backup.json"
_TIER = re.compile(
    r"(input|output)_cost_per_token_above_(\d+)k_tokens\Z|cache_read_input_token_cost_above_(\d+)k_tokens\Z"
)
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|latest)\Z")


def cost_usd(price: Price, tokens: Tokens) -> float:
    """Each token priced once, by its kind. Tiers go by all that went in, as providers bill."""
    rates = _rates(price, tokens.prompt)
    short = max(0, tokens.cache_write - tokens.cache_write_1h)
    long_price = price.cache_write_1h if price.cache_write_1h is not None else rates.cache_write
    audio = min(tokens.audio_input, tokens.input)
    audio_price = price.audio_input if price.audio_input is not None else rates.input
    micro_usd = (
        (tokens.input - audio) * rates.input
        + audio * audio_price
        + tokens.cache_read * (rates.cache_read if rates.cache_read is not None else rates.input)
        + short * (rates.cache_write if rates.cache_write is not None else rates.input)
        + (tokens.cache_write - short) * (long_price if long_price is not None else rates.input)
        + tokens.output * rates.output
    )
    return micro_usd / MILLION + tokens.web_searches * (price.web_search or 0.0)


def _rates(price: Price, prompt_tokens: int) -> Price:
    reached = [tier for tier in price.tiers if prompt_tokens > tier.above_tokens]
    if not reached:
        return price
    tier = max(reached, key=lambda tier: tier.above_tokens)
    told = {key: value for key, value in tier.model_dump(exclude={"above_tokens"}).items() if value is not None}
    return price.model_copy(update=told)


class PriceTable:
    """Prices by model name. `own` goes before the file; both are looked up with and without a provider's prefix."""

    def __init__(self, own: Mapping[str, Price], file: Path | None = None) -> None:
        """Raises UsageError when `file` was named and cannot be read."""
        self._own = dict(own)
        self._named = file
        self._table: dict[str, Price] | None = None

    def find(self, model: str, provider: str = "") -> Price | None:
        """The model's price; None when nobody knows it. A dated name falls back to the name without the date."""
        plain = _DATE.sub("", model)
        names = [f"{prefix}{name}" for name in dict.fromkeys((model, plain)) for prefix in _prefixes(provider)]
        for table in (self._own, self._read()):
            for name in names:
                if name in table:
                    return table[name]
        return None

    def _read(self) -> dict[str, Price]:
        if self._table is None:
            file = self._named or _installed()
            self._table = _load(file) if file else {}
        return self._table


def _prefixes(provider: str) -> list[str]:
    return [f"{provider}/", ""] if provider else ["", "gemini/"]


def _installed() -> Path | None:
    """litellm's own file, found without importing it; CDB_PRICES names another."""
    if told := os.environ.get("CDB_PRICES"):
        return Path(told)
    spec = importlib.util.find_spec("litellm")
    places = spec.submodule_search_locations if spec else None
    found = [Path(place) / TABLE for place in places or [] if (Path(place) / TABLE).is_file()]
    return found[0] if found else None


def _load(file: Path) -> dict[str, Price]:
    """The whole table, each entry cut down as soon as it is parsed: 3 MB of text must not stay in memory."""

    def keep(entry: dict[str, Any]) -> Any:
        if "input_cost_per_token" in entry and "output_cost_per_token" in entry:
            return _price(entry)
        return entry

    try:
        told = json.loads(file.read_bytes(), object_hook=keep)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the price table {file} cannot be read ({error}); correct CDB_PRICES or prices_file"
        ) from error
    return {name: price for name, price in told.items() if isinstance(price, Price)}


def _price(entry: dict[str, Any]) -> Price | None:
    def per_million(key: str) -> float | None:
        value = entry.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            return None
        return round(value * MILLION, 9)

    given, made = per_million("input_cost_per_token"), per_million("output_cost_per_token")
    if given is None or made is None:
        return None
    searches = entry.get("search_context_cost_per_query")
    search = searches.get("search_context_size_medium") if isinstance(searches, dict) else None
    longest = entry.get("max_output_tokens")
    return Price.model_construct(
        input=given,
        output=made,
        cache_read=per_million("cache_read_input_token_cost"),
        cache_write=per_million("cache_creation_input_token_cost"),
        cache_write_1h=per_million("cache_creation_input_token_cost_above_1hr"),
        audio_input=per_million("input_cost_per_audio_token"),
        web_search=search if isinstance(search, int | float) else None,
        max_output_tokens=longest if isinstance(longest, int) else None,
        tiers=_tiers(entry, per_million),
    )


def _tiers(entry: dict[str, Any], per_million: Any) -> tuple[Tier, ...]:
    borders = {int(match[2] or match[3]) for key in entry if (match := _TIER.match(key))}
    return tuple(
        Tier.model_construct(
            above_tokens=border * 1000,
            input=per_million(f"input_cost_per_token_above_{border}k_tokens"),
            output=per_million(f"output_cost_per_token_above_{border}k_tokens"),
            cache_read=per_million(f"cache_read_input_token_cost_above_{border}k_tokens"),
            cache_write=per_million(f"cache_creation_input_token_cost_above_{border}k_tokens"),
        )
        for border in sorted(borders)
    )
