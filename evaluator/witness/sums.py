"""Arithmetic in a witness: `${before} + 1`, `${qty} * 4.5 + 6.9`. Numbers, + - * / and parentheses, no more."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([-+*/()]))")
MAX_DEPTH = 20


def value_of(text: str) -> float:
    """The value of a sum. Raises ValueError for what is none, and for a division by 0."""
    tokens = _tokens(text)
    at, total = _sum(tokens, 0, 0)
    if at != len(tokens):
        raise ValueError(f"{text!r} is no number and no sum of numbers")
    return total


def _tokens(text: str) -> list[str]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"{text!r} is no number and no sum of numbers")
        found.append(token[1] or token[2])
        at = token.end()
    if not found:
        raise ValueError("an empty text is no number")
    return found


def _sum(tokens: list[str], at: int, depth: int) -> tuple[int, float]:
    at, total = _product(tokens, at, depth)
    while at < len(tokens) and tokens[at] in "+-":
        sign = 1 if tokens[at] == "+" else -1
        at, term = _product(tokens, at + 1, depth)
        total += sign * term
    return at, total


def _product(tokens: list[str], at: int, depth: int) -> tuple[int, float]:
    at, total = _factor(tokens, at, depth)
    while at < len(tokens) and tokens[at] in "*/":
        divides = tokens[at] == "/"
        at, factor = _factor(tokens, at + 1, depth)
        if divides and factor == 0:
            raise ValueError("a division by 0 has no value")
        total = total / factor if divides else total * factor
    return at, total


def _factor(tokens: list[str], at: int, depth: int) -> tuple[int, float]:
    if at >= len(tokens) or depth > MAX_DEPTH:
        raise ValueError(f"{' '.join(tokens)[:80]!r} is no number and no sum of numbers")
    token = tokens[at]
    if token in "+-":
        at, inner = _factor(tokens, at + 1, depth + 1)
        return at, -inner if token == "-" else inner
    if token == "(":
        at, inner = _sum(tokens, at + 1, depth + 1)
        if at >= len(tokens) or tokens[at] != ")":
            raise ValueError("a parenthesis is not closed")
        return at + 1, inner
    if token in "*/)":
        raise ValueError(f"{' '.join(tokens)[:80]!r} is no number and no sum of numbers")
    return at + 1, float(token)
