"""A step of a witness in one plain English sentence that a person could follow by hand."""

from __future__ import annotations

from evaluator.witness.actions import Action
from evaluator.witness.checks import Check, Polled
from evaluator.witness.describe_action import describe_action
from evaluator.witness.describe_check import describe_check
from evaluator.witness.nouns import describe_target

__all__ = ["describe", "describe_target"]


def describe(step: Action | Check) -> str:
    """The step as a sentence without its full stop, for example: Click the button “Add”."""
    return describe_check(step) if isinstance(step, Polled) else describe_action(step)
