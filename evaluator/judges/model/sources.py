"""A case's source as a judge may look at it: tree, reading, search, difference to the start, checked citations.

Files by which an agent gives itself away are left out of everything (`DROPPINGS`), unless the start has them.
Links are listed, never followed.
"""

from __future__ import annotations

import difflib
import re
from functools import cached_property
from pathlib import Path
from typing import Literal

from bench.tree import Entry, list_tree

Which = Literal["submission", "start"]
MAX_READ_CHARS = 16_000
MAX_LINE_CHARS = 1_000
MAX_TREE_LINES = 500
MAX_HITS = 40
MAX_SEARCHED_BYTES = 3_000_000
MAX_DIFF_BYTES = 400_000
SHORTEST_QUOTE = 8
CUT = "[cut by the harness]"
"""Stands where something was left out for length. It is in no file, so no citation of it can be right."""

_DROPPING = re.compile(
    r"(?i)(?:^|/)(?:\.aider[^/]*|\.claude(?:/|$)|\.claude\.json$|\.codex(?:/|$)|\.gemini(?:/|$)|\.qwen(?:/|$)|"
    r"\.opencode(?:/|$)|opencode\.jsonc?$|\.openhands(?:/|$)|\.cursor(?:/|$)|\.cursorrules$|\.windsurf[^/]*|"
    r"\.continue(?:/|$)|\.cline[^/]*|\.roo(?:/|$)|\.pi(?:/|$)|\.kimi(?:/|$)|\.copilot(?:/|$)|\.mini-swe-agent[^/]*|"
    r"\.github/copilot-instructions\.md$|"
    r"(?:CLAUDE|AGENTS|AGENT|GEMINI|QWEN|CODEX|CRUSH|COPILOT|OPENCODE)(?:\.local)?\.md$)"
)


class SourceError(Exception):
    """A request for source that cannot be met; the message is for whoever asked."""


