"""Where things lie in a bundle, which parts are applications (links may lie there alone), and its `bundle.json`."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import Field

from bench import __version__
from bench.archive_rules import Caps
from evaluator.records import Strict

SCHEMA: Literal["cdb.bundle/1"] = "cdb.bundle/1"
MADE_BY = f"cdb {__version__}"
CARD = "bundle.json"
README = "README.md"
RESULTS, ENTRIES, START = "results", "entries", "start"
RESULT_FILES = ("lock.json", "journal.jsonl", "cases.json", "scores.json", "run_card.md", "spend.json")
CAPS = Caps(file_bytes=64 * 1024**3)

_TREES = {(ENTRIES, "submissions"): 4, (RESULTS, "built"): 4}
"""First and third part of a path → how many parts name the application's folder."""


def tree_of(path: str) -> str | None:
    """The application's folder that a path of a bundle lies in, else None."""
    parts = path.split("/")
    if parts[0] == START:
        depth = 3 if len(parts) > 3 and parts[2] == "project" else 0
    else:
        depth = _TREES.get((parts[0], parts[2]), 0) if len(parts) > 4 else 0
    return "/".join(parts[:depth]) if depth else None


class ResultCard(Strict):
    """One judging in the bundle. `journal_sha256`: hash of its journal's last line, the chain's head."""

    name: str
    entry: str | None
    """The solve entry's name in the bundle; None where the submissions lie in several places."""
    label: str
    journal_sha256: str
    solve_journal_sha256: str | None
    scores_sha256: str


class BundleCard(Strict):
    """The whole of bundle.json. `members` is the canonical list (cdb.tree/1) of everything but bundle.json itself."""

    def own_digest(self) -> str:
        """sha256 over all else in here, as JSON with sorted keys and no white space: so over the whole bundle."""
        told = self.model_dump(mode="json", by_alias=True, exclude={"digest"})
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()

    schema_: Literal["cdb.bundle/1"] = Field(SCHEMA, alias="schema")
    digest: str
    """The one number to publish beside a result: `own_digest`."""
    made_by: str
    results: list[ResultCard]
    holds: dict[str, bool]
    """`start`, `built`, `trajectories`: whether each is in."""
    left_out: list[dict[str, str]]
    """`what` is not in, and `why`."""
    redacted: list[str]
    """Paths of texts of ours from which secrets were taken."""
    members: list[dict[str, Any]]
