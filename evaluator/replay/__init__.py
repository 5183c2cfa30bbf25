"""Runs a witness on an application in a real browser and says whether it held, and if not, why not."""

from __future__ import annotations

from evaluator.replay.run import run_witness

__all__ = ["run_witness"]
