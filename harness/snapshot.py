"""Which parts of a workspace are not part of the application an agent leaves."""

from __future__ import annotations

from pathlib import PurePosixPath

from bench.task import Task
from sandboxes.sandbox import TreePolicy

LEAVE_OUT = frozenset(
    {
        ".git",
        "node_modules",
        ".npm",
        ".pnpm-store",
        ".cache",
        ".parcel-cache",
        ".turbo",
        ".vite",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".venv",
    }
)
"""Folder names left out of a snapshot wherever the start did not have them; published in docs/protocol.md."""


def snapshot_policy(task: Task) -> TreePolicy:
    """Caps and left-out names for one task. What the start shipped under such a name is kept (never `.git`)."""
    kept = set()
    for entry in task.start_entries:
        parts = PurePosixPath(str(entry.get("path", ""))).parts
        for depth, part in enumerate(parts[:-1], start=1):
            if part in LEAVE_OUT and part != ".git":
                kept.add("/".join(parts[:depth]))
    return TreePolicy(leave_out=LEAVE_OUT, keep=frozenset(kept))
