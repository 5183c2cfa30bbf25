"""How an application is installed, built and served: learned once on the trusted start application.

A plan is tried first on every submission; `fits` says why it would not do there any more, and then the
submission's own plan is learned. Heuristics only read files: nothing of the application runs here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple
from urllib.parse import unquote

from pydantic import Field

from bench.errors import DataError
from evaluator.frameworks import Command
from evaluator.npm_plan import NpmFacts, npm_facts, package_folders
from evaluator.records import Strict

STATIC_PORT = 8080
SKIPPED = frozenset({"node_modules", "_attachments", "_annotations", "bower_components", "__MACOSX"})
"""Folders in which no application is looked for (beside those whose name begins with a dot)."""
USUAL_FOLDERS = ("public", "dist", "build", "out", "src", "www", "docs", "site", "app")
DECIDING = ("kind", "root", "entry", "index", "tool", "build", "output", "start", "env", "spa_fallback", "base_path")
"""What decides how an application is served: a change of these between start and submission is recorded."""
MAX_ADDRESSES = 2_000
MAX_PREFIX = 20
"""So many of a page's addresses are looked at, and of each so many folders: a page can hold any number of both."""
MAX_DEPTH = 4
MAX_SCANNED_FILES = 300
MAX_SCANNED_BYTES = 2_000_000
CLIENT_ROUTES = re.compile(r"\bhistory\s*\.\s*pushState\s*\(|createBrowserRouter|BrowserRouter|createWebHistory\s*\(")
BASE_ELEMENT = re.compile(r"""<base\s[^<>]{0,300}?href\s*=\s*["']?(/[^"'\s>?#]*)""", re.IGNORECASE)
LOCAL_ADDRESS = re.compile(r"""(?:src|href)\s*=\s*["']?/(?!/)([^"'\s>?#]+)""", re.IGNORECASE)


class ServePlan(Strict):
    """Everything that decides how an application is built and served; recorded, and part of a build's key."""

    kind: Literal["static", "npm"]
    root: str = "."
    """Folder below the tree: for `static` the one that is served, for `npm` the one in which commands are run (with
    the package.json, or with that of the workspace)."""
    entry: str = ""
    """Path below the served folder at which the application opens, empty or ending in `/`."""
    index: str = "index.html"
    """The page that is served for `entry`'s folder."""
    tool: str = ""
    """What builds or serves it (`vite`, `react-scripts`, `node`, …), as far as known."""
    package_manager: Literal["npm", "pnpm", "yarn"] | None = None
    lock: str | None = None
    """Name of the lock file in `root`."""
    manager: str = ""
    """Package and version of the package manager, where it is not the builder's npm (`pnpm@9`)."""
    install: list[str] = Field(default_factory=list)
    """Command of the install phase; empty when there is nothing to install."""
    also: dict[str, list[str]] = Field(default_factory=dict)
    """Folders below `root` that are installed too, each with its command: a server's pages may be a package of
    their own."""
    build: list[str] = Field(default_factory=list)
    output: str | None = None
    """Folder below the tree that the build fills; it is served as static files. None with a `start` command."""
    start: list[str] = Field(default_factory=list)
    """Command that serves the application itself (HOST and PORT are set for it)."""
    fallback: list[str] = Field(default_factory=list)
    """Command that serves it where the build leaves no page."""
    port: int = STATIC_PORT
    """Port of our static server, or the one suggested to `start`; which it takes is found out."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment added to install, build and start."""
    spa_fallback: bool = False
    """Whether a visit to a path that no file answers gets the page."""
    fallback_page: str = ""
    """The page that such a visit gets, below the served folder; `index` when empty."""
    page_may_stay: bool = False
    """When the build writes no page but other files, a page among the sources is the application's."""
    base_path: str = "/"
    """Path at which the built files expect to be mounted; begins and ends with `/`."""
    node: str | None = None
    """Node version the application asks for (engines, .nvmrc), verbatim."""
    by_hand: bool = False
    """Written by a person (`serve.json`): taken as it is for start and submission, nothing is detected."""


