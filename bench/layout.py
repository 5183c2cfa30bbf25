"""Where things lie in a release and in what is extracted from it, after the dataset card."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

SOLVER_ARCHIVE = "solve_norubric.tar.gz"
EVALUATION_ARCHIVE = "eval_withrubric.tar.gz"
CHECKSUMS = "SHA256SUMS"
MANIFEST = "manifest.json"
SOLVER_ROOT = "solver-inputs"
EVALUATION_ROOT = "evaluation-inputs"
DATASET_CARD = "dataset.json"
"""Written beside `cases/` by extraction: name, version, case ids and counts, so that a run knows its scope."""
CASES = "cases"
QUERIES = "user_queries.json"
PROJECT = "project"
ANNOTATIONS = "_annotations"
ATTACHMENTS = "_attachments"


@dataclass(frozen=True)
class Release:
    """A release folder whose manifest was read. `case_ids` in the manifest's order."""

    folder: Path
    name: str
    version: str
    track: str
    case_ids: tuple[str, ...]
    criteria: int | None
    """How many criteria the manifest declares; None when it does not say."""
    sha256: dict[str, str] = field(default_factory=dict)
    """Checksums that the manifest itself gives, by file name."""
