"""What `cdb agents` tells of each agent: what it needs, what it passes natively, and whether it is installed."""

from __future__ import annotations

import os
from typing import Any

from bench.errors import UsageError
from harness.agents.catalogue import find_agent, shipped_agents
from sandboxes.gateway.policy import default_upstreams
from sandboxes.packs.recipe import RECIPES
from sandboxes.packs.store import find_pack


def overview() -> list[dict[str, Any]]:
    """One row an agent: `name`, `protocol`, `key_env` (for the provider's own address), `native`, `pack`,
    `version`, `installed` (None: there is nothing to install), `needs`."""
    return [_row(name) for name in shipped_agents()]


def _row(name: str) -> dict[str, Any]:
    agent = find_agent(name, "model")
    row: dict[str, Any] = {
        "name": name,
        "protocol": agent.protocol,
        "key_env": _key_env(agent.protocol) if agent.protocol else None,
        "native": sorted(agent.modalities),
        "pack": agent.pack,
        "version": None,
        "installed": None,
        "needs": "",
    }
    if agent.pack:
        recipe = RECIPES[agent.pack]
        row |= {"version": recipe.version, "installed": _installed(agent.pack)}
        if recipe.python:
            row["needs"] = f"Python {'.'.join(map(str, recipe.python))} in the solver image"
    return row


def _installed(pack: str) -> bool:
    try:
        return find_pack(RECIPES[pack]) is not None
    except UsageError:  # no pack is made for this processor
        return False


def _key_env(protocol: str) -> str | None:
    """The variable that is set, or the usual one where none is."""
    environ = {"GEMINI_API_KEY": "unset", **os.environ} if not os.environ.get("GOOGLE_API_KEY") else os.environ
    for upstream in default_upstreams(environ).values():
        if protocol in upstream.protocols:
            return upstream.key_env
    return None


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """For people: a table."""
    head = f"{'agent':<20} {'protocol':<17} {'key':<18} {'passes natively':<24} installed"
    return [head, *(_line(row) for row in rows)]


def _line(row: dict[str, Any]) -> str:
    if row["installed"] is None:
        state = "nothing to install"
    else:
        state = row["version"] if row["installed"] else f"no: cdb agents install {row['pack']}"
        state += f" (needs {row['needs']})" if row["needs"] else ""
    native = ", ".join(row["native"]) or "-"
    return f"{row['name']:<20} {row['protocol'] or '-':<17} {row['key_env'] or '-':<18} {native:<24} {state}"
