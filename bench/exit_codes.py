"""What each verb's exit code means, as data: the help of every verb ends with it, docs/runs.md has the table."""

from __future__ import annotations

ALWAYS = {0: "done", 1: "failed", 2: "usage", 130: "interrupted (SIGINT)", 143: "stopped (SIGTERM)"}

OWN: dict[str, dict[int, str]] = {
    "dataset verify": {1: "the release is damaged"},
    "dataset extract": {1: "the release is damaged"},
    "solve": {3: "a trial is unscored: infrastructure, or stopped"},
    "prepare": {1: "a seal is broken or a rubric cannot be read"},
    "judge": {3: "a criterion has no verdict"},
    "score": {1: "the journal cannot be trusted", 3: "something is unscored"},
    "replay": {1: "the recorded verdict does not hold", 3: "the machine could not tell"},
    "compare": {1: "a journal cannot be trusted", 2: "usage, or not comparable", 3: "an entry is incomplete"},
    "export bundle": {1: "a seal is broken, or a secret would get out"},
    "import harbor": {1: "a trial's record is damaged", 3: "a trial left no submission"},
    "verify": {1: "a fault was found, or the archive is hostile", 3: "a replay could not be carried out here"},
    "audit report": {1: "a judging is not the audited one", 3: "labels are missing for a corrected score"},
    "calibrate": {2: "usage, or not the sample's edits", 3: "a criterion has no verdict"},
    "audit diff": {1: "a journal cannot be trusted", 2: "usage, or they did not judge the same thing"},
    "audit leaks": {1: "a journal cannot be trusted", 3: "a trial is FLAGGED or INCONCLUSIVE"},
    "run": {1: "a step failed", 2: "usage, or another run's folder", 3: "incomplete: something is unscored"},
    "status": {1: "a journal is damaged", 3: "a case is stuck"},
    "doctor": {1: "something is missing on this machine"},
}
"""What a verb adds to ALWAYS, or says more exactly."""


def told(verb: str) -> str:
    """One line for a verb's help."""
    codes = ALWAYS | OWN.get(verb, {})
    return "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in sorted(codes.items())) + "."
