"""What a folder with a package.json is: which tool builds it, where the result goes, or what starts it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluator.frameworks import MANY_PAGES, OWN_SERVERS, START_PORT, Command, way_of
from evaluator.npm_install import Install, install_of, members, workspace_of
from evaluator.npm_package import BrokenPackage, Package, read_package
from evaluator.npm_tools import LEGACY_OPENSSL, output_of, tool_of

USUAL_HOMES = ("client", "frontend", "web", "app", "ui", "site", "webapp")
"""Sub-folders looked into first when the top has no package.json that makes an application."""
WORKSPACE_HOMES = ("apps", "packages")
OUTSIDE = frozenset({"node_modules", "_attachments", "_annotations"})
SERVERS = OWN_SERVERS | {"next", "nuxt", "nest", "remix-serve", "react-router-serve", "json-server"}
"""Programs of a start script that serve the application themselves."""
FILE_SERVERS = frozenset(["serve", "http-server", "live-server", "lite-server", "python", "python3", "browser-sync"])
"""Programs that serve files as they are, which our own server does better."""
DEV_SERVERS: Mapping[str, int] = {
    "vite": 5173, "react-scripts": 3000, "vue-cli-service": 8080, "webpack-dev-server": 8080, "webpack": 8080,
    "parcel": 1234, "ng": 4200, "rsbuild": 3000,
}  # fmt: skip
"""Programs that serve pages while they are worked on, and the port each takes by itself."""
NPM_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
RUNNING = ("start", "serve", "preview", "dev")
"""Scripts that may run the application, in the order in which they are tried."""
SERVER_FILES = ("server.js", "app.js", "index.js", "server.mjs", "index.mjs")
DEVELOPMENT = {"NODE_ENV": "development"}


@dataclass(frozen=True)
class NpmFacts:
    """What one package.json tells. `verdict` is a phrase for people; `broken`: it cannot be read at all.

    Commands are run in the package's own folder (`folder`), the installation in `home`.
    """

    verdict: str
    folder: Path
    home: Path
    recognised: bool = False
    broken: bool = False
    tool: str = ""
    install: Install = field(default_factory=Install)
    also: Mapping[str, Command] = field(default_factory=dict)
    """Sub-folders that scripts lead into, and how each is installed."""
    build: Command = ()
    build_at_home: bool = False
    """The build is the workspace's, which builds the packages that this one needs too."""
    output: str | None = None
    """Relative to the folder; None when `start` serves."""
    start: Command = ()
    fallback: Command = ()
    """What may serve it when the build leaves no page, or when there is no page at all."""
    port: int = START_PORT
    env: Mapping[str, str] = field(default_factory=dict)
    spa: bool = False
    base_path: str = "/"
    page_may_stay: bool = False
    """The page may be one of the sources, with the build only making what it refers to."""
    node: str | None = None


def package_folders(tree: Path) -> Iterator[Path]:
    """Folders with a package.json that may be the application, the likeliest first; at most two down."""
    places = [tree, *(tree / name for name in USUAL_HOMES)]
    places += [folder for home in WORKSPACE_HOMES for folder in _subfolders(tree / home)]
    places += list(_subfolders(tree))
    found = [folder for folder in dict.fromkeys(places) if (folder / "package.json").is_file()]
    if members(tree) or (found[1:] and found[0] == tree and _only_delegates(tree)):
        # An application among a workspace's members comes before the workspace itself, a page before a library.
        found.sort(key=lambda folder: (folder == tree, not (folder / "index.html").is_file()))
    yield from found


def _only_delegates(tree: Path) -> bool:
    """Whether the top's scripts only lead into one sub-folder, and nothing of its own is run or built."""
    try:
        package = read_package(tree)
    except BrokenPackage:
        return False
    own = set().union(*(package.programs(name) for name in RUNNING)) & SERVERS
    return bool(package.folders()) and not own and tool_of(package) is None and way_of(package) is None


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.is_symlink() and entry.name not in OUTSIDE and not entry.name.startswith(".")
    )


