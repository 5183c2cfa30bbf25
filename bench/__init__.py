"""What harness and evaluator agree on: release, task, submission, run record.

Knows no agent, no rubric, no container.
"""

__version__ = "0.1.0"
