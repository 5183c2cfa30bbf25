"""Paired statistics over tasks. Values and differences are fractions; every function is pure and seeded."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evaluator.intervals import Z_95, Interval, bootstrap_mean

EXACT_UP_TO = 16
"""With at most this many differing tasks every assignment of signs is looked at."""
DRAWS = 100_000
Z_80 = 0.8416212335729143
"""The 80 % point of the standard normal distribution."""
_PIECE = 2_000


def difference(first: Sequence[float], second: Sequence[float], *, seed: int) -> Interval:
    """Mean of `first - second` over tasks and its 95 % bootstrap interval. Raises ValueError when empty."""
    return bootstrap_mean([a - b for a, b in zip(first, second, strict=True)], seed=seed, span=(-1.0, 1.0))


def sign_flip(differences: Sequence[float], *, seed: int) -> float:
    """Two-sided p of the paired permutation test: how often random signs give a sum at least as far from 0.

    Exact with up to 16 differing tasks, else from 100,000 seeded draws as (hits + 1)/(draws + 1) (Phipson & Smyth
    2010). 1 when nothing differs.
    """
    moved = np.array([d for d in differences if d != 0.0])
    if not len(moved):
        return 1.0
    bar = abs(float(moved.sum())) - 1e-9  # sums of the same parts in another order are equal
    if len(moved) <= EXACT_UP_TO:
        signs = 1 - 2 * ((np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1)
        return float((np.abs(signs @ moved) >= bar).mean())
    generator = np.random.Generator(np.random.PCG64(seed))
    hits = 0
    for _ in range(0, DRAWS, _PIECE):
        signs = 1 - 2 * generator.integers(0, 2, size=(_PIECE, len(moved)), dtype=np.int8)
        hits += int((np.abs(signs @ moved) >= bar).sum())
    return (hits + 1) / (DRAWS + 1)


def mcnemar_mid_p(first_only: int, second_only: int) -> float:
    """Two-sided mid-p of McNemar's test: 2·P(X ≤ min) - P(X = min), X binomial(b + c, ½) (Fagerland et al. 2013).

    `first_only`, `second_only`: tasks in which only the one or the other succeeded. 1 when there are none.
    """
    n, least = first_only + second_only, min(first_only, second_only)
    if n == 0:
        return 1.0
    below = sum(math.comb(n, i) for i in range(least + 1))
    return min(1.0, math.ldexp(2 * below - math.comb(n, least), -n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (Holm 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def smallest_detectable(differences: Sequence[float]) -> float | None:
    """The true mean difference that a paired test of this many tasks finds with 80 % power at 5 %:
    (z₀.₉₇₅ + z₀.₈)·s/√n. None with fewer than two tasks; 0 only where nothing varies."""
    if len(differences) < 2:
        return None
    spread = float(np.std(np.asarray(differences), ddof=1))
    return (Z_95 + Z_80) * spread / math.sqrt(len(differences))