class UnknownApplication(DataError):
    """The tree is no application that we know how to serve."""


def learn_plan(tree: Path) -> ServePlan:
    """Reads the plan off an application's files. Raises UnknownApplication with all that was looked for."""
    looked, last_resort = [], None
    for folder in package_folders(tree):
        facts = npm_facts(folder, tree)
        looked.append(f"{_relative(folder, tree)}/package.json: {facts.verdict}")
        if facts.broken:
            raise UnknownApplication(f"{_relative(folder, tree)}/package.json {facts.verdict}")
        if facts.recognised:
            return _npm_plan(tree, facts)
        last_resort = last_resort or (facts if facts.fallback else None)
    page = first_page(tree)
    if page:
        return static_plan(tree, page)
    if last_resort:
        return _npm_plan(tree, replace(last_resort, tool="script", start=last_resort.fallback, fallback=()))
    raise UnknownApplication(
        f"no application was recognised in {tree.name}/. Looked for: a package.json that builds or starts one "
        f"(found: {'; '.join(looked) or 'none'}); an HTML page at most {MAX_DEPTH} folders down (found: none). "
        f"Top of the tree: {', '.join(sorted(entry.name for entry in tree.iterdir())[:20]) or 'empty'}. "
        f"Say how it is served in a serve.json beside its folder (docs/serving.md)"
    )


class Fitted(NamedTuple):
    """The plan to serve a tree with, and what of the start application's it changes; empty when nothing."""

    plan: ServePlan
    changes: str = ""


def fitted(plan: ServePlan, tree: Path) -> Fitted:
    """`plan`, as learned on the start application, where it fits `tree`; else the tree's own.

    Learning is repeated on `tree`, which only reads. What decides how it is served is compared; how it is
    installed (lock file, package manager) always follows the tree. A plan made by hand is taken as it is.
    Raises UnknownApplication.
    """
    if plan.by_hand:
        return Fitted(plan)
    own = learn_plan(tree)
    changes = [
        f"{name} was {getattr(plan, name)!r} and is {getattr(own, name)!r}"
        for name in DECIDING
        if getattr(plan, name) != getattr(own, name)
    ]
    return Fitted(own, "; ".join(changes))


def fits(plan: ServePlan, tree: Path) -> str | None:
    """Why `plan` does not fit `tree`; None when it does."""
    try:
        return fitted(plan, tree).changes or None
    except UnknownApplication as error:
        return str(error)


def _npm_plan(tree: Path, facts: NpmFacts) -> ServePlan:
    here = _relative(facts.folder, tree)
    inside = facts.folder.relative_to(facts.home).as_posix()

    def there(command: Command) -> list[str]:
        """The command as it is run from the plan's root: a member of a workspace has a folder of its own."""
        return [*(["env", f"--chdir={inside}"] if command and inside != "." else []), *command]

    return ServePlan(
        kind="npm",
        root=_relative(facts.home, tree),
        tool=facts.tool,
        package_manager=facts.install.manager,
        lock=facts.install.lock,
        manager=facts.install.package,
        install=list(facts.install.command),
        also={folder: list(command) for folder, command in facts.also.items()},
        build=list(facts.build) if facts.build_at_home else there(facts.build),
        output=None if facts.output is None else _joined(here, facts.output),
        start=there(facts.start),
        fallback=[] if facts.start else there(facts.fallback),
        port=facts.port if facts.start else STATIC_PORT,
        env=dict(facts.env),
        spa_fallback=facts.spa,
        page_may_stay=facts.page_may_stay,
        base_path=facts.base_path,
        node=facts.node,
    )


def _joined(root: str, output: str) -> str:
    """`output` (relative to `root`) as a path below the tree; the tool's own default when it leads out."""
    path = os.path.normpath(PurePosixPath(root) / output)
    if path.startswith(("..", "/")):
        path = os.path.normpath(PurePosixPath(root) / "dist")
    return path


