"""The score that people would give, estimated from the judge's verdicts on everything and people's on a sample.

Prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan, Zrnic 2023, "Prediction-powered inference",
Science 382:669) with power tuning (Angelopoulos, Duchi, Zrnic 2023, "PPI++: Efficient prediction-powered inference",
arXiv:2311.01453) and labels drawn with unequal, known probabilities (Zrnic, Candès 2024, "Active statistical
inference", arXiv:2403.03208; in survey sampling the difference estimator, Särndal, Swensson, Wretman 1992, §6.3).

For criterion u of the frame let w(u) = 1/(tasks · criteria of its task), so that tasks weigh the same and Σ w = 1;
f(u) the judge's value and y(u) people's (Strict: 1 for PASS, Graded: also ½ for PARTIAL); p(u) = n/N of its stratum:

    estimate(λ) = λ Σ_all w f + Σ_labelled w (y - λ f) / p

It is unbiased whatever the judge does. λ is chosen between 0 (the judge is not used) and 1 to minimise the variance.

Two intervals, both normal at 95 %. *These tasks*: only the draw of the labels is random, variance
Σ_strata N² (1 - n/N) s² / n, with s² of the residuals w (y - λ f). *Tasks like these*: the tasks are a sample too, as
in the interval of `cdb score`; variance s²(z)/tasks with z the contribution of a task, and never less than the first.

Where the judge is seldom wrong most strata of the sample hold no error at all, and their own s² would be 0. s² is
therefore pooled over strata with the same verdict (collapsed strata: it is too large rather than too small), with
half a label that is wrong by a whole verdict added to each pool: an error that was not seen. In simulated audits of
200 labels (tests) an interval of 95 % then covers 94 % and more at every error rate, and is too wide only for a judge
that is nearly always right; without it, it covers 85 % there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluator.intervals import Z_95

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SURPRISE = 0.5
"""How much of one more label, wrong by a whole verdict, is added to what each pool of strata has shown."""


class Frame(NamedTuple):
    """Every criterion that could be drawn or is settled, in one order; arrays of one length.

    `task`: number of its task. `stratum`: number of its stratum, -1 for a criterion that nobody needs to look at
    (there was no application), whose value is certain. `pool`: which strata share a residual variance.
    """

    task: Ints
    stratum: Ints
    pool: Ints
    judge: Floats


class Corrected(NamedTuple):
    """Fractions. `low`, `high`: tasks like these; `here_low`, `here_high`: these tasks. `power` is λ."""

    judge: float
    mean: float
    low: float
    high: float
    here_low: float
    here_high: float
    power: float
    labels: int

    def as_json(self) -> dict[str, Any]:
        percent = ("judge", "mean", "low", "high", "here_low", "here_high")
        told = {k: round(100 * v, 4) if k in percent else v for k, v in self._asdict().items()}
        return told | {"power": round(self.power, 6)}


def weights(task: Ints) -> Floats:
    """w(u) of each criterion: tasks weigh the same, the criteria of a task too; sums to 1."""
    sizes = np.bincount(task)
    return 1.0 / (np.count_nonzero(sizes) * sizes[task])


def corrected(frame: Frame, labelled: Ints, people: Floats) -> Corrected:
    """Correct the judge's score by people's values on `labelled` (positions in the frame, each once).

    A stratum's labels are taken as a random part of it, so that labels which are missing (a person could not tell)
    make it smaller, not wrong. Raises ValueError for a stratum without any label.
    """
    w = weights(frame.task)
    drawn = frame.stratum >= 0
    strata = int(frame.stratum.max(initial=-1)) + 1
    size = np.bincount(frame.stratum[drawn], minlength=strata)
    held = np.bincount(frame.stratum[labelled], minlength=strata)
    if (bare := np.flatnonzero((size > 0) & (held == 0))).size:
        raise ValueError(f"no label in {len(bare)} strata")
    h = frame.stratum[labelled]
    expand = size[h] / held[h]
    known = float((w * frame.judge)[~drawn].sum())
    a, b = w[labelled] * people, w[labelled] * frame.judge[labelled]
    power = _power(a, b, frame.pool[labelled], h, size, held)
    residual = a - power * b
    mean = known + power * float((w * frame.judge)[drawn].sum()) + float((expand * residual).sum())
    spread = _pooled(residual, frame, labelled, w)
    here = float((size * (size - held) * spread / np.maximum(held, 1)).sum())
    over = max(here, _between_tasks(frame, w, labelled, power, expand * residual))
    judge = float((w * frame.judge).sum())
    return Corrected(judge, mean, *_normal(mean, over), *_normal(mean, here), power, len(labelled))


def _power(a: Floats, b: Floats, pool: Ints, h: Ints, size: Ints, held: Ints) -> float:
    """λ that minimises the variance of Σ expand · (a - λ b) (PPI++, §6), cut to [0, 1]; 1 where nothing varies."""
    scale = (size * (size - held) / np.maximum(held, 1))[h]
    a, b = a - _mean_in(a, pool), b - _mean_in(b, pool)
    variance = float((scale * b * b).sum())
    if variance <= 0:
        return 1.0
    return min(1.0, max(0.0, float((scale * a * b).sum()) / variance))


def _mean_in(values: Floats, groups: Ints) -> Floats:
    found: Floats = (np.bincount(groups, values) / np.maximum(np.bincount(groups), 1))[groups]
    return found


def _pooled(residual: Floats, frame: Frame, labelled: Ints, w: Floats) -> Floats:
    """s² of the residuals for each stratum: its pool's, with `SURPRISE` of a label that is wrong."""
    pool, strata = frame.pool[labelled], int(frame.stratum.max(initial=-1)) + 1
    pools = int(frame.pool.max(initial=-1)) + 1
    n = np.bincount(pool, minlength=pools)
    squares = np.bincount(pool, (residual - _mean_in(residual, pool)) ** 2, minlength=pools)
    drawn = frame.stratum >= 0
    typical = np.bincount(frame.pool[drawn], w[drawn], minlength=pools) / np.maximum(
        np.bincount(frame.pool[drawn], minlength=pools), 1
    )
    variance = (squares + SURPRISE * typical**2) / np.maximum(n, 1)
    of = np.zeros(strata, dtype=np.int64)
    of[frame.stratum[drawn]] = frame.pool[drawn]
    found: Floats = variance[of]
    return found


def _between_tasks(frame: Frame, w: Floats, labelled: Ints, power: float, expanded: Floats) -> float:
    """Variance of the mean over tasks of what each adds to the estimate, the tasks taken as a sample."""
    _, task = np.unique(frame.task, return_inverse=True)
    certain = np.where(frame.stratum >= 0, power, 1.0)
    tasks = int(task.max()) + 1
    z = np.bincount(task, certain * w * frame.judge, minlength=tasks)
    z += np.bincount(task[labelled], expanded, minlength=tasks)
    return float(tasks * np.var(z, ddof=1)) if tasks > 1 else math.inf


def _normal(mean: float, variance: float) -> tuple[float, float]:
    half = Z_95 * math.sqrt(variance)
    return max(0.0, mean - half), min(1.0, mean + half)
