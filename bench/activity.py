"""What a process is working on right now, in a file that others may read: `cdb status` and the watchdog."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

NAME = "activity.json"


class Doing(NamedTuple):
    """One case at work: its phase and since when (Unix time)."""

    case: str
    phase: str
    since: float


class Activity:
    """Keeps `folder/activity.json`; for jobs in any thread. A lost write costs a line of `cdb status`, no more."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()  # guards _doing and the file
        self._doing: dict[str, tuple[str, float]] = {}
        self._write()

    @contextmanager
    def of(self, case: str, phase: str) -> Iterator[None]:
        """While the block runs, `case` is said to be in `phase`."""
        self._set(case, (phase, time.time()))
        try:
            yield
        finally:
            self._set(case, None)

    def _set(self, case: str, what: tuple[str, float] | None) -> None:
        with self._lock:
            if what is None:
                self._doing.pop(case, None)
            else:
                self._doing[case] = what
            self._write()

    def _write(self) -> None:
        """By rename, without a flush to the disk: it is worth nothing after a crash."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{NAME}.{os.getpid()}")
        temporary.write_text(json.dumps({"pid": os.getpid(), "doing": self._doing}), encoding="utf-8")
        temporary.replace(self._path)


def read_activity(folder: Path) -> list[Doing]:
    """What is being worked on in `folder`; nothing when its process is gone."""
    try:
        content = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if not _lives(int(content["pid"])):
            return []
        return [Doing(case, str(phase), float(since)) for case, (phase, since) in content["doing"].items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
