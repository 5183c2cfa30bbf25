"""Confidence intervals of a result over tasks, and over attempts within tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
NESTED_RESAMPLES = 2_000
_PIECE_BYTES = 16 * 2**20
"""Memory of one piece of resamples: many tasks take more pieces, not more memory."""
Z_95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


class Interval(NamedTuple):
    """A mean and its 95 % interval, as fractions."""

    mean: float
    low: float
    high: float


def bootstrap_mean(values: Sequence[float], *, seed: int, span: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Percentile bootstrap over tasks (Efron 1979), 10,000 resamples from a seeded PCG64: same input, same numbers.

    `span`: the least and the greatest value there can be. Where all values are equal no resample differs, and an
    interval without width would claim what so few tasks cannot show: it is Wilson's then, whose variance is the
    greatest that values within `span` can have. Raises ValueError on an empty sequence.
    """
    if not len(values):
        raise ValueError("no task to average")
    if min(values) == max(values):
        low, high = span
        _, *ends = _wilson((values[0] - low) / (high - low), len(values))
        return Interval(float(values[0]), *(low + end * (high - low) for end in ends))
    return _percentiles(math.fsum(values) / len(values), resampled_means(values, seed=seed))


def resampled_means(values: Sequence[float], *, seed: int) -> NDArray[np.float64]:
    """The means of 10,000 resamples of tasks. Equal values are counted, not moved: the sum of a resample is a
    multinomial draw over the distinct values, so that time and memory do not grow with the number of tasks."""
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    generator = np.random.Generator(np.random.PCG64(seed))
    n = int(counts.sum())
    means = np.empty(RESAMPLES)
    piece = max(1, min(RESAMPLES, _PIECE_BYTES // (8 * len(distinct))))
    for first in range(0, RESAMPLES, piece):
        draws = generator.multinomial(n, counts / n, size=min(piece, RESAMPLES - first))
        means[first : first + len(draws)] = draws @ distinct / n
    return means


def nested_bootstrap(tasks: Sequence[Sequence[float]], *, seed: int) -> Interval:
    """Hierarchical percentile bootstrap: tasks with replacement, and for each pick its attempts with replacement.

    `tasks`: the values of each task's attempts; one attempt each gives the plain bootstrap over tasks. A task that
    was picked k times draws k·A of its A attempts' values, which is one multinomial draw over the distinct ones.
    Raises ValueError on an empty sequence.
    """
    if not len(tasks):
        raise ValueError("no task to average")
    means = [math.fsum(values) / len(values) for values in tasks]
    if all(len(values) == 1 for values in tasks) or len({value for values in tasks for value in values}) == 1:
        return bootstrap_mean(means, seed=seed)
    generator = np.random.Generator(np.random.PCG64(seed))
    totals = np.zeros(NESTED_RESAMPLES)
    left = np.full(NESTED_RESAMPLES, len(tasks))
    for place, values in enumerate(tasks):
        # How often each resample picks this task, given what the tasks before it took: one multinomial in turns.
        picked = generator.binomial(left, 1 / (len(tasks) - place))
        left -= picked
        distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
        draws = generator.multinomial(picked * len(values), counts / len(values))
        totals += draws @ distinct / len(values)
    return _percentiles(math.fsum(means) / len(means), totals / len(tasks))


def _percentiles(mean: float, resampled: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(mean, float(low), float(high))


def wilson(successes: int, n: int) -> Interval:
    """Wilson's score interval of a proportion (Wilson 1927), 95 %. Raises ValueError when n is 0."""
    if n == 0:
        raise ValueError("no task to average")
    return _wilson(successes / n, n)


def _wilson(p: float, n: int) -> Interval:
    centre = (p + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
    half = Z_95 / (1 + Z_95**2 / n) * math.sqrt(p * (1 - p) / n + Z_95**2 / (4 * n**2))
    return Interval(p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))
