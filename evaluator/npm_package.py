"""A package.json as it stands, and what its scripts come down to. Reads files only; runs nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath

from bench.errors import DataError

PREFIXES = frozenset(["npx", "bunx", "cross-env", "env", "exec", "dotenv", "time", "--", "-y", "--yes"])
"""Words before the program that a script runs."""
STARTERS = frozenset(["concurrently", "run-p", "run-s", "npm-run-all", "npm-run-all2"])
"""Programs whose arguments are scripts or whole commands."""
MANAGERS = frozenset(["npm", "pnpm", "yarn", "bun"])
SUFFIXES = ("ts", "js", "mts", "mjs", "cts", "cjs")
MAX_DEPTH = 4
MAX_FOLLOWED = 40
CONFIG_BYTES = 500_000
PACKAGE_BYTES = 4_000_000
SCRIPT_CHARS = 4_000
"""How much of a script is looked at: submissions are read here, and some mean to be tiresome."""
ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
ENV_LINE_CHARS = 2_000
EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist", "env.example")
NOT_FROM_EXAMPLES = re.compile(r"NODE_ENV|NODE_OPTIONS|PATH|HOME|(?:npm|pnpm|yarn)_.*|.*_?PROXY", re.IGNORECASE)


class BrokenPackage(DataError):
    """A package.json that cannot be read; the message goes on after its name."""


@dataclass(frozen=True)
class Package:
    """One folder's package.json, and the files beside it."""

    folder: Path
    content: dict[str, object]

    @cached_property
    def scripts(self) -> dict[str, str]:
        return {name: script[:SCRIPT_CHARS] for name, script in strings(self.content.get("scripts")).items()}

    @cached_property
    def needs(self) -> dict[str, str]:
        """Dependencies and development dependencies: name → version range."""
        return strings(self.content.get("dependencies")) | strings(self.content.get("devDependencies"))

    def major(self, name: str) -> int:
        """The major version that the range for `name` asks for; a high one where none is told (`latest`, a link)."""
        match = re.search(r"\d+", self.needs.get(name, ""))
        return int(match[0]) if match else 999

    def config(self, stem: str) -> str:
        """The text of `STEM.ts`, `STEM.js` …, whichever is there; empty when none is."""
        return "".join(self.text(f"{stem}.{suffix}") for suffix in SUFFIXES)

    def text(self, name: str) -> str:
        """The beginning of a file; empty when it is none, or lies outside the package (its own words may name it)."""
        try:
            path = (self.folder / name).resolve()
            if not path.is_file() or not path.is_relative_to(self.folder.resolve()):
                return ""
            with path.open("rb") as file:
                return file.read(CONFIG_BYTES).decode("utf-8", errors="replace")
        except (OSError, ValueError):
            return ""

    def program(self, name: str) -> str:
        """The program a script ends in: `npm run build && cross-env A=1 npx serve .` → `serve`.

        Scripts that a script runs are followed. Empty for a script that is not there.
        """
        return self._program(self.scripts.get(name, ""), MAX_DEPTH)

    def programs(self, name: str) -> set[str]:
        """The programs a script leaves running: the last of a sequence, and all that `&` or the likes of
        `concurrently` start side by side. Scripts that a script runs are followed."""
        return set(self._programs(self.scripts.get(name, ""), set()))

    def folders(self) -> list[str]:
        """Sub-folders with a package.json of their own into which scripts lead: `cd client && npm run build`."""
        found = dict.fromkeys(folder for script in self.scripts.values() for folder in _folders(script))
        return [name for name in found if name != "." and (self.folder / name / "package.json").is_file()]

    def _program(self, command: str, depth: int) -> str:
        folder, words = _last(command)[-1]
        other = self._run_by(folder, words)
        if other is not None and depth:
            return other[0]._program(other[0].scripts[other[1]], depth - 1)
        return words[0].rpartition("/")[2] if words else ""

    def _programs(self, command: str, seen: set[tuple[Path, str]]) -> Iterator[str]:
        """`seen`: scripts that were followed already, by the package's folder and their name."""
        for folder, words in _last(command):
            other = self._run_by(folder, words)
            if other is not None:
                yield from other[0]._programs_of(other[1], seen)
            elif words and words[0] in STARTERS:
                for argument in words[1:]:
                    yield from self._started_by(argument, seen)
            elif words:
                yield words[0].rpartition("/")[2]

    def _programs_of(self, script: str, seen: set[tuple[Path, str]]) -> Iterator[str]:
        if (self.folder, script) not in seen and len(seen) < MAX_FOLLOWED:
            seen.add((self.folder, script))
            yield from self._programs(self.scripts[script], seen)

    def _started_by(self, argument: str, seen: set[tuple[Path, str]]) -> Iterator[str]:
        """Programs behind one argument of `concurrently` or `npm-run-all`: a script, a pattern of them, a command."""
        pattern = re.sub(r"^(?:npm|pnpm|yarn|bun):", "", argument)
        if pattern.startswith("-"):
            return
        named = [script for script in self.scripts if fnmatchcase(script, pattern)]
        for script in named:
            yield from self._programs_of(script, seen)
        if not named and pattern == argument:
            yield from self._programs(argument, seen)

    def _run_by(self, folder: str, words: list[str]) -> tuple[Package, str] | None:
        """The package and the script of it that `npm run NAME`, `npm start`, `yarn NAME` … run from `folder`."""
        folder, words = _place(words, folder)
        try:
            package = self if folder == "." else read_package(self.folder / folder)
        except BrokenPackage:
            return None
        match words:
            case [manager, "run", name, *_] if manager in MANAGERS and name in package.scripts:
                return package, name
            case ["npm", "start" | "test" as name, *_] if name in package.scripts:
                return package, name
            case ["yarn" | "pnpm" | "bun", name, *_] if name in package.scripts:
                return package, name
        return None

    def node(self) -> str | None:
        """The Node version asked for (engines, .nvmrc, .node-version), verbatim."""
        told = strings(self.content.get("engines")).get("node")
        return told or self.text(".nvmrc").strip()[:100] or self.text(".node-version").strip()[:100] or None

    def example_env(self) -> dict[str, str]:
        """What an example of an environment file sets, where nothing but the example came with the application.

        `.env` files themselves are read by the tools that want them.
        """
        if any((self.folder / name).is_file() for name in (".env", ".env.local", ".env.production")):
            return {}
        lines = next((text for name in EXAMPLES if (text := self.text(name))), "").splitlines()
        matches = (ENV_LINE.match(line.strip()) for line in lines if len(line) < ENV_LINE_CHARS)
        found = {match[1]: _value(match[2]) for match in matches if match}
        return {key: value for key, value in found.items() if value and not NOT_FROM_EXAMPLES.fullmatch(key)}


