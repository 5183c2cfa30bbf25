"""The matrix of a run: one entry for each agent × model × attempt, and where its files lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.errors import UsageError
from harness.agents.catalogue import find_agent
from harness.run import entry_name
from runner.config import AgentPart, JudgePart, RunConfig


@dataclass(frozen=True)
class Entry:
    """One entry; `name` is its folder below the run's."""

    agent: str
    model: str | None
    attempt: int
    upstream: str | None
    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def submissions(self) -> Path:
        return self.folder / "submissions"

    @property
    def cases(self) -> Path:
        return self.folder / "evaluation" / "cases.json"

    def results(self, judge: JudgePart, alone: bool) -> Path:
        """The results folder of one judge; `alone` when the run has only that one."""
        return self.folder / "results" / ("" if alone else judge_name(judge))


def judge_name(judge: JudgePart) -> str:
    return judge.name or judge.model.replace("/", "-")


def entries(config: RunConfig) -> list[Entry]:
    """Every entry in the order of the file. Raises UsageError for an unknown agent or the same entry twice."""
    made: list[Entry] = []
    for listed in config.agents:
        part = listed if isinstance(listed, AgentPart) else AgentPart(agent=listed)
        models: list[str | None] = list(part.models if part.models is not None else config.models) or [None]
        agents = [find_agent(part.agent, model) for model in models]
        if all(agent.model is None for agent in agents):
            agents = agents[:1]  # it takes no model, so the list of models makes no entries of it
        for agent in agents:
            for attempt in range(1, (part.attempts or config.attempts) + 1):
                folder = config.folder / entry_name(agent, attempt)
                made.append(Entry(part.agent, agent.model, attempt, part.upstream, folder))
    names = [entry.name for entry in made]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"the entry {twice} comes out twice; give every agent of `agents` a name of its own")
    return made
