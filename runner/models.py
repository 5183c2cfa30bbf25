"""Every model of a run asked for one word, before the first entry begins: a misspelt one costs no trial (C137)."""

from __future__ import annotations

from collections.abc import Callable

from bench.errors import CdbError, UsageError
from harness.agents.catalogue import find_agent
from harness.model_check import check_wish
from harness.models import ModelWish
from runner.config import RunConfig
from runner.entries import Entry


def check_models(config: RunConfig, unsolved: list[Entry], say: Callable[[str], None]) -> None:
    """Ask each model that these entries use, once for each protocol and upstream.

    Raises UsageError naming every one that cannot be used, and whatever else stands in the way of a single one.
    """
    faults: list[CdbError] = []
    asked = set()
    for entry in unsolved:
        agent = find_agent(entry.agent, entry.model)
        if agent.protocol is None or (agent.protocol, agent.model, entry.upstream) in asked:
            continue
        asked.add((agent.protocol, agent.model, entry.upstream))
        try:
            found = check_wish(agent, ModelWish(config.gateway, entry.upstream))
            say(f"model {found.model}: " + (found.note or f"answers over {found.upstream}"))
        except CdbError as error:
            faults.append(error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise UsageError("\n  ".join(["these models cannot be used:", *map(str, faults)]))
