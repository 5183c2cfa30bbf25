"""What of a workspace is the application an agent leaves: one policy for containers and for trees made elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.submission import LeftOut
from bench.task import VERSION_CONTROL
from bench.tree import Entry, path_bytes, printable
from sandboxes.sandbox import LeftOutPart, Refused, TreePolicy, TreeReport
from sandboxes.tree_references import referred

LEAVE_OUT = frozenset(
    {
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
MAX_LISTED = 1000
"""Of each list in a manifest; what is beyond is counted."""
_ROUNDS = 3
"""What is kept for a reference may refer to more; nothing real goes further."""

Copy = Callable[[Path, TreePolicy], TreeReport]


def snapshot(copy: Copy, target: Path, start: Sequence[Entry]) -> TreeReport:
    """Copy an application to `target`, which must not exist, by the snapshot policy.

    `copy` makes the copy under a policy, the same every time. It is asked again when files that are no part of
    `start` refer to what was left out. Raises TreeTooLarge when a cap is passed.
    """
    policy = snapshot_policy(start)
    report = copy(target, policy)
    for _ in range(_ROUNDS):
        wanted = referred(target, report, start, LEAVE_OUT) - policy.keep
        if not wanted:
            break
        shutil.rmtree(target)
        policy = replace(policy, keep=policy.keep | wanted)
        report = copy(target, policy)
    return report


def snapshot_policy(start: Sequence[Entry]) -> TreePolicy:
    """Caps and left-out names for one task. What the start shipped under such a name is kept (never `.git`), and no
    cap is below what the start itself has."""
    paths = [path_bytes(entry).decode("utf-8", "surrogateescape") for entry in start]
    kept = set()
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts[:-1], start=1):
            if part in LEAVE_OUT:
                kept.add("/".join(parts[:depth]))
    sizes = [int(entry.get("size", 0)) for entry in start]
    least = TreePolicy()
    return TreePolicy(
        max_bytes=max(least.max_bytes, 2 * sum(sizes)),
        max_file_bytes=max([least.max_file_bytes, *sizes]),
        max_files=max(least.max_files, 2 * len(paths)),
        max_path_bytes=max([least.max_path_bytes, *(len(path_bytes(entry)) for entry in start)]),
        max_depth=max([least.max_depth, *(path.count("/") + 1 for path in paths)]),
        leave_out=LEAVE_OUT,
        keep=frozenset(kept),
        never=frozenset({VERSION_CONTROL}),
        list_sockets=True,
    )


def manifest_fields(report: TreeReport) -> dict[str, Any]:
    """What a submission's manifest says of the copy: everything that is not there as it was."""
    lists: dict[str, Sequence[Refused | LeftOutPart]] = {
        "left_out": report.left_out,
        "refused": report.refused,
        "altered": report.altered,
    }
    beyond = {name: len(nodes) - MAX_LISTED for name, nodes in lists.items() if len(nodes) > MAX_LISTED}
    return {
        **{name: [_left_out(node) for node in nodes[:MAX_LISTED]] for name, nodes in lists.items()},
        "unlisted": beyond,
    }


def _left_out(node: Refused | LeftOutPart) -> LeftOut:
    counts = {"files": node.files, "bytes": node.bytes} if isinstance(node, LeftOutPart) else {}
    return LeftOut(path=printable(node.path), reason=printable(node.reason), **counts)