def npm_facts(folder: Path, tree: Path | None = None) -> NpmFacts:
    """Reads `folder`/package.json, the configuration beside it and the workspace it belongs to (below `tree`).

    Never raises for what they hold.
    """
    home = workspace_of(folder, tree or folder)
    try:
        package = read_package(folder)
        root = read_package(home) if home != folder and (home / "package.json").is_file() else package
    except BrokenPackage as error:
        return NpmFacts(str(error), folder, home, broken=True)
    found = _recognised(package, NpmFacts("neither builds nor starts an application", folder, home))
    together = home != folder and bool(found.build) and "build" in root.scripts
    return replace(
        found,
        install=install_of(root, workspace=bool(members(home))),
        also={} if members(home) else _also(package),
        build=("npm", "run", "build") if together else found.build,
        build_at_home=together,
        env=package.example_env() | dict(found.env),
        node=package.node() or root.node(),
    )


def _recognised(package: Package, facts: NpmFacts) -> NpmFacts:  # noqa: PLR0911  (a list of rules, first match wins)
    scripts, program = package.scripts, package.program("start")
    build: Command = ("npm", "run", "build") if "build" in scripts else ()
    ejected = "react-dev-utils" in package.needs
    framework, tool, both = way_of(package), tool_of(package), _site_and_server(package)
    known = replace(facts, recognised=True, fallback=_fallback(package))
    if framework:
        name, way = framework
        return replace(
            known,
            verdict=f"{'exports' if way.output else 'serves'} with {name}",
            tool=name, build=way.build, output=way.output, start=way.start, port=way.port, env=way.env,
            base_path=way.base_path, spa=way.output is not None and name not in MANY_PAGES,
        )  # fmt: skip
    if program in SERVERS and not ejected and "start" in scripts:
        return replace(known, verdict="starts a server", tool=program, build=build, start=("npm", "run", "start"))
    if both:
        script, port = both
        start = ("npm", "run", script)
        said = f"runs a server beside its pages (`{script}`)"
        return replace(known, verdict=said, tool="servers", start=start, port=port, env=DEVELOPMENT)
    if not scripts.keys() & {"start", "build"} and tool is None and (server := _server_file(package)):
        return replace(known, verdict="starts a server", tool="node", start=("node", server))
    if tool:
        own = build or ("npm", "exec", "--no", "--", *tool.command)
        env = LEGACY_OPENSSL if package.major(tool.package) < tool.openssl_from else {}
        return replace(
            known,
            verdict=f"builds with {tool.package}",
            tool=tool.package, build=own, output=output_of(package, tool), env=env, spa=tool.spa,
            page_may_stay=tool.package == "webpack",
        )  # fmt: skip
    if build:
        output = "build" if ejected else "dist"
        return replace(
            known,
            verdict="has a build script",
            tool="script",
            build=build,
            output=output,
            spa=True,
            page_may_stay=True,
        )
    served = next((name for name in RUNNING if package.program(name) in SERVERS), None)
    if served:
        env = {} if served == "start" else DEVELOPMENT
        return replace(
            known, verdict="starts a server", tool=package.program(served), start=("npm", "run", served), env=env
        )
    return replace(facts, fallback=_fallback(package))


def _also(package: Package) -> dict[str, Command]:
    found: dict[str, Command] = {}
    for folder in package.folders():
        try:
            install = install_of(read_package(package.folder / folder), workspace=False)
        except BrokenPackage:
            continue
        if install.command:
            found[folder] = ("npm", "ci") if install.lock in NPM_LOCKS else ("npm", "install")
    return found


def _fallback(package: Package) -> Command:
    """The first script that runs something other than a server of plain files."""
    for name in RUNNING:
        programs = package.programs(name)
        if programs and not programs & FILE_SERVERS:
            return ("npm", "run", name)
    return ()


def _site_and_server(package: Package) -> tuple[str, int] | None:
    """The script that runs a development server and a server of the application's own side by side, and the port
    of the first: pages built alone would miss their other half. Not where `start` serves what was built."""
    for name in RUNNING:
        programs = package.programs(name)
        pages = next((program for program in DEV_SERVERS if program in programs), None)
        if pages and programs & SERVERS:
            return name, DEV_SERVERS[pages]
    return None


def _server_file(package: Package) -> str | None:
    """A script at the top that listens, where no script of package.json says how to start it."""
    told = package.content.get("main")
    names = [told, *SERVER_FILES] if isinstance(told, str) else list(SERVER_FILES)
    return next((name for name in names if re.search(r"\.listen\s*\(", package.text(name))), None)