def static_plan(tree: Path, page: Path) -> ServePlan:
    """How `tree` is served as it is, opened at `page`."""
    folder = page.parent
    root, entry = ".", _relative(folder, tree)
    if entry == ".":
        entry = ""
    elif _is_own_root(tree, page):
        root, entry = entry, ""
    else:
        entry += "/"  # served below the whole tree, so that ../shared files and /_attachments are there too
    routes = any(CLIENT_ROUTES.search(text) for text in _texts(folder))
    return ServePlan(kind="static", root=root, entry=entry, index=page.name, spa_fallback=routes)


def _is_own_root(tree: Path, page: Path) -> bool:
    """Whether the page's root-absolute addresses mean the page's folder rather than the top of the tree."""
    addresses = LOCAL_ADDRESS.findall(_text(page))
    own = sum(_is_there(page.parent / address) for address in addresses)
    return bool(own > sum(_is_there(tree / address) for address in addresses))


def _is_there(path: Path) -> bool:
    """Whether there is such a file or folder; an address that can be none (too long, a NUL in it) is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def mount_path(folder: Path, page: Path) -> str:
    """The base path that built files expect: the prefix of the page's root-absolute addresses that has to go
    before they name files of `folder`, or what its <base> element says. `/` when they do already, or when there
    are none."""
    told = BASE_ELEMENT.search(_text(page))
    if told and not told[1].startswith("//"):
        inner = unquote(told[1]).strip("/")
        return f"/{inner}/" if inner and not _is_there(folder / inner) else "/"
    votes: dict[str, int] = {}
    for found in islice(LOCAL_ADDRESS.finditer(_text(page)), MAX_ADDRESSES):
        parts = [part for part in unquote(found[1]).split("/") if part]
        for cut in range(min(len(parts), MAX_PREFIX)):
            if _is_there(folder.joinpath(*parts[cut:])):
                prefix = "/" + "".join(f"{part}/" for part in parts[:cut])
                votes[prefix] = votes.get(prefix, 0) + 1
                break
    return max(votes, key=lambda prefix: (votes[prefix], -len(prefix)), default="/")


def first_page(tree: Path) -> Path | None:
    """The shallowest index.html, in the folder most usual for one; without any, the shallowest HTML page."""
    index: list[Path] = []
    other: list[Path] = []
    for path in _files(tree, MAX_DEPTH):
        if path.name.lower() in {"index.html", "index.htm"}:
            index.append(path)
        elif path.suffix.lower() in {".html", ".htm"}:
            other.append(path)
    return min(index or other, key=lambda path: _rank(path.relative_to(tree).parts), default=None)


def _rank(parts: Sequence[str]) -> tuple[int, int, Sequence[str]]:
    folder = parts[0] if len(parts) > 1 else ""
    usual = USUAL_FOLDERS.index(folder) if folder in USUAL_FOLDERS else len(USUAL_FOLDERS)
    return len(parts), usual, parts


def _texts(folder: Path) -> Iterator[str]:
    wanted = {".html", ".htm", ".js", ".mjs", ".jsx", ".ts", ".tsx"}
    scripts = (path for path in _files(folder, MAX_DEPTH) if path.suffix.lower() in wanted)
    for _, path in zip(range(MAX_SCANNED_FILES), scripts, strict=False):
        yield _text(path)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SCANNED_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _files(folder: Path, depth: int) -> Iterator[Path]:
    """Regular files below `folder`, links not followed, in a fixed order, none from folders to be skipped."""
    for place, folders, names in os.walk(folder):
        level = len(Path(place).relative_to(folder).parts)
        kept = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
        folders[:] = kept if level < depth else []
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _relative(folder: Path, tree: Path) -> str:
    return folder.relative_to(tree).as_posix()