class Sources:
    """Both trees of a case. Paths are those of the application, with `/`."""

    def __init__(self, submission: Path, start: Path) -> None:
        self._roots: dict[Which, Path] = {"submission": submission, "start": start}

    @cached_property
    def _files(self) -> dict[Which, dict[str, Entry]]:
        start = _by_path(self._roots["start"])
        submission = _by_path(self._roots["submission"])
        kept = {path: entry for path, entry in submission.items() if path in start or not _DROPPING.search(path)}
        return {"start": start, "submission": kept}

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """What an agent left behind, and nobody is shown."""
        shown = self._files["submission"]
        return tuple(path for path in _by_path(self._roots["submission"]) if path not in shown)

    def changed(self) -> dict[str, str]:
        """Path → `added`, `changed` or `removed` against the start."""
        before, after = self._files["start"], self._files["submission"]
        found = {
            path: "added" if path not in before else "changed" for path in after if after[path] != before.get(path)
        }
        return found | {path: "removed" for path in before if path not in after}

    def tree(self, which: Which = "submission", folder: str = "") -> str:
        """Every file below `folder` with size and what happened to it. Folders too many to list are summed up."""
        marks = self.changed() if which == "submission" else {}
        prefix = folder.strip("/") + "/" if folder.strip("/") else ""
        files = {path: entry for path, entry in self._files[which].items() if path.startswith(prefix)}
        if prefix and not files:
            raise SourceError(f"no folder {folder!r} in the {which}")
        lines = [f"{path}  {_size(entry)}  {marks.get(path, '')}".rstrip() for path, entry in sorted(files.items())]
        lines += [
            f"{path}  removed"
            for path, mark in sorted(marks.items())
            if mark == "removed" and path.startswith(prefix)
        ]
        if len(lines) <= MAX_TREE_LINES:
            return "\n".join(lines) or "(empty)"
        return _summed(files, marks, prefix)

    def read(
        self, path: str, first: int = 1, last: int | None = None, which: Which = "submission", column: int = 1
    ) -> str:
        """Numbered lines `first` to `last` (all that fit by default). Long lines are shown from `column` on."""
        lines = self._text(which, path).splitlines()
        if not lines:
            return "(empty file)"
        if first < 1 or first > len(lines):
            raise SourceError(f"{path} has lines 1 to {len(lines)}; {first} is none of them")
        shown: list[str] = []
        room = MAX_READ_CHARS
        for number in range(first, min(last or len(lines), len(lines)) + 1):
            line = lines[number - 1]
            part = line[column - 1 : column - 1 + MAX_LINE_CHARS]
            rest = len(line) - (column - 1) - len(part)
            text = f"{number}: {part}" + (
                f" {CUT}: {rest} more characters, read on from column {column + MAX_LINE_CHARS}" if rest > 0 else ""
            )
            room -= len(text) + 1
            if room < 0 and shown:
                shown.append(f"{CUT}: read on from line {number} of {len(lines)}")
                break
            shown.append(text)
        return "\n".join(shown)

    def search(self, text: str, which: Which = "submission", folder: str = "") -> str:
        """Places where `text` occurs, in any case, in text files of at most 3 MB; 40 at most."""
        wanted = text.casefold()
        hits: list[str] = []
        for path in sorted(self._files[which]):
            if not path.startswith(folder.strip("/")):
                continue
            content = self._searchable(which, path)
            for number, line in enumerate(content.splitlines(), 1):
                at = line.casefold().find(wanted)
                if at < 0:
                    continue
                piece = line[max(0, at - 120) : at + len(text) + 120].strip()
                hits.append(f"{path}:{number}: {piece}")
                if len(hits) == MAX_HITS:
                    return "\n".join([*hits, f"{CUT}: more places; search for something rarer"])
        return "\n".join(hits) or f"{text!r} occurs nowhere in the {which}'s text files"

    def difference(self, path: str | None = None) -> str:
        """Unified diff of one file against the start; without a path the list of what changed, with line counts."""
        marks = self.changed()
        if path is None:
            return "\n".join(f"{mark}: {name}" for name, mark in sorted(marks.items())) or "nothing was changed"
        if path not in marks:
            raise SourceError(f"{path} is not among the files that changed; call `diff` without a path for the list")
        before = "" if marks[path] == "added" else self._text("start", path, MAX_DIFF_BYTES)
        after = "" if marks[path] == "removed" else self._text("submission", path, MAX_DIFF_BYTES)
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "start", "submission", lineterm="", n=3)
        shown = "\n".join(line[:MAX_LINE_CHARS] + (f" {CUT}" if len(line) > MAX_LINE_CHARS else "") for line in lines)
        if len(shown) > MAX_READ_CHARS:
            shown = shown[:MAX_READ_CHARS] + f"\n{CUT}: read the file itself for the rest"
        return shown or "the text is the same; mode or bytes differ"

    def find_quote(self, path: str, quote: str) -> int:
        """The line (from 1) at which `quote` begins in the submission, white space folded. Raises SourceError."""
        folded = " ".join(quote.split())
        if len(folded.replace(" ", "")) < SHORTEST_QUOTE:
            raise SourceError(
                f"the quotation {quote!r} is too short to show anything; quote {SHORTEST_QUOTE} characters or more"
            )
        content = self._text("submission", path)
        words = [re.escape(word) for word in folded.split(" ")]
        found = re.search(r"\s+".join(words), content)
        if found is None:
            raise SourceError(f"{path} does not hold {quote[:120]!r}; quote it word for word, without line numbers")
        return content.count("\n", 0, found.start()) + 1

    def changed_texts(self) -> list[tuple[str, str]]:
        """Path and text of every added or changed text file of at most 400 kB."""
        found = []
        for path, mark in self.changed().items():
            if mark != "removed":
                text = self._searchable("submission", path, MAX_DIFF_BYTES)
                if text:
                    found.append((path, text))
        return found

    def start_text(self, path: str) -> str:
        """The start's text of a file, empty where it has none."""
        return self._searchable("start", path) if path in self._files["start"] else ""

    def _searchable(self, which: Which, path: str, limit: int = MAX_SEARCHED_BYTES) -> str:
        try:
            return self._text(which, path, limit)
        except SourceError:
            return ""

    def _text(self, which: Which, path: str, limit: int = 20_000_000) -> str:
        entry = self._files[which].get(path)
        if entry is None:
            near = difflib.get_close_matches(path, self._files[which], n=3)
            raise SourceError(
                f"no file {path!r} in the {which}" + (f"; did you mean {', '.join(near)}?" if near else "")
            )
        if entry["mode"] == "link":
            raise SourceError(f"{path} is a link to {entry.get('target', '?')!r}; read its target")
        if entry["size"] > limit:
            raise SourceError(f"{path} has {entry['size']} bytes; at most {limit} can be taken here")
        content = (self._roots[which] / path).read_bytes()
        if b"\0" in content[:8192]:
            raise SourceError(f"{path} is not text ({entry['size']} bytes)")
        return content.decode("utf-8", "replace")


def _by_path(root: Path) -> dict[str, Entry]:
    return {
        str(entry["path"]): entry
        for entry in list_tree(root)
        if "path" in entry and not str(entry["path"]).startswith(".git/")
    }


def _size(entry: Entry) -> str:
    return f"-> {entry.get('target', '?')}" if entry["mode"] == "link" else f"{entry['size']} bytes"


def _summed(files: dict[str, Entry], marks: dict[str, str], prefix: str) -> str:
    """Folders with counts, and every file that changed: the list for trees too large to be shown whole."""
    folders: dict[str, list[int]] = {}
    for path, entry in files.items():
        top = path[len(prefix) :].partition("/")[0] if "/" in path[len(prefix) :] else "."
        one = folders.setdefault(top, [0, 0])
        one[0] += 1
        one[1] += int(entry.get("size", 0))
    lines = [f"{prefix}{name}/  {count} files, {size} bytes" for name, (count, size) in sorted(folders.items())]
    changed = [f"{path}  {mark}" for path, mark in sorted(marks.items()) if path.startswith(prefix)]
    more = [f"{CUT}: {len(changed) - 300} more changed files"] if len(changed) > 300 else []
    return "\n".join([f"{len(files)} files; list one folder for more", *lines, "changed:", *changed[:300], *more])
