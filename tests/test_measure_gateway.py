"""The gateway's measurement itself, small: its sums are right, and it notices when they are not."""

from __future__ import annotations

import pytest

from scripts.measurements import gateway


def test_the_ledger_equals_the_sum_by_hand_with_a_third_of_the_streams_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PAIRS": 2, "PAIR_CALLS": 5, "THROUGHPUT_CALLS": 100, "LEDGER_CALLS": 300}.items():
        monkeypatch.setattr(gateway, name, value)
    figures = gateway.measure()
    assert figures["ledger_error"] < 1e-6
    assert figures["rps_8"] > 0 and figures["rss_mb"] > 10 and figures["direct_ms"] > 0
    monkeypatch.setattr(gateway, "CUT_PER_CENT", 31)
    by_hand = gateway._by_hand()
    monkeypatch.setattr(gateway, "CUT_PER_CENT", 30)
    assert abs(by_hand - gateway._by_hand()) > 1e-4
