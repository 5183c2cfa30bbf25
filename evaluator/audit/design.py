"""Which criteria people are asked about, and with what probability each was drawn: the part labellers never see."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from bench.atomic import write_json
from bench.errors import DataError, UsageError
from bench.strict_json import read_json
from evaluator.audit.frame import LEVELS, Judging
from evaluator.records import Column, Strict

FILE = "design.json"
OFTENER = 2.0
"""How much oftener a criterion is drawn where a mistake is likelier: PARTIAL, no verdict, or flagged."""
LEAST = 2
"""Labels of a stratum, where it has so many: one says nothing of how much it varies."""


class Stratum(Strict):
    """`drawn` of `size` criteria that share these traits."""

    traits: dict[str, str | bool]
    size: int
    drawn: int


class AuditedResults(Strict):
    """One judging. `folder` is relative to the design file; `level`: what its strata are made by."""

    folder: str
    journal_sha256: str
    level: list[str]
    strata: list[Stratum]


class Item(Strict):
    """One question of the page. `results` and `stratum` are positions in the lists above."""

    item: str
    results: int
    case: str
    criterion_index: int
    stratum: int
    probability: float


class Design(Strict):
    """The whole file (`cdb.audit_design/1`)."""

    schema_: Literal["cdb.audit_design/1"] = Field("cdb.audit_design/1", alias="schema")
    audit: str
    seed: int
    column: Column
    results: list[AuditedResults]
    items: list[Item]


def draw(judgings: list[Judging], column: Column, labels: int, seed: int, base: Path) -> Design:
    """Draw `labels` criteria, as many from each judging, in random order. `base`: where the file will be.

    Same arguments, same design. Raises UsageError for fewer than `LEAST` labels of a judging.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    share = [labels // len(judgings) + (n < labels % len(judgings)) for n in range(len(judgings))]
    if min(share) < LEAST:
        raise UsageError(f"--labels {labels} for {len(judgings)} results: an audit needs {LEAST} for each at least")
    audited, drawn = [], []
    for number, (judging, wanted) in enumerate(zip(judgings, share, strict=True)):
        level = _level(judging, wanted)
        strata = judging.strata(level)
        if not strata:
            raise UsageError(f"{judging.folder}: no criterion was judged on anything, so there is nothing to label")
        takes = allocate([len(p) for _, p in strata], [_weight(traits) for traits, _ in strata], wanted)
        told = [Stratum(traits=t, size=len(p), drawn=n) for (t, p), n in zip(strata, takes, strict=True)]
        folder = Path(os.path.relpath(judging.folder.resolve(), base.resolve())).as_posix()
        audited.append(
            AuditedResults(folder=folder, journal_sha256=judging.journal_sha256, level=list(level), strata=told)
        )
        for stratum, ((_, positions), take) in enumerate(zip(strata, takes, strict=True)):
            chosen = generator.choice(positions, size=take, replace=False)
            drawn += [(number, judging.criteria[p], stratum, take / len(positions)) for p in chosen.tolist()]
    width = max(3, len(str(len(drawn))))
    items = [
        Item(
            item=f"{place:0{width}d}", results=number, case=one.case.case, criterion_index=one.criterion_index,
            stratum=stratum, probability=round(probability, 9),
        )
        for place, (number, one, stratum, probability) in enumerate(
            (drawn[at] for at in generator.permutation(len(drawn))), start=1
        )
    ]  # fmt: skip
    key = json.dumps([seed, column, [a.journal_sha256 for a in audited], [i.model_dump() for i in items]])
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return Design(schema="cdb.audit_design/1", audit=name, seed=seed, column=column, results=audited, items=items)


def allocate(sizes: list[int], weights: list[float], total: int) -> list[int]:
    """Labels of each stratum: `LEAST` (or all of it), the rest by size × weight, never more than there are."""
    takes = [min(size, LEAST) for size in sizes]
    while (left := min(total, sum(sizes)) - sum(takes)) > 0:
        room = [size - take for size, take in zip(sizes, takes, strict=True)]
        wish = [size * w if r else 0.0 for size, w, r in zip(sizes, weights, room, strict=True)]
        parts = [min(r, left * one / sum(wish)) for r, one in zip(room, wish, strict=True)]
        whole = [int(part) for part in parts]
        if not any(whole):
            nearest = max(range(len(parts)), key=lambda at: (parts[at], -at))
            whole[nearest] = 1
        takes = [take + more for take, more in zip(takes, whole, strict=True)]
    return takes


def _level(judging: Judging, labels: int) -> tuple[str, ...]:
    """The finest strata of which each can have its least number of labels."""
    fits = (lv for lv in LEVELS if sum(min(LEAST, len(p)) for _, p in judging.strata(lv)) <= labels)
    return next(fits, LEVELS[-1])


def _weight(traits: dict[str, Any]) -> float:
    doubtful = traits.get("verdict") in ("PARTIAL", "none") or traits.get("flagged")
    return OFTENER if doubtful else 1.0


def write_design(design: Design, path: Path) -> None:
    write_json(path, design.model_dump(mode="json", by_alias=True))


def read_design(path: Path) -> Design:
    """Raises UsageError when there is no such file, DataError when it is no design."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist; `cdb audit sample` writes {FILE}")
    try:
        return Design.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path} is no cdb.audit_design/1 file: {error}") from error
