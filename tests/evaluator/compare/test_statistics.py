"""Every statistic against scipy or statsmodels, and every metric against a naive second implementation."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from evaluator.attempts import pass_at_k, pass_hat_k, variance_split
from evaluator.compare.statistics import difference, holm, mcnemar_mid_p, sign_flip, smallest_detectable
from evaluator.intervals import bootstrap_mean, nested_bootstrap, wilson

fractions = st.sampled_from([0.0, 0.2, 0.25, 1 / 3, 0.5, 2 / 3, 0.75, 1.0])


def drawn(n: int, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.choice([0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0]) for _ in range(n)]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 96), st.integers(1, 96))
def test_wilson_is_statsmodels_wilson(successes: int, n: int) -> None:
    successes = min(successes, n)
    low, high = proportion_confint(successes, n, method="wilson")
    found = wilson(successes, n)
    assert (found.low, found.high) == pytest.approx((max(0.0, low), min(1.0, high)), abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels_holm(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_mid_p_is_the_exact_test_less_half_a_point_on_each_side(b: int, c: int) -> None:
    n, least = b + c, min(b, c)
    if n == 0:
        assert mcnemar_mid_p(b, c) == 1.0
        return
    exact = scipy.stats.binomtest(least, n, 0.5).pvalue
    expected = 1.0 if b == c else exact - scipy.stats.binom.pmf(least, n, 0.5)
    assert mcnemar_mid_p(b, c) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from([-1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=10))
def test_sign_flip_is_exact_for_few_tasks(differences: list[float]) -> None:
    sums = [
        abs(math.fsum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    bar = abs(math.fsum(differences)) - 1e-9
    assert sign_flip(differences, seed=0) == pytest.approx(sum(s >= bar for s in sums) / len(sums))


def test_sign_flip_with_many_tasks_agrees_with_scipys_permutation_test() -> None:
    a, b = np.array(drawn(60, 1)), np.array(drawn(60, 2))
    expected = scipy.stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True,
        n_resamples=50_000, rng=np.random.default_rng(5),
    ).pvalue  # fmt: skip
    assert sign_flip(list(a - b), seed=0) == pytest.approx(expected, abs=0.01)


def test_the_bootstrap_over_tasks_agrees_with_scipys() -> None:
    values = drawn(96)
    expected = scipy.stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(3)
    ).confidence_interval
    found = bootstrap_mean(values, seed=0)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.004)
    assert found.mean == pytest.approx(np.mean(values))


def test_a_difference_is_bootstrapped_in_pairs() -> None:
    a = drawn(80)
    shifted = [value - 0.1 for value in a]
    found = difference(a, shifted, seed=0)
    assert (found.mean, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))


def test_the_nested_bootstrap_agrees_with_a_naive_one() -> None:
    chance = np.random.default_rng(2)
    tasks = [[float(chance.random() < share) for _ in range(3)] for share in chance.random(30)]
    means = []
    for _ in range(6000):
        picks = chance.integers(0, len(tasks), len(tasks))
        means.append(np.mean([np.mean(chance.choice(tasks[p], 3)) for p in picks]))
    found = nested_bootstrap(tasks, seed=0)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.015)
    assert found.mean == pytest.approx(np.mean([np.mean(task) for task in tasks]))


def test_the_smallest_detectable_difference_has_80_percent_power() -> None:
    chance = np.random.default_rng(4)
    differences = chance.normal(0, 0.3, 96)
    smallest = smallest_detectable(list(differences))
    assert smallest is not None
    spread = differences.std(ddof=1)
    samples = chance.normal(smallest, spread, (20_000, 96))
    z = samples.mean(axis=1) / (spread / math.sqrt(96))
    assert float((np.abs(z) > scipy.stats.norm.ppf(0.975)).mean()) == pytest.approx(0.8, abs=0.01)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_pass_at_k_and_pass_hat_k_count_every_choice_of_k_attempts(successes: list[bool], k: int) -> None:
    k = min(k, len(successes))
    chosen = list(itertools.combinations(successes, k))
    c, n = sum(successes), len(successes)
    assert pass_at_k(c, n, k) == pytest.approx(sum(any(some) for some in chosen) / len(chosen))
    assert pass_hat_k(c, n, k) == pytest.approx(sum(all(some) for some in chosen) / len(chosen))


def test_k_beyond_the_attempts_is_refused() -> None:
    for k in (0, 4):
        with pytest.raises(ValueError, match="k is"):
            pass_at_k(1, 3, k)


def test_the_variance_split_finds_the_variances_data_were_made_with() -> None:
    chance = np.random.default_rng(0)
    tasks = []
    for _ in range(4000):
        task = chance.normal(0, 3)
        attempts = [task + chance.normal(0, 2) for _ in range(3)]
        tasks.append([[attempt + chance.normal(0, 1) for _ in range(2)] for attempt in attempts])
    split = variance_split(tasks)
    assert (split.task, split.attempt, split.judge) == pytest.approx((9, 4, 1), rel=0.08)


def test_the_variance_split_is_the_textbook_one_when_balanced() -> None:
    chance = np.random.default_rng(1)
    data = chance.normal(size=(7, 4, 3)) + chance.normal(size=(7, 4, 1)) + 2 * chance.normal(size=(7, 1, 1))
    ms_judge = data.var(axis=2, ddof=1).mean()
    ms_attempt = 3 * data.mean(axis=2).var(axis=1, ddof=1).mean()
    ms_task = 12 * data.mean(axis=(1, 2)).var(ddof=1)
    split = variance_split(data.tolist())
    expected = ((ms_task - ms_attempt) / 12, (ms_attempt - ms_judge) / 3, ms_judge)
    assert (split.task, split.attempt, split.judge) == pytest.approx(expected)


def test_a_source_that_was_never_repeated_has_no_variance() -> None:
    assert variance_split([[[0.0]], [[1.0]]]) == (pytest.approx(0.5), None, None)
    assert variance_split([[[0.0], [1.0]]]) == (None, None, None)
