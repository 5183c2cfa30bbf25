"""Verdicts a person has overruled: a file beside the journal, with author and reason; the raw verdict is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from bench.errors import UsageError
from bench.yaml_file import read_yaml
from evaluator.records import COLUMNS, Strict, Verdict
from evaluator.verdicts import CODES, VerdictTable


class Override(Strict):
    """One verdict overruled in all three columns."""

    case: str
    criterion_index: int = Field(ge=1)
    attempt: int = Field(1, ge=1)
    verdict: Verdict
    author: str = Field(min_length=1)
    reason: str = Field(min_length=1)


class Overrides(Strict):
    """The whole file, YAML or JSON."""

    overrides: list[Override]


def read_overrides(path: Path) -> list[Override]:
    """Raises UsageError naming what is wrong: an unknown key, a missing author or reason, one criterion twice."""
    if not path.is_file():
        raise UsageError(f"{path} does not exist; --overrides wants a YAML file (docs/records.md)")
    try:
        found = Overrides.model_validate(read_yaml(path)).overrides
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors()]
        raise UsageError(f"{path}: {'; '.join(faults)}") from error
    seen: set[tuple[str, int, int]] = set()
    for override in found:
        key = (override.case, override.criterion_index, override.attempt)
        if key in seen:
            raise UsageError(f"{path}: {override.case} criterion {override.criterion_index} is overruled twice")
        seen.add(key)
    return found


def apply_overrides(table: VerdictTable, overrides: list[Override]) -> list[dict[str, Any]]:
    """Put the overruling verdicts into `table`; gives what scores.json says of each, with the raw verdicts.

    Raises UsageError for a criterion or attempt that is not there.
    """
    said = []
    places = {key: place for place, key in enumerate(table.index.keys)}
    for override in overrides:
        key = (override.case, override.criterion_index)
        if key not in places or override.attempt not in table.attempts:
            raise UsageError(
                f"an override is about {override.case} criterion {override.criterion_index}, "
                f"attempt {override.attempt}, which these cases do not have"
            )
        place = (table.attempts.index(override.attempt), places[key])
        said.append({**override.model_dump(), "raw": {column: table.verdict(place, column) for column in COLUMNS}})
        table.codes[:, place[0], place[1]] = CODES[override.verdict]
        table.seen[place] = True
        table.trouble.pop(place, None)
        table.parts.pop(place, None)
    return said
