"""Tokens and money as the records of both sides tell them, in one shape and summed. Unknown is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.journal import Record

_OF_CALLS = ("calls", "requests", "tokens", "cost_usd")


def usages_of(record: Record) -> list[Record]:
    """Every usage in a record: a trial tells it in `account`, a criterion in `usage`, one a role, a single call
    beside its other fields."""
    account = record.get("account")
    if isinstance(account, dict):
        record = account
    usage = record.get("usage")
    if isinstance(usage, dict) and usage:
        roles = [value for value in usage.values() if isinstance(value, dict)]
        return roles if len(roles) == len(usage) else [usage]
    return [{key: record[key] for key in _OF_CALLS if key in record}] if "cost_usd" in record else []


def summed(usages: Iterable[Record]) -> dict[str, float | int | None]:
    """The sum of each number; None as soon as one usage does not know it. Tokens by kind become `tokens.input` …"""
    flat = [_flat(usage) for usage in usages]
    keys = sorted({key for usage in flat for key in usage})
    return {key: _total([usage[key] for usage in flat if key in usage]) for key in keys}


def cost_usd(records: Iterable[Record]) -> float | None:
    """What all of them cost together; None when one of them does not know."""
    told = summed(usage for record in records for usage in usages_of(record)).get("cost_usd", 0.0)
    return None if told is None else float(told)


def _flat(usage: Record) -> Record:
    tokens = usage.get("tokens")
    inner = {f"tokens.{kind}": value for kind, value in tokens.items()} if isinstance(tokens, dict) else {}
    whole = usage | inner
    return {key: value for key, value in whole.items() if value is None or _is_number(value)}


def _total(values: list[Any]) -> float | int | None:
    if None in values:
        return None
    total: float | int = sum(values)
    return round(total, 6) if isinstance(total, float) else total


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
