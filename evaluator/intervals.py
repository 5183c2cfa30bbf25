"""Confidence intervals of a result over tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
Z_95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


class Interval(NamedTuple):
    """A mean and its 95 % interval, as fractions."""

    mean: float
    low: float
    high: float


def bootstrap_mean(values: Sequence[float], *, seed: int) -> Interval:
    """Percentile bootstrap over tasks (Efron 1979), 10,000 resamples from a seeded PCG64: same input, same numbers.

    Raises ValueError on an empty sequence.
    """
    if not values:
        raise ValueError("no task to average")
    data = np.asarray(values, dtype=np.float64)
    generator = np.random.Generator(np.random.PCG64(seed))
    means = np.empty(RESAMPLES)
    for first in range(0, RESAMPLES, 1000):  # in pieces: memory stays flat with many tasks
        picks = generator.integers(0, len(data), size=(1000, len(data)))
        means[first : first + 1000] = data[picks].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(data.mean()), float(low), float(high))


def wilson(successes: int, n: int) -> Interval:
    """Wilson's score interval of a proportion (Wilson 1927), 95 %. Raises ValueError when n is 0."""
    if n == 0:
        raise ValueError("no task to average")
    p = successes / n
    centre = (p + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = Z_95 / (1 + Z_95**2 / n) * math.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n**2))
    return Interval(p, max(0.0, centre - half), min(1.0, centre + half))
