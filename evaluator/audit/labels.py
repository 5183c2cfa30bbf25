"""The files labellers send back."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from bench.errors import DataError, UsageError
from bench.strict_json import read_json
from evaluator.audit.design import Design
from evaluator.records import Strict, Verdict


class Label(Strict):
    """One answer. UNSURE: the labeller could not tell, which counts as no label."""

    verdict: Verdict | Literal["UNSURE"]
    note: str = ""
    seconds: float = 0.0


class Labels(Strict):
    """The whole file (`cdb.audit_labels/1`)."""

    schema_: Literal["cdb.audit_labels/1"] = Field("cdb.audit_labels/1", alias="schema")
    audit: str
    labeller: str = Field(min_length=1, max_length=200)
    saved_at: str = ""
    labels: dict[str, Label]


def read_labels(paths: list[Path], design: Design) -> list[Labels]:
    """Raises UsageError for a file of another audit or a labeller twice, DataError for one that is no such file."""
    if not paths:
        raise UsageError("give at least one file of labels; the page's “Save” makes it")
    known = {item.item for item in design.items}
    found: dict[str, Labels] = {}
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path} does not exist; give the file that the page's “Save” made")
        try:
            labels = Labels.model_validate(read_json(path))
        except ValidationError as error:
            raise DataError(f"{path} is no cdb.audit_labels/1 file: {error}") from error
        if labels.audit != design.audit:
            raise UsageError(
                f"{path} is of audit {labels.audit}, the design of {design.audit}; give the ones that fit"
            )
        if unknown := sorted(labels.labels.keys() - known):
            raise DataError(f"{path}: there is no item {unknown[0]!r} in this audit; was the file edited?")
        if labels.labeller in found:
            raise UsageError(f"{path}: a second file of labeller {labels.labeller!r}; give each labeller's last one")
        found[labels.labeller] = labels
    return list(found.values())