def read_package(folder: Path) -> Package:
    """Raises BrokenPackage for a package.json that is not a JSON object."""
    file = folder / "package.json"
    try:
        if file.stat().st_size > PACKAGE_BYTES:
            raise BrokenPackage(f"is larger than {PACKAGE_BYTES / 1e6:.0f} MB")
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise BrokenPackage(f"is not readable as JSON ({error})") from error
    if not isinstance(content, dict):
        raise BrokenPackage("is not a JSON object")
    return Package(folder, content)


def strings(value: object) -> dict[str, str]:
    """The members of a JSON object whose values are strings."""
    return {key: text for key, text in value.items() if isinstance(text, str)} if isinstance(value, dict) else {}


def _commands(command: str) -> list[tuple[str, list[str], bool]]:
    """The commands of a shell command, in order: the folder that `cd` led to, the words without prefixes and
    settings, and whether the next one runs beside it (`&`) rather than after it."""
    reader = shlex.shlex(command, posix=True, punctuation_chars="&|;")
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = list(reader)
    except ValueError:  # a quotation that does not end
        words = command.split()
    found: list[tuple[str, list[str], bool]] = []
    folder, part = ".", list[str]()
    for word in [*words, ";"]:
        if word not in {"&&", "||", ";", "|", "&"}:
            if word not in PREFIXES and not re.match(r"[A-Za-z_]\w*=", word):
                part.append(word)
        elif part[:1] == ["cd"] and len(part) == 2:
            folder, part = _joined(folder, part[1]), []
        else:
            found += [(folder, part, word == "&")] if part else []
            part = []
    return found


def _last(command: str) -> list[tuple[str, list[str]]]:
    """The commands that run last, side by side where `&` parts them, with their folders: `a && X=1 npx b & c` →
    b and c. At least one, maybe empty."""
    commands = _commands(command)
    beside = [(folder, words) for folder, words, runs_on in commands[:-1] if runs_on]
    return [*beside, *((folder, words) for folder, words, _ in commands[-1:])] or [(".", [])]


def _folders(command: str) -> Iterator[str]:
    """Where the commands of a shell command run, those that the likes of `concurrently` start included."""
    for folder, words, _ in _commands(command):
        yield _place(words, folder)[0]
        if words[0] in STARTERS:
            for argument in words[1:]:
                yield from _folders(argument) if " " in argument else ()


def _place(words: list[str], folder: str) -> tuple[str, list[str]]:
    """Takes `--prefix DIR`, `-C DIR`, `--cwd DIR` out of a package manager's command; gives folder and the rest."""
    if words[:1] and words[0] in MANAGERS:
        for number, word in enumerate(words[1:], 1):
            name, _, value = word.partition("=")
            if name in {"--prefix", "-C", "--cwd", "--dir"}:
                value, end = (value, number + 1) if value else (" ".join(words[number + 1 : number + 2]), number + 2)
                return _joined(folder, value), [*words[:number], *words[end:]]
    return folder, words


def _joined(folder: str, inner: str) -> str:
    """A folder below the package; `.` for one that is not."""
    path = os.path.normpath(PurePosixPath(folder) / inner)
    return "." if path.startswith(("..", "/")) else path


def _value(text: str) -> str:
    """The value of one line of an environment file, without quotes or a comment behind it."""
    if text[:1] in {'"', "'"}:
        return text[1:].partition(text[0])[0]
    return re.split(r"\s#", text)[0].strip()
