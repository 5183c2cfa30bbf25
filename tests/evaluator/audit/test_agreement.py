"""Kappa and alpha against figures worked out by hand or published, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.audit.agreement import alpha, kappa, ordinal_alpha, resampled, weighted_kappa

NOTHING = 0
KRIPPENDORFF = [  # four observers, twelve units, ranks 1 to 5, 0 for missing: Krippendorff 2011, section C
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]


def test_kappa_of_a_table_worked_out_by_hand() -> None:
    # Rows and columns FAIL, PARTIAL, PASS. Observed Σw·n = ¼·(2+1+1+2) + 1·(1+0) = 2.5.
    # Margins 10, 6, 9 and 10, 5, 10 of 25: expected = [¼(10·5 + 6·10 + 6·10 + 9·5) + (10·10 + 9·10)]/25 = 9.75.
    table = np.array([[7.0, 2.0, 1.0], [3.0, 2.0, 1.0], [0.0, 1.0, 8.0]])
    observed = (2 + 3 + 1 + 1) / 4 + 1
    expected = ((10 * 5 + 6 * 10 + 6 * 10 + 9 * 5) / 4 + 10 * 10 + 9 * 10) / 25
    assert weighted_kappa(table) == pytest.approx(1 - observed / expected)
    assert weighted_kappa(table) == pytest.approx(0.717949, abs=1e-6)


def test_alpha_of_the_published_example() -> None:
    ratings = np.array(KRIPPENDORFF)
    counts = np.stack([(ratings == rank).sum(axis=0) for rank in range(1, 6)], axis=1)
    found = alpha(counts, seed=1)
    assert found.value == pytest.approx(0.815, abs=5e-4)
    assert found.items == 11  # the last unit has one rating: nothing to agree with
    assert found.low is not None and found.high is not None and found.low < 0.815 < found.high


def test_alpha_of_two_raters_worked_out_by_hand() -> None:
    # Three items rated (0,0), (2,2), (0,1): coincidences 00:2, 22:2, 01:1, 10:1; values 3, 1, 2 of 6.
    # Middles 1.5, 3.5, 5: distances 01: 4, 02: 12.25, 12: 2.25. D_o = 2·4 = 8;
    # D_e = 2·(3·1·4 + 3·2·12.25 + 1·2·2.25)/5 = 36. Alpha = 1 - 8/36.
    counts = np.array([[2, 0, 0], [0, 0, 2], [1, 1, 0]])
    assert alpha(counts, seed=1).value == pytest.approx(1 - 8 / 36)


def test_nothing_to_disagree_about_is_undefined_and_not_perfect() -> None:
    same = np.full(20, 2)
    found = kappa(same, same, 3, seed=1)
    assert found.value is None and found.same == 1.0 and found.items == 20
    assert np.isnan(ordinal_alpha(np.diag([0.0, 0.0, 40.0])))
    assert kappa(np.zeros(0, int), np.zeros(0, int), 3, seed=1).items == NOTHING


def test_weights_make_the_coefficient_that_of_the_frame() -> None:
    first, second = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 2, 0])
    times = np.array([1, 3, 2, 1, 2])
    repeated = kappa(np.repeat(first, times), np.repeat(second, times), 3, seed=1)
    weighted = kappa(first, second, 3, seed=1, weights=times.astype(float))
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.value != pytest.approx(kappa(first, second, 3, seed=1).value)


def test_items_are_resampled_within_their_stratum_and_the_same_way_again() -> None:
    strata = np.array([0, 0, 0, 1, 1, 2])
    draws = resampled(strata, seed=4, resamples=50)
    assert (draws[:, :3].sum(axis=1) == 3).all() and (draws[:, 3:5].sum(axis=1) == 2).all()
    assert (draws[:, 5] == 1).all() and len(np.unique(draws[:, 0])) > 1
    assert (draws == resampled(strata, seed=4, resamples=50)).all()


def test_intervals_of_kappa_cover_what_they_say() -> None:
    generator = np.random.default_rng(8)
    joint = np.array([[0.30, 0.03, 0.02], [0.04, 0.08, 0.05], [0.02, 0.04, 0.42]])
    true = float(weighted_kappa(joint))
    inside = 0
    for seed in range(120):
        pairs = generator.choice(9, size=200, p=joint.ravel())
        found = kappa(pairs // 3, pairs % 3, 3, seed=seed)
        assert found.low is not None and found.high is not None
        inside += found.low <= true <= found.high
    assert 0.90 <= inside / 120 <= 0.99
