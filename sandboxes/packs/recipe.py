"""Which command lines can be had, and what exactly each is: package, version and a lock with every digest.

`locks/NAME/` holds what a pack is installed from: package.json and package-lock.json (integrity of every tarball,
no registry's address), or requirements.lock (sha256 of every distribution).
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.errors import UsageError

LOCKS = Path(__file__).parent / "locks"
_LAUNCHERS = {"python": "run_script.py"}
_CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_FORMAT = "cdb.pack/1"


@dataclass(frozen=True)
class Recipe:
    """One pinned command line.

    `program` is its executable's path below the pack ({cpu} is x64 or arm64). Install scripts of npm packages
    never run; where a package would fetch or link its binary by one, `program` names the binary itself.
    `check` are arguments with which it ends at once, well, and without a model.
    """

    name: str
    kind: Literal["npm", "pip"]
    package: str
    version: str
    program: str
    check: tuple[str, ...] = ("--version",)
    python: tuple[int, int] | None = None
    """The one Python it runs on; None: whatever the solver image has."""
    sources: tuple[str, ...] = field(default=(), repr=False)
    """Packages of its lock that come as source only. Not in `repr`, which decides `key`: the lock is in it anyway."""

    @property
    def lock(self) -> Path:
        return LOCKS / self.name

    @property
    def interpreter(self) -> str:
        """The Python of a pack of Python packages, as a program of the solver image."""
        return f"python{'.'.join(map(str, self.python))}" if self.python else "python3"

    @property
    def launcher(self) -> Path | None:
        """What `program` is made from in a pack of Python packages; npm packages bring their own."""
        if self.kind == "npm":
            return None
        return Path(__file__).parent / _LAUNCHERS.get(Path(self.program).name, "run_console_script.py")

    @property
    def key(self) -> str:
        """What decides a pack's content, as a folder name: recipe, lock files and processor."""
        digest = hashlib.sha256(repr((_FORMAT, self, cpu())).encode())
        for path in [*sorted(self.lock.iterdir()), *([self.launcher] if self.launcher else [])]:
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
        return f"{self.name}-{self.version}-{digest.hexdigest()[:12]}"

    @property
    def executable(self) -> str:
        return self.program.format(cpu=cpu())


def cpu() -> str:
    """This machine's processor in npm's words. Raises UsageError for one that no pack is made for."""
    machine = platform.machine().lower()
    if machine not in _CPUS:
        raise UsageError(f"no command line is pinned for a {machine} processor; packs exist for x86_64 and arm64")
    return _CPUS[machine]


_ALL = (
    Recipe(
        "claude-code",
        "npm",
        "@anthropic-ai/claude-code",
        "2.1.332",
        "node_modules/@anthropic-ai/claude-code-linux-{cpu}/claude",
    ),
    Recipe("codex", "npm", "@openai/codex", "0.171.0", "node_modules/.bin/codex"),
    Recipe("gemini-cli", "npm", "@google/gemini-cli", "0.61.0", "node_modules/.bin/gemini"),
    Recipe("opencode", "npm", "opencode-ai", "1.18.33", "node_modules/opencode-linux-{cpu}/bin/opencode"),
    Recipe("qwen-code", "npm", "@qwen-code/qwen-code", "0.24.4", "node_modules/.bin/qwen"),
    Recipe("pi", "npm", "@mariozechner/pi-coding-agent", "0.73.1", "node_modules/.bin/pi"),
    Recipe("mini-swe-agent", "pip", "mini-swe-agent", "2.4.6", "bin/mini", check=("--help",)),
    Recipe("aider", "pip", "aider-chat", "0.86.2", "bin/aider"),
    Recipe("reference", "pip", "litellm", "1.110.2", "bin/python", check=("--check", "litellm")),
    Recipe("openhands", "pip", "openhands", "1.16.0", "bin/openhands", python=(3, 12), sources=("func-timeout",)),
)
RECIPES = {recipe.name: recipe for recipe in _ALL}


def find_recipe(name: str) -> Recipe:
    """Raises UsageError naming the ones there are."""
    if name not in RECIPES:
        raise UsageError(f"no command line {name!r} can be installed; known: {', '.join(sorted(RECIPES))}")
    return RECIPES[name]
