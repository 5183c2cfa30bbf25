"""Where and by which package manager an application is installed: its own folder, or the workspace it belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import yaml

from evaluator.npm_package import BrokenPackage, Package, read_package

Manager = Literal["npm", "pnpm", "yarn"]
LOCKS: tuple[tuple[str, Manager], ...] = (
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
)
PNPM_WORKSPACE = "pnpm-workspace.yaml"
WORKSPACE_CHARS = 4_000
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PNPM_OF_LOCK = {"5": "7", "6": "8"}
YARN_OF_LOCK = {"4": "2.4.3", "5": "3", "6": "3"}
CLASSIC_YARN = "yarn@1.22.22"
"""For scripts that call it."""
INSTALL_HOOKS = frozenset(["preinstall", "install", "postinstall", "prepare"])


class Install(NamedTuple):
    """`command` is empty when there is nothing to install. `lock` is the lock file's name, `package` what has to be
    fetched first: the package manager, where it is not the builder's npm."""

    manager: Manager = "npm"
    lock: str | None = None
    command: tuple[str, ...] = ()
    package: str = ""


def workspace_of(folder: Path, tree: Path) -> Path:
    """The folder of the workspace that `folder` is a member of; `folder` itself without one."""
    for parent in folder.parents:
        if not parent.is_relative_to(tree):
            break
        relative = PurePosixPath(folder.relative_to(parent).as_posix())
        if any(_matches(relative, pattern) for pattern in members(parent)):
            return parent
    return folder


def members(folder: Path) -> list[str]:
    """The patterns by which a folder names the members of its workspace; none when it is no workspace's root."""
    told: Any = None
    if (folder / PNPM_WORKSPACE).is_file():
        try:
            text = Package(folder, {}).text(PNPM_WORKSPACE)[:WORKSPACE_CHARS]
            told = yaml.load(text, Loader=LOADER)  # a safe one, in C: the other takes long for deep nests
        except (yaml.YAMLError, RecursionError):
            return []
        told = told.get("packages") if isinstance(told, dict) else None
    elif (folder / "package.json").is_file():
        try:
            told = read_package(folder).content.get("workspaces")
        except BrokenPackage:
            return []
        told = told.get("packages") if isinstance(told, dict) else told
    return [pattern for pattern in told if isinstance(pattern, str)] if isinstance(told, list) else []


def install_of(package: Package, *, workspace: bool) -> Install:
    """How the package (a workspace's root, or a folder that stands alone) is installed."""
    lock, manager = next(
        (pair for pair in LOCKS if (package.folder / pair[0]).is_file()), (None, _asked_for(package))
    )
    optional = package.content.get("optionalDependencies")
    if not (package.needs or INSTALL_HOOKS & package.scripts.keys() or workspace or optional):
        return Install(manager, lock)
    if manager == "pnpm":
        frozen = "--frozen-lockfile" if lock else "--no-frozen-lockfile"
        return Install(manager, lock, ("pnpm", "install", frozen), f"pnpm@{_pnpm_version(package)}")
    if manager == "yarn" and _berry(package):
        berry = f"@yarnpkg/cli-dist@{_yarn_version(package)}"
        return Install(manager, lock, ("yarn", "install", "--immutable"), berry)
    # npm takes the versions of a classic yarn.lock over; classic yarn itself would ask the hosts written in it.
    command = ("npm", "ci") if manager == "npm" and lock else ("npm", "install")
    return Install(manager, lock, command, CLASSIC_YARN if manager == "yarn" else "")


def _asked_for(package: Package) -> Manager:
    """Without a lock: pnpm where the workspace is pnpm's own, else npm, which installs what all of them do."""
    return "pnpm" if (package.folder / PNPM_WORKSPACE).is_file() else "npm"


def _pnpm_version(package: Package) -> str:
    """The pnpm that reads this lock: as packageManager pins it, else by the lock's own format version."""
    pinned = _pinned(package, "pnpm")
    told = re.search(r"lockfileVersion:\s*'?(\d+)", package.text("pnpm-lock.yaml")[:2000])
    return pinned or PNPM_OF_LOCK.get(told[1] if told else "", "9")


def _berry(package: Package) -> bool:
    """Whether the lock is of yarn 2 or later, which npm does not read."""
    return "__metadata:" in package.text("yarn.lock")[:4000]


def _yarn_version(package: Package) -> str:
    pinned = _pinned(package, "yarn")
    told = re.search(r"__metadata:\s+version:\s*(\d+)", package.text("yarn.lock")[:4000])
    return pinned or YARN_OF_LOCK.get(told[1] if told else "", "4")


def _pinned(package: Package, manager: str) -> str:
    found = re.match(rf"{manager}@(\d+\.\d+\.\d+[\w.-]*)", str(package.content.get("packageManager", "")))
    return found[1] if found else ""


def _matches(path: PurePosixPath, pattern: str) -> bool:
    """Whether a folder is named by a workspace pattern: `apps/*`, `apps/**`, `./web`."""
    wanted = PurePosixPath(pattern.removeprefix("./").rstrip("/")).parts
    return _parts_match(path.parts, wanted)


def _parts_match(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_parts_match(parts[cut:], wanted[1:]) for cut in range(len(parts) + 1))
    return bool(parts) and PurePosixPath(parts[0]).match(wanted[0]) and _parts_match(parts[1:], wanted[1:])
