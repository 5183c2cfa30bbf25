"""Tools of a conversation: inputs checked against their schema, results fenced, numbered and kept as evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from bench.atomic import write_bytes
from bench.errors import DataError
from bench.strict_json import parse_json
from evaluator.judges.model.browsing import BrowsingError
from evaluator.judges.model.chat import ToolSpec
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.sources import SourceError


class ToolInput(BaseModel):
    """Base of every tool's input: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


Input = TypeVar("Input", bound=ToolInput)


@dataclass(frozen=True)
class Output:
    """What a tool gives: `text` is the application's own and is fenced; `note` is the harness's word about it."""

    text: str = ""
    note: str = ""
    picture: bytes | None = None


@dataclass(frozen=True)
class Tool:
    spec: ToolSpec
    input: type[ToolInput]
    run: Callable[[Any], Output]


@dataclass(frozen=True)
class Result:
    """A tool's answer as the model gets it; `evidence` is its id, empty for an error."""

    text: str
    evidence: str = ""
    picture: bytes | None = None


class Refused(Exception):
    """A tool cannot do what was asked; the message says what to ask instead."""


def tool(name: str, description: str, model: type[Input], run: Callable[[Input], Output]) -> Tool:
    return Tool(ToolSpec(name, description, _schema(model)), model, run)


@dataclass
class Toolbox:
    """The tools of one conversation. Evidence goes to `folder` as E1.txt, E2.jpg …"""

    tools: list[Tool]
    fence: Fence
    folder: Path
    evidence: list[str] = field(default_factory=list)

    @property
    def specs(self) -> list[ToolSpec]:
        return [one.spec for one in self.tools]

    def call(self, name: str, arguments: str) -> Result:
        """Run one tool. What a model can mend comes back as an error's text; trouble of the machine is raised."""
        chosen = next((one for one in self.tools if one.spec.name == name), None)
        if chosen is None:
            return Result(f"error: no tool {name!r}; there are: {', '.join(s.name for s in self.specs)}")
        try:
            wanted = chosen.input.model_validate(read_arguments(arguments))
            output = chosen.run(wanted)
        except ValidationError as error:
            return Result(f"error: {name}: {complaints(error)}")
        except (DataError, SourceError, BrowsingError, Refused) as error:
            return Result(f"error: {name}: {self.fence.data('error', str(error)[:3000])}")
        return self._keep(name, output)

    def _keep(self, name: str, output: Output) -> Result:
        number = f"E{len(self.evidence) + 1}"
        self.evidence.append(number)
        write_bytes(
            self.folder / f"{number}.txt", f"{name}\n{output.note}\n{output.text}\n".encode("utf-8", "replace")
        )
        if output.picture:
            write_bytes(self.folder / f"{number}.jpg", output.picture)
        lines = [f"{number} {name}" + (f": {output.note}" if output.note else "")]
        if output.text:
            lines.append(self.fence.data(name, output.text))
        if output.picture:
            lines.append(f"The picture follows as {number}.")
        return Result("\n".join(lines), number, output.picture)


def read_arguments(arguments: str) -> dict[str, Any]:
    """A call's arguments. Raises DataError: cut or doubled keys, NaN, no object."""
    found = parse_json(arguments.encode("utf-8", "surrogatepass") or b"{}", "the call's input")
    if not isinstance(found, dict):
        raise DataError(f"the call's input must be a JSON object; got {json.dumps(found)[:80]}")
    return found


def complaints(error: ValidationError) -> str:
    """Pydantic's complaints in one line each, with the field."""
    lines = []
    for one in error.errors(include_url=False, include_input=False)[:6]:
        place = ".".join(str(part) for part in one["loc"]) or "input"
        lines.append(f"{place}: {one['msg']}")
    return "; ".join(lines)


def _schema(model: type[ToolInput]) -> dict[str, Any]:
    """The input's JSON schema with what it refers to written in place: not every provider follows references."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    found = _inlined(schema, definitions)
    assert isinstance(found, dict)
    return found


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
        return {
            key: _inlined(one, definitions)
            for key, one in value.items()
            if not (key == "title" and isinstance(one, str))
        }
    if isinstance(value, list):
        return [_inlined(one, definitions) for one in value]
    return value
