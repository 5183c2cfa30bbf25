"""Which tasks a run is about: every one of the release, or a declared subset chosen the same way each time."""

from __future__ import annotations

import random

from bench.errors import UsageError
from bench.task import Dataset, open_dataset
from evaluator.attachments import primary_kind
from runner.config import DatasetPart


def choose(part: DatasetPart) -> tuple[Dataset, list[str]]:
    """The dataset in scope, and the case ids for `--only`; an empty list means all of it.

    In this order: `only`, `attachment` (primary kind), `limit` (the first ones, or drawn by `seed`), `shard` (every
    N-th). Raises UsageError when nothing is left.
    """
    if part.release is None and not (part.root / "solver-inputs" / "cases").is_dir():
        raise UsageError(
            f"dataset.root: {part.root} holds no solver-inputs/; extract a release there with "
            f"`cdb dataset extract RELEASE --out {part.root}`, or name it as dataset.release"
        )
    whole = open_dataset(part.root / "solver-inputs", part.only)
    chosen = [t for t in whole.tasks if not part.attachment or primary_kind(t.attachments) in part.attachment]
    if part.limit and part.limit < len(chosen):
        drawn = chosen if part.seed is None else random.Random(part.seed).sample(chosen, len(chosen))
        kept = {task.case_id for task in drawn[: part.limit]}
        chosen = [task for task in chosen if task.case_id in kept]
    if part.shard:
        number, parts = map(int, part.shard.split("/"))
        chosen = chosen[number - 1 :: parts]
    if not chosen:
        raise UsageError("dataset: only, attachment, limit and shard together leave no task; loosen one of them")
    ids = [task.case_id for task in chosen]
    if len(ids) == len(whole.declared):
        return whole, []
    return open_dataset(part.root / "solver-inputs", ids), ids
