"""How much processor time `cdb --help` takes beyond a bare interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence

RUNS = 11


def measure() -> dict[str, float | dict[str, float]]:
    """`help_cpu_s`: median CPU seconds of `cdb --help` less those of `python -c pass`, runs alternating.

    `help_total_cpu_s` and `bare_cpu_s` are the two medians themselves.
    """
    helps, bares = [], []
    for _ in range(RUNS):
        bares.append(_cpu_s([sys.executable, "-c", "pass"]))
        helps.append(_cpu_s([sys.executable, "-m", "cdb", "--help"]))
    total, bare = statistics.median(helps), statistics.median(bares)
    return {
        "help_cpu_s": round(total - bare, 4),
        "help_total_cpu_s": round(total, 4),
        "bare_cpu_s": round(bare, 4),
    }


def _cpu_s(argv: Sequence[str]) -> float:
    """User and system seconds of one child process."""
    before = os.times()
    subprocess.run(argv, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system
