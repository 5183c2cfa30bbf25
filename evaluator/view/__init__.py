"""`cdb view`: the report on this machine's own address, made anew while a run goes on."""

from __future__ import annotations

from evaluator.view.live import LiveReport, find_results
from evaluator.view.server import serve

__all__ = ["LiveReport", "find_results", "serve"]
