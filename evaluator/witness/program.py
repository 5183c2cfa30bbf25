"""A whole witness: reading it with errors people can act on, putting inputs into it, its digest and schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from bench.errors import DataError
from evaluator.witness.actions import Action, PagePath, Remember
from evaluator.witness.checks import Check, StartCheck
from evaluator.witness.parts import MADE, PLACEHOLDER, Part, Text
from evaluator.witness.refusals import explain

SCHEMA = "cdb.witness/1"
MAX_STEPS = 40
_PATTERN_FIELDS = frozenset({"matches", "name_matches", "content_matches"})


class WitnessError(DataError):
    """A witness is not in the language. The message names the step and the field and lists what is allowed."""


def _kind(step: object) -> str | None:
    """Which half of the language a step belongs to; None when it says neither or both."""
    given = [k for k in ("do", "expect") if (k in step if isinstance(step, dict) else hasattr(step, k))]
    return given[0] if len(given) == 1 else None


Step = Annotated[Annotated[Action, Tag("do")] | Annotated[Check, Tag("expect")], Discriminator(_kind)]
InputName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,40}$")]
Inputs = dict[InputName, Text]


class Viewport(Part):
    """The window's inner size in CSS pixels."""

    width: int = Field(default=1280, ge=200, le=2000)
    height: int = Field(default=800, ge=200, le=2000)


class Witness(Part):
    """A program of at most 40 steps, at least one of them a check, that opens `path` first."""

    schema_: Literal["cdb.witness/1"] = Field(alias="schema")
    path: PagePath = "/"
    viewport: Viewport = Viewport()
    inputs: Inputs = Field(default_factory=dict)
    vary: list[Inputs] = Field(default_factory=list, max_length=4)
    steps: list[Step] = Field(min_length=1, max_length=MAX_STEPS)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not any(hasattr(step, "expect") for step in self.steps):
            raise ValueError('needs at least one check (a step with "expect")')
        for i, other in enumerate(self.vary, 1):
            if not other or not other.keys() <= self.inputs.keys():
                allowed = ", ".join(self.inputs) or "none, as inputs is empty"
                raise ValueError(f"vary {i} must give new values for some of the inputs ({allowed})")
        for value in [v for inputs in (self.inputs, *self.vary) for v in inputs.values()]:
            if "${" in value:
                raise ValueError(f"the value of an input may not hold a ${{placeholder}} itself: {value!r}")
        self._check_placeholders()
        return self

    def _check_placeholders(self) -> None:
        """Every `${name}` is an input or was remembered by an earlier step."""
        known = set(self.inputs)
        for number, step in enumerate(self.steps, 1):
            for name in _placeholders(step.model_dump(mode="json")):
                if name not in known:
                    raise ValueError(
                        f"step {number}: ${{{name}}} is neither an input nor remembered by an earlier step; "
                        f"known here: {', '.join(sorted(known)) or 'none'}"
                    )
            for remember in _remembers(step):
                if remember.as_ in self.inputs:
                    raise ValueError(f'step {number}: "as": {remember.as_!r} is already the name of an input')
                sides = ("x", "y", "width", "height") if remember.what == "box" else ()
                known.update([f"{remember.as_}.{side}" for side in sides] or [remember.as_])

    @property
    def advances_clock(self) -> bool:
        """True when any step moves the page's clock, nested ones included."""
        return any('"do":"clock"' in step.model_dump_json() for step in self.steps)

    @property
    def compares_with_start(self) -> bool:
        """True when a check looks at what the start application shows at the same step."""
        return any(isinstance(step, StartCheck) for step in self.steps)

    def digest(self) -> str:
        """sha256 in hex of the witness's canonical JSON; defaults written out or left out make no difference."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def with_inputs(self, inputs: Mapping[str, str] | None = None) -> Witness:
        """The witness with `inputs`, over its own, put in place of every `${name}`; what is remembered stays.

        Raises WitnessError when a name is unknown or a value does not fit where it is used."""
        given = dict(inputs or {})
        if unknown := given.keys() - self.inputs.keys():
            allowed = ", ".join(self.inputs) or "none"
            raise WitnessError(f"unknown input {', '.join(sorted(unknown))}; this witness has: {allowed}")
        values = self.inputs | given
        content = self.model_dump(mode="json", exclude_defaults=True)
        content |= {"path": fill_in(self.path, values), "inputs": values, "vary": []}
        content["steps"] = fill_in(content["steps"], values)
        return load_witness(content)


def load_witness(source: Path | str | bytes | Mapping[str, Any]) -> Witness:
    """A witness from a file, from JSON text, or from what JSON text held. Raises WitnessError."""
    try:
        content = (
            json.loads(source.read_bytes() if isinstance(source, Path) else source)
            if isinstance(source, Path | str | bytes)
            else source
        )
    except (OSError, ValueError) as error:
        raise WitnessError(f"a witness is JSON text: {error}") from None
    if not isinstance(content, Mapping):
        raise WitnessError(f'a witness is a JSON object that starts {{"schema":"{SCHEMA}"; got {content!r:.80}')
    try:
        return Witness.model_validate(dict(content))
    except ValidationError as error:
        raise WitnessError(explain(error, content)) from None


def witness_schema() -> dict[str, Any]:
    """The language as JSON Schema (draft 2020-12)."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Witness.model_json_schema()}


def fill_in(value: Any, values: Mapping[str, str], *, field: str = "") -> Any:
    """`value` (as JSON holds it) with each `${name}` and `${name|word}` of `values` replaced, at any depth.

    In patterns the value is taken literally. Unknown names are left alone."""
    if isinstance(value, str):
        literal = field in _PATTERN_FIELDS

        def put(match: re.Match[str]) -> str:
            known = values.get(match[1])
            if known is None:
                return match[0]
            made = MADE[match[2]](known) if match[2] else known
            return re.escape(made) if literal else made

        return PLACEHOLDER.sub(put, value)
    if isinstance(value, dict):
        return {key: fill_in(inner, values, field=key) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_in(inner, values, field=field) for inner in value]
    return value


def _placeholders(value: Any) -> list[str]:
    """Names of all placeholders in a JSON value, in order."""
    if isinstance(value, str):
        return [match[1] for match in PLACEHOLDER.finditer(value)]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [name for one in inner for name in _placeholders(one)]


def _remembers(step: Step) -> list[Remember]:
    """The `remember` actions of a step, the one nested in a check included."""
    nested = (step, getattr(step, "after", None), getattr(step, "during", None))
    return [one for one in nested if isinstance(one, Remember)]
