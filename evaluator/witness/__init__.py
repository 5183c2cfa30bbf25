"""The witness language: a small JSON program of user actions and checks, with no script in it.

`docs/witness.md` is its reference. This package only reads, describes and hashes witnesses and opens no
browser; `evaluator.replay` runs them.
"""

from __future__ import annotations

from evaluator.witness.actions import Action
from evaluator.witness.checks import Check
from evaluator.witness.describe import describe, describe_target
from evaluator.witness.program import Step, Viewport, Witness, WitnessError, load_witness, witness_schema
from evaluator.witness.targets import Target

__all__ = [
    "Action",
    "Check",
    "Step",
    "Target",
    "Viewport",
    "Witness",
    "WitnessError",
    "describe",
    "describe_target",
    "load_witness",
    "witness_schema",
]
