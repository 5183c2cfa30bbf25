"""Runs a witness on an application in a real browser and says whether it held, and if not, why not."""

from __future__ import annotations

from evaluator.replay.run import RUN_S, TIME_OVER, run_witness

__all__ = ["RUN_S", "TIME_OVER", "run_witness"]
