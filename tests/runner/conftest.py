"""A run small enough to be killed many times: two tiny applications, an agent that is a shell line, real witnesses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = ("greeting", "farewell")


@pytest.fixture
def small_run(tmp_path: Path) -> Callable[..., Path]:
    """Writes the extracted roots, plans, witnesses and agent once, and a run's file; gives the file's path."""
    root = tmp_path / "work"
    for case in CASES:
        for side in ("solver-inputs", "evaluation-inputs"):
            folder = root / side / "cases" / case
            (folder / "project").mkdir(parents=True)
            (folder / "project" / "index.html").write_text(f"<!doctype html><title>{case}</title><h1>before</h1>")
            _write(folder / "user_queries.json", [{"text": "Change the heading to say after."}])
        _write(root / "evaluation-inputs" / "cases" / case / "rubric.json", [f"The heading of {case} says after."])
        sub = {"id": "a", "text": "the heading says after", "core": True}
        part = {"criterion_index": 1, "kind": "content", "sub_requirements": [sub]}
        _write(tmp_path / "plans" / case / "plan.json", {"case": case, "criteria": [part]})
        steps = [{"expect": "text", "target": {"role": "heading"}, "contains": "after"}]
        witness = {"schema": "cdb.witness/1", "steps": steps}
        recorded = {"case": case, "witnesses": [{"criterion_index": 1, "sub": "a", "witness": witness}]}
        _write(tmp_path / "witnesses" / case / "witnesses.json", recorded)
    for side in ("solver-inputs", "evaluation-inputs"):
        card = {
            "schema": "cdb.dataset/1", "name": "Small", "version": "1", "track": "t", "archive_sha256": "0" * 64,
            "case_ids": list(CASES), "tasks": 2, "criteria": 2,
        }  # fmt: skip
        _write(root / side / "dataset.json", card)
    agent = {"kind": "command", "name": "editor", "argv": ["sed", "-i", "s/before/after/", "index.html"]}
    (tmp_path / "editor.yaml").write_text(yaml.safe_dump(agent))

    def make(name: str, **changed: Any) -> Path:
        content: dict[str, Any] = {
            "name": name, "out": str(tmp_path / name),
            "dataset": {"root": str(root), "plans": str(tmp_path / "plans")},
            "agents": [str(tmp_path / "editor.yaml")],
            "judges": [{"model": "recorded", "witnesses": str(tmp_path / "witnesses")}],
            "preflight": False,
        }  # fmt: skip
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content | changed, sort_keys=False))
        return path

    return make


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
