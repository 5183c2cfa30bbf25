"""Frameworks with a server of their own: whether one exports files or has to be started, read off its settings.

Each reader takes a package that needs the framework and gives the `Way` in which it is built and served.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.errors import DataError
from bench.strict_json import read_json
from evaluator.npm_package import Package
from evaluator.npm_tools import LEGACY_OPENSSL

Command = tuple[str, ...]
START_PORT = 3000
VITE_PREVIEW_PORT = 4173
OWN_SERVERS = frozenset(["node", "nodemon", "tsx", "ts-node", "ts-node-dev", "babel-node", "bun"])
"""Programs of a start script that run a server of the application's own making."""


@dataclass(frozen=True)
class Way:
    """How a framework's application is built, and what is served then: files in `output`, or what `start` runs."""

    build: Command
    output: str | None = None
    start: Command = ()
    port: int = START_PORT
    base_path: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)


def way_of(package: Package) -> tuple[str, Way] | None:
    """The framework's name and its way; None when the package needs none of those known here."""
    for name, reader in FRAMEWORKS.items():
        if name in package.needs:
            return name, reader(package)
    return None


def _next(package: Package) -> Way:
    config = package.config("next.config")
    build = _build(package, "next", "build")
    exports = re.search(r"""\boutput\s*:\s*["'`]export["'`]""", config)
    if exports or "next export" in package.scripts.get("build", ""):
        return Way(build, output=(_setting(config, "distDir") if exports else "") or "out")
    own = package.program("start") in OWN_SERVERS
    runs_production = re.search(r"\bnext\b.*\bstart\b", package.scripts.get("start", ""))
    start = ("npm", "run", "start") if own or runs_production else _exec("next", "start")
    return Way(build, start=start, base_path=_path(_setting(config, "basePath")))


def _nuxt(package: Package) -> Way:
    config = package.config("nuxt.config")
    old = package.major("nuxt") < 3
    script = package.scripts.get("build")
    env = dict(LEGACY_OPENSSL) if old else {}
    if "generate" in (package.scripts if script is None else script):
        build = ("npm", "run", "generate" if script is None else "build")
        return Way(build, output="dist" if old else ".output/public", env=env)
    if re.search(r"\bpreset\s*:", config):
        env["NITRO_PRESET"] = "node-server"  # the one written there is of some host's platform
    start = _exec("nuxt", "start") if old else ("node", ".output/server/index.mjs")
    base = _path(_setting(config, "baseURL"))
    return Way(_build(package, "nuxt", "build"), start=_own_start(package) or start, base_path=base, env=env)


def _kit(package: Package) -> Way:
    config = package.config("svelte.config") + package.config("vite.config")
    build, base = _build(package, "vite", "build"), _path(_setting(config, "base"))
    if "@sveltejs/adapter-static" in config:
        return Way(build, output=_setting(config, "pages") or "build", base_path=base)
    if "@sveltejs/adapter-node" in config:
        own = ("node", _setting(config, "out") or "build")
        return Way(build, start=_own_start(package) or own, base_path=base)
    # Every other adapter is for some host's platform; the preview serves the same build here.
    return Way(build, start=_exec("vite", "preview"), port=VITE_PREVIEW_PORT, base_path=base)


def _angular(package: Package) -> Way:
    build = _build(package, "ng", "build")
    try:
        content = read_json(package.folder / "angular.json")
    except (DataError, OSError):
        return Way(build, output="dist")
    projects = _part(content, "projects")
    applications = [n for n, p in projects.items() if _part(p).get("projectType", "application") == "application"]
    chosen = _part(content).get("defaultProject")
    name = str(chosen if chosen in projects else next(iter(applications or projects), ""))
    target = _part(_part(projects.get(name), "architect") or _part(projects.get(name), "targets"), "build")
    options = _part(target, "options")
    told = options.get("outputPath")
    output = str(_part(told).get("base") or (told if isinstance(told, str) else "") or f"dist/{name}")
    by_parts = not str(target.get("builder", "")).endswith(":browser")
    if by_parts and options.get("ssr") and options.get("outputMode") != "static":
        return Way(build, start=_own_start(package) or ("node", f"{output}/server/server.mjs"), port=4000)
    browser = str(_part(told).get("browser", "browser")) if by_parts else ""
    return Way(build, output=f"{output}/{browser}".rstrip("/"))


def _react_router(package: Package) -> Way:
    build = _build(package, "react-router", "build")
    if re.search(r"\bssr\s*:\s*false\b", package.config("react-router.config")):
        return Way(build, output="build/client")
    serve = _exec("react-router-serve", "./build/server/index.js")
    return Way(build, start=("npm", "run", "start") if "start" in package.scripts else serve)


def _astro(package: Package) -> Way:
    config = package.config("astro.config")
    build, output = _build(package, "astro", "build"), _setting(config, "outDir") or "dist"
    base = _path(_setting(config, "base"))
    if "@astrojs/node" in config:
        own = _own_start(package) or ("node", f"{output.strip('./')}/server/entry.mjs")
        return Way(build, start=own, port=4321, base_path=base)
    return Way(build, output=output, base_path=base)


FRAMEWORKS: Mapping[str, Callable[[Package], Way]] = {
    "next": _next,
    "nuxt": _nuxt,
    "@sveltejs/kit": _kit,
    "@angular/cli": _angular,
    "@angular/build": _angular,
    "@react-router/dev": _react_router,
    "astro": _astro,
}
MANY_PAGES = frozenset(["next", "astro"])
"""Frameworks whose exports hold a file for every page: an unknown path is a page that is missing."""


def _build(package: Package, *command: str) -> Command:
    return ("npm", "run", "build") if "build" in package.scripts else _exec(*command)


def _exec(*command: str) -> Command:
    """Runs a program that the application installed, and never fetches one."""
    return ("npm", "exec", "--no", "--", *command)


def _own_start(package: Package) -> Command:
    return ("npm", "run", "start") if package.program("start") in OWN_SERVERS else ()


def _setting(config: str, name: str) -> str:
    """The string that a configuration sets `name` to, when it is written there as one."""
    found = re.search(rf"""\b{name}\s*:\s*["'`]([^"'`$]*)["'`]""", config)
    return found[1] if found else ""


def _path(told: str) -> str:
    """A mount path, beginning and ending with `/`."""
    inner = told.strip("/")
    return f"/{inner}/" if inner and not re.match(r"https?:|\.", told) else "/"


def _part(content: object, key: str = "") -> dict[str, Any]:
    """`content`, or its member `key`, when that is a JSON object; else an empty one."""
    inner = content.get(key) if key and isinstance(content, dict) else content if not key else None
    return inner if isinstance(inner, dict) else {}
