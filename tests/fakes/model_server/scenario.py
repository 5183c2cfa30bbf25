"""What the scripted model says: scenarios, turns, faults, and which of them a request gets.

A scenario is JSON (see `docs/gateway.md`):

    {"turns": [[{"run": "echo hi > a.txt"}], [{"text": "Done."}]],
     "faults": [{"at": 0, "times": 2, "status": 429, "retry_after": 3}],
     "usage": {"input": 1000, "output": 50}, "match": "words of the prompt", "model_answered": "m-2026",
     "models": ["the", "only", "ones", "there", "are"]}

The turn is told from the request itself (ids of earlier tool calls, else the number of assistant messages),
so that one server plays for many trials at once and a client that asks again gets the same turn again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

TURN_ID = re.compile(rb"_T(\d{4})_\d")
SHELL_TOOLS = (
    "Bash", "bash", "shell", "exec_command", "run_shell_command", "terminal", "execute_bash", "shell_command", "run",
)  # fmt: skip
"""Names under which the agents known to us offer a shell, looked for in this order."""
COMMAND_KEYS = ("command", "cmd", "script", "code")


class Usage(NamedTuple):
    """Tokens of one reply; `input` counts neither cache_read nor cache_write."""

    input: int = 1000
    output: int = 50
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


class Text(NamedTuple):
    text: str


class Call(NamedTuple):
    id: str
    name: str
    input: dict[str, Any]


Part = Text | Call


class Offered(NamedTuple):
    """A tool that the request offers: its name and its parameters' JSON schema."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What goes wrong at the scenario's model calls `at` … `at + times - 1`, counted from 0 over all clients.

    `times` -1 means for ever. One of: `status` (with `retry_after`, `message`); `cut_after` events (the connection
    is reset); `hang` (headers, then nothing) with `after` events; `slow_s` before each event; `huge` bytes in one
    event; `encoding` (gzip, deflate) whatever was accepted; `split` bytes in a write; `no_usage`; `body` verbatim.
    With `over_bytes` only calls whose body is longer.
    """

    at: int = 0
    times: int = 1
    status: int = 0
    retry_after: str = ""
    message: str = ""
    body: str = ""
    cut_after: int = -1
    hang_after: int = -1
    slow_s: float = 0.0
    huge: int = 0
    encoding: str = ""
    split: int = 0
    no_usage: bool = False
    over_bytes: int = 0

    def strikes(self, number: int, length: int) -> bool:
        due = number >= self.at and (self.times < 0 or number < self.at + self.times)
        return due and length > self.over_bytes


@dataclass
class Scenario:
    name: str
    turns: list[list[dict[str, Any]]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    match: str = ""
    model_answered: str = ""
    events: int = 3
    models: list[str] = field(default_factory=list)
    """Those that are listed, and then no other exists; empty: any name will do and none is listed."""
    calls: int = 0
    """Model calls answered so far."""

    @classmethod
    def read(cls, name: str, told: dict[str, Any]) -> Scenario:
        known = {"turns", "faults", "usage", "match", "model_answered", "events", "models"}
        if told.keys() - known:
            raise ValueError(f"scenario {name}: unknown keys {sorted(told.keys() - known)}; known: {sorted(known)}")
        turns = [turn if isinstance(turn, list) else [turn] for turn in told.get("turns", [{"text": "Done."}])]
        return cls(
            name=name,
            turns=turns,
            faults=[Fault(**fault) for fault in told.get("faults", [])],
            usage=Usage(**told.get("usage", {})),
            match=told.get("match", ""),
            model_answered=told.get("model_answered", ""),
            events=told.get("events", 3),
            models=told.get("models", []),
        )

    def next_fault(self, length: int) -> Fault:
        """The fault of this call, whose body has `length` bytes, if there is one; counts the call."""
        number, self.calls = self.calls, self.calls + 1
        return next((fault for fault in self.faults if fault.strikes(number, length)), Fault())

    def reply(self, raw: bytes, assistant_messages: int, offered: list[Offered]) -> list[Part]:
        """The parts of the turn that this request is at; a call that has no tool to go to becomes a text."""
        earlier = [int(number) for number in TURN_ID.findall(raw)]
        turn = max(earlier) + 1 if earlier else assistant_messages
        steps = self.turns[turn] if turn < len(self.turns) else [{"text": "Done."}]
        return [_part(step, f"T{turn:04d}_{number}", offered) for number, step in enumerate(steps)]


def read_scenarios(told: dict[str, Any]) -> list[Scenario]:
    """One scenario, or `{"scenarios": {NAME: …}}`: chosen by model name, then by `match`, then the first."""
    named = told.get("scenarios", {"default": told})
    return [Scenario.read(name, scenario) for name, scenario in named.items()]


def choose(scenarios: list[Scenario], model: str, raw: bytes) -> Scenario:
    for scenario in scenarios:
        if scenario.name == model:
            return scenario
    for scenario in scenarios:
        if scenario.match and json.dumps(scenario.match)[1:-1].encode() in raw:
            return scenario
    return scenarios[0]


def _part(step: dict[str, Any], mark: str, offered: list[Offered]) -> Part:
    if "text" in step:
        return Text(step["text"])
    if "run" in step:
        shell = _shell(offered)
        return Call(f"call_{mark}", shell.name, _arguments(shell, step["run"])) if shell else Text("ok")
    if "tool" in step:
        name = _served(step["tool"], offered)
        return Call(f"call_{mark}", name, step.get("input", {})) if name else Text("ok")
    raise ValueError(f"a step is text, run or tool (with input), not {sorted(step)}")


def _served(name: str, offered: list[Offered]) -> str:
    """The name under which a tool is offered (`mcp__SERVER__NAME` over MCP); nothing when it is not."""
    if not offered:
        return name
    return next((tool.name for tool in offered if tool.name == name or tool.name.endswith(f"__{name}")), "")


def _shell(offered: list[Offered]) -> Offered | None:
    by_name = {tool.name: tool for tool in offered}
    return next((by_name[name] for name in SHELL_TOOLS if name in by_name), None)


def _arguments(shell: Offered, command: str) -> dict[str, Any]:
    """Arguments that fit the tool's schema: the command where one goes, something harmless where more is required."""
    properties: dict[str, Any] = shell.schema.get("properties", {})
    key = next((key for key in COMMAND_KEYS if key in properties), "command")
    as_list = properties.get(key, {}).get("type") == "array"
    arguments: dict[str, Any] = {key: ["bash", "-lc", command] if as_list else command}
    fillers = {"string": "step", "boolean": False, "integer": 60, "number": 60, "array": [], "object": {}}
    for name in shell.schema.get("required", []):
        if name not in arguments:
            told = properties.get(name, {})
            arguments[name] = told["enum"][0] if told.get("enum") else fillers.get(told.get("type", "string"), "step")
    return arguments
