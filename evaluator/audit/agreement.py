"""How far labellers agree: Cohen's weighted kappa and Krippendorff's alpha, each with a bootstrap interval.

Categories are ranks from 0. Kappa has quadratic weights (Cohen 1968, "Weighted kappa", Psychological Bulletin 70):
1 - Σ w·observed / Σ w·expected with w = (i - j)². Alpha has the ordinal metric (Krippendorff 2011, "Computing
Krippendorff's Alpha-Reliability"): 1 - D_o / D_e over the coincidences of values within items, where two ranks are
as far apart as there are values between them. Both are 1 for full agreement, 0 for what chance gives, and undefined
(nan, or None in a report) where every value is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Agreement(NamedTuple):
    """A coefficient with its 95 % interval (percentile bootstrap over items), over so many items.

    `same`: share of pairs of labels that are equal. None where a number is undefined.
    """

    value: float | None
    low: float | None
    high: float | None
    same: float | None
    items: int

    def as_json(self) -> dict[str, Any]:
        return {k: round(v, 6) if isinstance(v, float) else v for k, v in self._asdict().items()}


def weighted_kappa(tables: Floats) -> Floats:
    """Quadratic-weighted kappa of each table in (…, k, k), rows the first rater. nan: undefined."""
    k = tables.shape[-1]
    ranks = np.arange(k)
    weights = (ranks[:, None] - ranks[None, :]) ** 2 / (k - 1) ** 2
    total = tables.sum(axis=(-2, -1))
    expected = tables.sum(axis=-1)[..., :, None] * tables.sum(axis=-2)[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = (weights * expected).sum(axis=(-2, -1)) / total
        return np.where(chance > 0, 1 - (weights * tables).sum(axis=(-2, -1)) / chance, np.nan)


def ordinal_alpha(coincidences: Floats) -> Floats:
    """Krippendorff's alpha, ordinal metric, of each coincidence matrix in (…, k, k). nan: undefined."""
    counts = coincidences.sum(axis=-1)
    total = counts.sum(axis=-1)
    middle = np.cumsum(counts, axis=-1) - counts / 2  # of each rank, how many values lie below its middle
    distance = (middle[..., :, None] - middle[..., None, :]) ** 2
    expected = counts[..., :, None] * counts[..., None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = (expected * distance).sum(axis=(-2, -1)) / (total - 1)
        return np.where(chance > 0, 1 - (coincidences * distance).sum(axis=(-2, -1)) / chance, np.nan)


def kappa(
    first: Ints, second: Ints, ranks: int, *, seed: int, strata: Ints | None = None, weights: Floats | None = None
) -> Agreement:
    """Agreement of two raters over the same items, given as ranks.

    `strata`: items are resampled within these, as they were drawn. `weights`: how many criteria an item stands for
    (1/probability); the coefficient is then that of the whole frame.
    """
    n = len(first)
    tables = np.zeros((n, ranks, ranks))
    tables[np.arange(n), first, second] = 1.0 if weights is None else weights
    return kappa_of(tables, seed=seed, strata=strata)


def kappa_of(tables: Floats, *, seed: int, strata: Ints | None = None) -> Agreement:
    """The same where an item was rated several times. `tables`: (items, ranks, ranks), what each item adds."""
    return _measured(tables, weighted_kappa, seed=seed, strata=strata)


def alpha(counts: Ints, *, seed: int, strata: Ints | None = None) -> Agreement:
    """Agreement of any number of raters. `counts`: (items, ranks), how many gave which; items with one rating are
    left out."""
    rated = counts.sum(axis=1)
    paired = rated >= 2
    chosen = counts[paired].astype(np.float64)
    pairs = chosen[:, :, None] * chosen[:, None, :] - chosen[:, :, None] * np.eye(counts.shape[1])
    coincidences = pairs / (rated[paired] - 1)[:, None, None]
    return _measured(coincidences, ordinal_alpha, seed=seed, strata=None if strata is None else strata[paired])


def resampled(strata: Ints, *, seed: int, resamples: int = RESAMPLES) -> Floats:
    """(resamples, items): how often each item is in each bootstrap resample, drawn within its stratum."""
    generator = np.random.Generator(np.random.PCG64(seed))
    draws = np.zeros((resamples, len(strata)))
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        n = len(inside)
        picked = generator.integers(0, n, size=(resamples, n)) + n * np.arange(resamples)[:, None]
        draws[:, inside] = np.bincount(picked.ravel(), minlength=resamples * n).reshape(resamples, n)
    return draws


def _measured(
    tables: Floats, coefficient: Callable[[Floats], Floats], *, seed: int, strata: Ints | None
) -> Agreement:
    """`tables`: what each item adds to the table (items, k, k) that `coefficient` is of."""
    n, k = len(tables), tables.shape[-1]
    if not n:
        return Agreement(None, None, None, None, 0)
    whole = tables.sum(axis=0)
    same = float(np.trace(whole) / whole.sum())
    value = float(coefficient(whole))
    if math.isnan(value):
        return Agreement(None, None, None, same, n)
    draws = resampled(np.zeros(n, dtype=np.int64) if strata is None else strata, seed=seed)
    spread = coefficient((draws @ tables.reshape(n, k * k)).reshape(-1, k, k))
    spread = spread[~np.isnan(spread)]  # resamples in which every value is the same
    if not len(spread):
        return Agreement(value, None, None, same, n)
    low, high = np.quantile(spread, [0.025, 0.975])
    return Agreement(value, float(low), float(high), same, n)
