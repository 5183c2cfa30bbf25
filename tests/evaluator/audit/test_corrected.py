"""The corrected score: hand-computed cases, no bias from a bad judge, and the coverage its intervals state."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.audit.corrected import Frame, corrected, weights

LABELS = 200
AUDITS = 600


def test_tasks_weigh_the_same_however_many_criteria_they_have() -> None:
    w = weights(np.array([0, 0, 1, 1, 1, 1]))
    assert w.tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 8, 1 / 8, 1 / 8, 1 / 8])


def test_the_estimate_and_both_intervals_worked_out_by_hand() -> None:
    # Two tasks of two criteria, so w = ¼ each; one stratum of 4, two labels, p = ½. Judge 1 1 0 0; people say 0 of
    # the first and 0 of the third. a = w·y = (0, 0) does not vary, b = (¼, 0) does: λ = 0 and the judge is not used.
    frame = Frame(np.array([0, 0, 1, 1]), np.zeros(4, int), np.zeros(4, int), np.array([1.0, 1.0, 0.0, 0.0]))
    found = corrected(frame, np.array([0, 2]), np.array([0.0, 0.0]))
    assert (found.judge, found.mean, found.power, found.labels) == (0.5, 0.0, 0.0, 2)
    # Residuals (0, 0) and half a label wrong by ¼: s² = ½·0.25²/2; variance 4·(4-2)·s²/2.
    half = 1.959964 * (4 * 2 * (0.5 * 0.25**2 / 2) / 2) ** 0.5
    assert found.here_high == pytest.approx(half, abs=1e-6) and found.here_low == 0.0


def test_a_judge_that_is_right_where_it_was_looked_at_keeps_its_score() -> None:
    # People agree on all three labelled: λ = 1 (a = b), estimate = judge's score. Tasks of 3 and 1: w = 1/6, 1/2.
    frame = Frame(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0.5]))
    found = corrected(frame, np.array([0, 2, 3]), np.array([1.0, 0.0, 0.5]))
    assert found.power == pytest.approx(1.0)
    assert found.mean == pytest.approx(2 / 6 + 0.25) and found.judge == pytest.approx(found.mean)


def test_a_full_census_leaves_no_doubt_about_these_tasks() -> None:
    frame = Frame(np.array([0, 0, 1]), np.zeros(3, int), np.zeros(3, int), np.array([1.0, 1.0, 1.0]))
    found = corrected(frame, np.array([0, 1, 2]), np.array([1.0, 0.0, 0.0]))
    assert found.mean == pytest.approx(0.25) == found.here_low == found.here_high
    assert found.low < 0.25 < found.high  # but two tasks say little about others


def test_what_nobody_needs_to_look_at_counts_as_it_stands() -> None:
    # The first task had no application: its two criteria are certain FAILs.
    frame = Frame(
        np.array([0, 0, 1, 1]), np.array([-1, -1, 0, 0]), np.array([0, 0, 0, 0]), np.array([0, 0, 1.0, 1.0])
    )
    found = corrected(frame, np.array([2, 3]), np.array([1.0, 1.0]))
    assert found.mean == pytest.approx(0.5) == found.here_low == found.here_high


def test_a_stratum_nobody_labelled_is_an_error_and_not_a_guess() -> None:
    frame = Frame(np.array([0, 0]), np.array([0, 1]), np.array([0, 0]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="no label in 1 strata"):
        corrected(frame, np.array([0]), np.array([1.0]))


def world(generator: np.random.Generator, wrong: float, lenient: bool) -> tuple[np.ndarray, ...]:
    """96 tasks, 521 criteria: task of each, what is true, what the judge says, its attachment."""
    sizes = generator.multinomial(521 - 2 * 96, np.full(96, 1 / 96)) + 2
    task = np.repeat(np.arange(96), sizes)
    able = generator.beta(2, 2, 96)[task]
    u = generator.random(521)
    truth = np.where(u < 0.85 * able, 1.0, np.where(u < able, 0.5, 0.0))
    said = np.ones(521) if lenient else generator.choice([0.0, 0.5, 1.0], 521)
    judge = np.where(generator.random(521) < wrong, said, truth)
    return task, truth, judge, generator.integers(0, 5, 96)[task]


def drawn(generator: np.random.Generator, judge: np.ndarray, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strata by verdict and attachment, and 200 labels of them with unequal probabilities (PARTIAL twice as often)."""
    _, stratum = np.unique((2 * judge).astype(int) * 5 + kind, return_inverse=True)
    size = np.bincount(stratum)
    want = size * np.where(np.array([judge[stratum == h][0] for h in range(len(size))]) == 0.5, 2.0, 1.0)
    take = np.minimum(size, np.maximum(2, np.round(LABELS * want / want.sum()))).astype(int)
    order = np.argsort(generator.random(len(judge)) + stratum)
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    return stratum, np.concatenate([order[first[h] : first[h] + take[h]] for h in range(len(size))])


@pytest.mark.parametrize(("wrong", "lenient"), [(0.02, False), (0.06, True), (0.15, False), (0.4, True)])
def test_a_simulated_audit_of_200_labels_covers_what_it_states(wrong: float, lenient: bool) -> None:
    generator = np.random.default_rng(20)
    here = over = 0
    errors = []
    for _ in range(AUDITS):
        task, truth, judge, kind = world(generator, wrong, lenient)
        stratum, labelled = drawn(generator, judge, kind)
        found = corrected(Frame(task, stratum, (2 * judge).astype(int), judge), labelled, truth[labelled])
        true = float((weights(task) * truth).sum())
        here += found.here_low <= true <= found.here_high
        over += found.low <= 0.5 * 0.85 + 0.5 * 0.15 * 0.5 <= found.high
        errors.append(found.mean - true)
    assert abs(np.mean(errors)) < 3 * np.std(errors) / AUDITS**0.5 + 1e-3  # whatever the judge does: no bias
    assert here / AUDITS >= 0.93  # these tasks
    assert 0.93 <= over / AUDITS <= 0.985  # tasks like these
    if wrong >= 0.06:
        assert here / AUDITS <= 0.985, "too wide to be of use"
