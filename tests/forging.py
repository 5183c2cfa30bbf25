"""What a forger does after a change, so that nothing shows on the surface."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from bench.tree import list_tree, path_bytes
from evaluator.bundle.layout import BundleCard
from evaluator.bundle.write import head
from evaluator.scoring import score_files


def seal_again(folder: Path, name: str = "editor", entry: str = "editor__none__1") -> None:
    """Score anew and write a bundle.json that fits: members, digest, heads of the journals."""
    results = folder / "results" / name
    score_files(results / "cases.json", results / "journal.jsonl", results / "scores.json")
    card = json.loads((folder / "bundle.json").read_text())
    members = [entry for entry in list_tree(folder) if path_bytes(entry) != b"bundle.json"]
    one = card["results"][0]
    one["journal_sha256"] = head(results / "journal.jsonl")
    one["solve_journal_sha256"] = head(folder / "entries" / entry / "journal.jsonl")
    one["label"] = json.loads((results / "scores.json").read_text())["label"]
    one["scores_sha256"] = hashlib.sha256((results / "scores.json").read_bytes()).hexdigest()
    made = BundleCard.model_validate({**card, "members": members})
    made.digest = made.own_digest()
    (folder / "bundle.json").write_text(made.model_dump_json(by_alias=True))
