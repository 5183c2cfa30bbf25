"""The report of a run that may still go on: looked at every few seconds, written anew where something changed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.errors import CdbError, UsageError
from evaluator.report import Writer, write_waiting
from evaluator.report.put import LIST

LOOK_S = 2.0
REST = 4.0
"""Between two generations, this many times what the last one took: a large report must not eat the machine."""
WATCHED = (
    "journal.jsonl",
    "scores.json",
    "cases.json",
    "lock.json",
    "spend.json",
    "leak_audit.json",
    "audit_queue.json",
)


def find_results(folders: Sequence[Path]) -> list[Path]:
    """Results folders from what a user names: such folders themselves, a run of `cdb run`, a demo, or their parent.

    Of a run of `cdb run` those that are there, which may be none yet; any other folder without one is a UsageError.
    """
    found: list[Path] = []
    for folder in folders:
        here = _results_below(folder)
        if not here and not _planned(folder):
            raise UsageError(
                f"{folder} holds no results yet (no journal.jsonl of a judging); give a results folder, or a run's "
                "folder once its judging has begun"
            )
        found += [one for one in here if one not in found]
    return found


def _results_below(folder: Path) -> list[Path]:
    if _is_results(folder):
        return [folder]
    planned = _planned(folder)
    if planned:
        return [folder / name for name in planned if _is_results(folder / name)]
    below = [*sorted(folder.glob("results/*")), *sorted(folder.glob("*"))]
    return list(dict.fromkeys(one for one in below if _is_results(one)))


def _is_results(folder: Path) -> bool:
    """A judging's folder; a solve entry has a journal too, and no cases.json."""
    return (folder / "cases.json").is_file() and (folder / "journal.jsonl").is_file()


def _planned(folder: Path) -> list[str]:
    """Results folders that run.json names; none where it is missing or cannot be read."""
    try:
        entries = json.loads((folder / "run.json").read_text(encoding="utf-8"))["entries"]
        return [str(name) for entry in entries for name in entry["results"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


class LiveReport:
    """Writes the report of `folders` into `out` and again when a watched file has changed.

    `files` is what a server may give out. A generation that fails is told through `say`, and the one before stays.
    """

    def __init__(self, folders: Sequence[Path], out: Path, *, title: str | None, say: Callable[[str], None]) -> None:
        self._folders, self._out, self._title, self._say = list(folders), out, title, say
        self._stop = threading.Event()
        self._results: list[Path] = []
        self._writer: Writer | None = None
        self._seen: object = None
        self._files: dict[str, Path] = {}
        self.refresh()

    @property
    def home(self) -> str:
        return "index.html"

    def files(self) -> dict[str, Path]:
        """The last whole generation. No lock: the dictionary is replaced as one, never changed."""
        return self._files

    def refresh(self) -> bool:
        """Write the report anew if something changed since; True when it did. Raises CdbError, OSError."""
        results = find_results(self._folders)
        seen = [_stamp(folder / name) for folder in results for name in WATCHED] + [
            _standing(f) for f in self._folders
        ]
        if seen == self._seen:
            return False
        if self._writer is None or results != self._results:
            self._writer = (
                Writer(results, self._out / "index.html", title=self._title, live=True) if results else None
            )
            self._results = results
        told = " ".join(filter(None, map(_standing, self._folders)))
        if self._writer is None:
            page = write_waiting(self._out / "index.html", self._title or "No results yet", told)
        else:
            page = self._writer.write(told)
        self._files = _listed(page)
        self._seen = seen
        return True

    def watch(self) -> None:
        """Look until `stop`, from a thread of its own."""
        rest = LOOK_S
        while not self._stop.wait(rest):
            began = time.monotonic()
            try:
                self.refresh()
            except (CdbError, OSError) as error:
                self._say(f"the report could not be made anew: {error}")
            rest = max(LOOK_S, REST * (time.monotonic() - began))

    def stop(self) -> None:
        self._stop.set()


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_size, told.st_mtime_ns


def _standing(folder: Path) -> str:
    """How a run of `cdb run` stands, from its last heartbeat; empty when it is over or is no run."""
    try:
        told = json.loads((folder / "status.json").read_text(encoding="utf-8"))
        done, of = int(told["done"]), int(told["of"])
        if not told.get("holder") or time.time() - float(told.get("beat", 0)) > 60:
            return ""
        busy = [f"{one['case']} ({one['phase']})" for one in told["busy"]][:4]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f"{done} of {of} cases are done{': ' + ', '.join(busy) if busy else ''}. This page follows the run."


def _listed(page: Path) -> dict[str, Path]:
    folder = page.with_name(f"{page.stem}-files")
    names = json.loads((folder / LIST).read_text(encoding="utf-8"))["files"]
    return {page.name: page} | {f"{folder.name}/{name}": folder / name for name in names}
