"""Numbers and dates are read from texts as people write them."""

from __future__ import annotations

from datetime import datetime

import pytest

from evaluator.replay.readings import amount, first_date, first_number, number_fits
from evaluator.witness.parts import NumberCheck


@pytest.mark.parametrize(
    "text, number",
    [
        ("3 guests", 3),
        ("Total: $1,234.50", 1234.5),
        ("1.234,50 €", 1234.5),
        ("12,5 %", 12.5),
        ("1'000'000 CHF", 1_000_000),
        ("12\u00a0345", 12345),
        ("-3 °C", -3),
        ("\u22124.5", -4.5),
        ("-$5.00", -5),
        ("5-3", 5),
        ("h2 3 items", 3),
        ("Q4", 4),
        (".5 l", 0.5),
        ("1, 2, 3", 1),
        ("Room 2 300 guests", 2),
        ("none", None),
        ("", None),
    ],
)
def test_the_first_number_of_a_text(text, number):
    assert first_number(text) == number


@pytest.mark.parametrize(
    "value, number",
    [
        (3, 3),
        ("3", 3),
        ("3 + 1", 4),
        ("-3 + 1.5", -1.5),
        ("10 - 2 - 3", 5),
        ("5 - -2", 7),
        ("3 * 2 + 1", 7),
        ("2 * (3 + 1) / 4", 2),
        ("-(2 + 1)", -3),
    ],
)
def test_sums_of_numbers(value, number):
    assert amount(value) == number


@pytest.mark.parametrize(
    "value", ["", "abc", "3 +", "3 * * 2", "(1 + 2", "1 / 0", "2 ** 3", "__import__", "(" * 5000 + "1" + ")" * 5000]
)
def test_anything_else_is_no_number(value):
    with pytest.raises(ValueError):
        amount(value)


def test_number_checks_allow_for_binary_fractions_and_tolerance():
    assert number_fits(0.1 + 0.2, NumberCheck(equals=0.3))
    assert not number_fits(0.31, NumberCheck(equals=0.3))
    assert number_fits(31, NumberCheck(equals=30, tolerance=1))
    assert not number_fits(4.99, NumberCheck(at_least=5, at_most=6))
    assert number_fits(5, NumberCheck(at_least="4 + 1", at_most=6))


@pytest.mark.parametrize(
    "text, date",
    [
        ("due 2026-03-14", datetime(2026, 3, 14)),
        ("2026-03-14T09:30", datetime(2026, 3, 14, 9, 30)),
        ("3/14/2026", datetime(2026, 3, 14)),
        ("14.3.2026", datetime(2026, 3, 14)),
        ("Sat, 14 Mar 2026", datetime(2026, 3, 14)),
        ("March 14th, 2026", datetime(2026, 3, 14)),
        ("Mar 14", datetime(2000, 3, 14)),
        ("2026-02-31 x", None),
        ("soon", None),
    ],
)
def test_the_first_date_of_a_text(text, date):
    assert first_date(text) == date
