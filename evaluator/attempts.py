"""What several attempts at the same tasks say: pass@k, pass^k, and where the variance comes from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


def pass_at_k(successes: int, attempts: int, k: int) -> float:
    """Chance that at least one of k attempts succeeds: 1 - C(n-c, k)/C(n, k), unbiased (Chen et al. 2021).

    Raises ValueError unless 1 ≤ k ≤ attempts.
    """
    _check(attempts, k)
    return 1.0 - _share(attempts - successes, attempts, k)


def pass_hat_k(successes: int, attempts: int, k: int) -> float:
    """pass^k, the chance that all of k attempts succeed: C(c, k)/C(n, k) (Yao et al. 2024, tau-bench).

    Raises ValueError unless 1 ≤ k ≤ attempts.
    """
    _check(attempts, k)
    return _share(successes, attempts, k)


def _share(of: int, n: int, k: int) -> float:
    """C(of, k)/C(n, k) as a product: exact enough, and no number overflows with thousands of attempts."""
    return math.prod((of - i) / (n - i) for i in range(k)) if of >= k else 0.0


def _check(attempts: int, k: int) -> None:
    if not 1 <= k <= attempts:
        raise ValueError(f"k is {k}; with {attempts} attempts it lies between 1 and {attempts}")


class VarianceSplit(NamedTuple):
    """Variance of one score (a task's value in one judging of one attempt), by source; None: cannot be told."""

    task: float | None
    attempt: float | None
    judge: float | None


def variance_split(tasks: Sequence[Sequence[Sequence[float]]]) -> VarianceSplit:
    """Nested random-effects analysis of variance: judgings within attempts within tasks, numbers may differ.

    `tasks[t][a][j]`: the value of task t in judging j of its attempt a. Moment estimators from the sums of squares
    of the hierarchy (Searle, Casella & McCulloch 1992, section 3.6), negative ones set to 0. A source of which no
    task has two levels is None; with one judging each, `attempt` holds both.
    """
    n_t, n_a = [sum(map(len, t)) for t in tasks], [len(a) for t in tasks for a in t]
    total, attempts = sum(n_t), len(n_a)
    if len(tasks) < 2:
        return VarianceSplit(None, None, None)
    grand = _mean([v for t in tasks for a in t for v in a])
    task_means = [_mean([v for a in t for v in a]) for t in tasks]
    attempt_means = [[_mean(a) for a in t] for t in tasks]
    ss_judge = math.fsum(
        (v - m) ** 2
        for t, ms in zip(tasks, attempt_means, strict=True)
        for a, m in zip(t, ms, strict=True)
        for v in a
    )
    ss_attempt = math.fsum(
        len(a) * (m - tm) ** 2
        for t, ms, tm in zip(tasks, attempt_means, task_means, strict=True)
        for a, m in zip(t, ms, strict=True)
    )
    ss_task = math.fsum(n * (m - grand) ** 2 for n, m in zip(n_t, task_means, strict=True))
    judge = ss_judge / (total - attempts) if total > attempts else None
    residual = judge or 0.0
    within = math.fsum(sum(len(a) ** 2 for a in t) / n for t, n in zip(tasks, n_t, strict=True))
    attempt = None
    if attempts > len(tasks):
        k1 = (total - within) / (attempts - len(tasks))
        attempt = max(0.0, (ss_attempt / (attempts - len(tasks)) - residual) / k1)
    k2 = (within - math.fsum(n * n for n in n_a) / total) / (len(tasks) - 1)
    k3 = (total - math.fsum(n * n for n in n_t) / total) / (len(tasks) - 1)
    task = max(0.0, (ss_task / (len(tasks) - 1) - residual - k2 * (attempt or 0.0)) / k3)
    return VarianceSplit(task, attempt, judge)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
