"""Comparing entries over the same tasks: paired statistics, and a refusal where a comparison would mean nothing."""

from evaluator.compare.compare import compare
from evaluator.compare.words import lines

__all__ = ["compare", "lines"]
