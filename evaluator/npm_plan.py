"""What a folder with a package.json is: which tool builds it, where the result goes, or what starts it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

USUAL_HOMES = ("client", "frontend", "web", "app", "ui", "site", "webapp")
"""Sub-folders looked into first when the top has no package.json that makes an application."""
WORKSPACE_HOMES = ("packages", "apps")
START_PORT = 3000
OUTSIDE = frozenset({"node_modules", "_attachments", "_annotations"})

SERVERS = frozenset(
    ["node", "nodemon", "tsx", "ts-node", "ts-node-dev", "babel-node", "next", "nuxt", "nest", "remix-serve", "bun"]
)
"""Programs of a start script that serve the application themselves."""
PREFIXES = frozenset(["npx", "cross-env", "env", "exec", "dotenv", "--", "-y", "--yes"])
LOCKS: tuple[tuple[str, Literal["npm", "pnpm", "yarn"]], ...] = (
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
)
LEGACY_OPENSSL = {"NODE_OPTIONS": "--openssl-legacy-provider"}
"""Webpack 4 hashes with MD4, which OpenSSL 3 keeps behind this switch."""


class Tool(NamedTuple):
    """A bundler: the package that tells it, its own build command, its default output folder.

    `output_in` are the files that may name another folder, by `output_as`. `openssl_from` is the major
    version from which it builds without legacy OpenSSL.
    """

    package: str
    command: tuple[str, ...]
    output: str
    output_in: tuple[str, ...] = ()
    output_as: str = r"(?!)"
    openssl_from: int = 0


_IN_FOLDER = r"""(?:(?:path\.)?(?:resolve|join)\(\s*(?:__dirname|process\.cwd\(\)|import\.meta\.dirname)\s*,\s*)?"""
_QUOTED = r"""["'`]([^"'`$]+)["'`]"""
_SUFFIXES = ("ts", "js", "mts", "mjs", "cts", "cjs")

TOOLS = (
    Tool(
        "vite",
        ("vite", "build"),
        "dist",
        tuple(f"vite.config.{suffix}" for suffix in _SUFFIXES),
        rf"\boutDir\s*:\s*{_IN_FOLDER}{_QUOTED}",
    ),
    Tool("react-scripts", ("react-scripts", "build"), "build", openssl_from=5),
    Tool(
        "@vue/cli-service",
        ("vue-cli-service", "build"),
        "dist",
        tuple(f"vue.config.{suffix}" for suffix in _SUFFIXES),
        rf"\boutputDir\s*:\s*{_IN_FOLDER}{_QUOTED}",
        openssl_from=5,
    ),
    Tool(
        "parcel",
        ("parcel", "build", "index.html"),
        "dist",
        ("package.json",),
        r"""(?:--dist-dir|--out-dir|-d)[ =]([\w./-]+)|"distDir"\s*:\s*"([^"]+)\"""",
    ),
    Tool("parcel-bundler", ("parcel", "build", "index.html"), "dist"),
    Tool(
        "webpack",
        ("webpack", "--mode", "production"),
        "dist",
        (*(f"webpack.config.{suffix}" for suffix in _SUFFIXES), "webpack.prod.js", "config/webpack.prod.js"),
        rf"\bpath\s*:\s*{_IN_FOLDER}{_QUOTED}",
        openssl_from=5,
    ),
)
VITE_ROOT = re.compile(r"""^\s*root\s*:\s*["'`]([^"'`$]+)["'`]""", re.MULTILINE)
OUT_DIR_FLAG = re.compile(r"--outDir[ =]([\w./-]+)")


@dataclass(frozen=True)
class NpmFacts:
    """What one package.json tells. `verdict` is a phrase for people; `broken`: it cannot be read at all."""

    verdict: str
    recognised: bool = False
    broken: bool = False
    tool: str = ""
    package_manager: Literal["npm", "pnpm", "yarn"] | None = None
    lock: str | None = None
    install: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    output: str | None = None
    """Relative to the folder; None when `start` serves."""
    start: tuple[str, ...] = ()
    port: int = START_PORT
    env: Mapping[str, str] = field(default_factory=dict)
    node: str | None = None


def package_folders(tree: Path) -> Iterator[Path]:
    """Folders with a package.json that may be the application, the likeliest first; at most two down."""
    places = [tree, *(tree / name for name in USUAL_HOMES)]
    places += [folder for home in WORKSPACE_HOMES for folder in _subfolders(tree / home)]
    places += list(_subfolders(tree))
    for folder in dict.fromkeys(places):
        if (folder / "package.json").is_file():
            yield folder


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.is_symlink() and entry.name not in OUTSIDE and not entry.name.startswith(".")
    )


def npm_facts(folder: Path) -> NpmFacts:
    """Reads `folder`/package.json and the configuration beside it. Never raises for what they hold."""
    try:
        package = json.loads((folder / "package.json").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        return NpmFacts(f"is not readable as JSON ({error})", broken=True)
    if not isinstance(package, dict):
        return NpmFacts("is not a JSON object", broken=True)
    scripts = _strings(package.get("scripts"))
    needs = _strings(package.get("dependencies")) | _strings(package.get("devDependencies"))
    tool = next((tool for tool in TOOLS if tool.package in needs), None)
    program = _program(scripts, "start")
    script_build = ("npm", "run", "build") if "build" in scripts else ()
    ejected = "react-dev-utils" in needs
    if program == "next" and _exports(folder):
        found = NpmFacts("exports with next", True, tool="next", build=script_build, output="out")
    elif program in SERVERS and not ejected:
        found = NpmFacts("starts a server", True, tool=program, build=script_build, start=("npm", "run", "start"))
    elif "start" not in scripts and "build" not in scripts and tool is None and (folder / "server.js").is_file():
        found = NpmFacts("starts a server", True, tool="node", start=("node", "server.js"))
    elif tool:
        build = script_build or ("npm", "exec", "--no", "--", *tool.command)
        env = LEGACY_OPENSSL if _major(needs[tool.package]) < tool.openssl_from else {}
        output = _output(folder, tool, scripts.get("build", ""))
        found = NpmFacts(f"builds with {tool.package}", True, tool=tool.package, build=build, output=output, env=env)
    elif script_build:
        output = "build" if ejected else "dist"
        found = NpmFacts("has a build script", True, tool="script", build=script_build, output=output)
    else:
        return NpmFacts("neither builds nor starts an application")
    return _with_install(found, folder, package, scripts, needs)


def _with_install(
    found: NpmFacts, folder: Path, package: dict[str, object], scripts: dict[str, str], needs: dict[str, str]
) -> NpmFacts:
    lock, manager = next((pair for pair in LOCKS if (folder / pair[0]).is_file()), ("", "npm"))
    hooks = {"preinstall", "install", "postinstall", "prepare"} & scripts.keys()
    nothing = not needs and not hooks and not package.get("workspaces") and not package.get("optionalDependencies")
    install: tuple[str, ...] = ()
    if not nothing and manager == "pnpm":
        version = _pnpm_version(folder / "pnpm-lock.yaml", str(package.get("packageManager", "")))
        install = ("npm", "exec", "--yes", "--", f"pnpm@{version}", "install", "--frozen-lockfile")
    elif not nothing:
        # npm takes the versions of a yarn.lock over; yarn itself would ask the hosts written in it.
        install = ("npm", "ci") if manager == "npm" and lock else ("npm", "install")
    return replace(
        found, package_manager=manager, lock=lock or None, install=install, node=_node_version(folder, package)
    )


def _strings(value: object) -> dict[str, str]:
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _program(scripts: dict[str, str], name: str, depth: int = 3) -> str:
    """The program a script ends in: `npm run build && cross-env A=1 npx serve .` → `serve`; `npm run` is followed."""
    last = re.split(r"&&|;", scripts.get(name, ""))[-1]
    try:
        words = shlex.split(last)
    except ValueError:
        words = last.split()
    words = [word for word in words if word not in PREFIXES and not re.match(r"[A-Za-z_]\w*=", word)]
    match words:
        case ["npm" | "yarn" | "pnpm", "run", other, *_] if depth and other in scripts:
            return _program(scripts, other, depth - 1)
        case [first, *_]:
            return first.rpartition("/")[2]
    return ""


def _exports(folder: Path) -> bool:
    """Whether next is configured to write static files."""
    configs = (folder / f"next.config.{suffix}" for suffix in _SUFFIXES)
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in configs if path.is_file())
    return any(re.search(r"""\boutput\s*:\s*["'`]export["'`]""", text) for text in texts)


def _major(version_range: str) -> int:
    """The major version a range asks for; a high one where none is told (`latest`, a link)."""
    match = re.search(r"\d+", version_range)
    return int(match[0]) if match else 999


def _output(folder: Path, tool: Tool, script: str) -> str:
    """Where the bundler writes, relative to `folder`: script, then configuration, then its default."""
    flag = OUT_DIR_FLAG.search(script)
    output, below = (flag[1] if flag else ""), ""
    for name in tool.output_in:
        if not (folder / name).is_file():
            continue
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
        told = re.search(tool.output_as, text)
        output = output or (next(filter(None, told.groups()), "") if told else "")
        inner = VITE_ROOT.search(text) if tool.package == "vite" else None
        if inner and (folder / inner[1] / "index.html").is_file():
            below = inner[1]
    return "/".join(filter(None, [below.strip("/"), output or tool.output]))


def _pnpm_version(lock: Path, manager: str) -> str:
    """The pnpm that reads this lock: as packageManager pins it, else by the lock's own format version."""
    pinned = re.match(r"pnpm@(\d+\.\d+\.\d+[\w.-]*)", manager)
    if pinned:
        return pinned[1]
    told = re.search(r"lockfileVersion:\s*'?(\d+)", lock.read_text(encoding="utf-8", errors="replace")[:2000])
    return {"5": "7", "6": "8"}.get(told[1] if told else "", "9")


def _node_version(folder: Path, package: dict[str, object]) -> str | None:
    told = _strings(package.get("engines")).get("node")
    for name in (".nvmrc", ".node-version"):
        if not told and (folder / name).is_file():
            told = (folder / name).read_text(encoding="utf-8", errors="replace").strip()[:100]
    return told or None
