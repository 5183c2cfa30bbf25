"""Heartbeat, watchdog and view of a running run: a thread that looks every few seconds and says what it sees."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from bench.atomic import write_json
from bench.errors import CdbError
from bench.terminal import safe
from runner.standing import Busy, Standing, Tallies, busy_line, standing

BEAT_S = 3.0
QUIET_S = 60.0
"""Without a terminal a run that says nothing for this long says how it stands."""


class View(Protocol):
    """Where a run is shown."""

    def event(self, line: str) -> None: ...

    def look(self, found: Standing, eta_s: float | None) -> None: ...


class PlainView:
    """Lines on standard error, no control codes: for logs and pipes."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def event(self, line: str) -> None:
        self._said = time.monotonic()
        print(safe(line), file=sys.stderr, flush=True)

    def look(self, found: Standing, eta_s: float | None) -> None:
        if time.monotonic() - self._said < QUIET_S:
            return
        busy = "; ".join(busy_line(one).strip() for one in found.busy) or "between two steps"
        self.event(f"{found.done[0]} of {found.done[1]} done; {busy}{_eta(eta_s)}")


class LiveView:
    """A block that is drawn anew at the bottom of the terminal, events scrolling above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self._text = Text
        self._live: Any = Live(console=Console(stderr=True), refresh_per_second=2, transient=True)
        self._live.start()

    def event(self, line: str) -> None:
        self._live.console.print(self._text(safe(line)))

    def look(self, found: Standing, eta_s: float | None) -> None:
        done, of = found.done
        usd = "unknown" if found.usd is None else f"{found.usd:.2f} USD"
        rows = [f"{found.name}: {done} of {of} done, spent {usd}{_eta(eta_s)}"]
        rows += [busy_line(one) for one in found.busy]
        self._live.update(self._text(safe("\n".join(rows))))

    def close(self) -> None:
        self._live.stop()


@contextmanager
def view() -> Iterator[View]:
    """A live view on a terminal that can draw; plain lines otherwise, or with NO_COLOR or TERM=dumb."""
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        yield PlainView()
        return
    live = LiveView()
    try:
        yield live
    finally:
        live.close()


@contextmanager
def watched(folder: Path, shown: View) -> Iterator[None]:
    """While the block runs: `status.json` is written every few seconds, stuck cases are named once each."""
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(folder, shown, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=30)


def _watch(folder: Path, shown: View, over: threading.Event) -> None:
    began, first, named, tallies = time.monotonic(), None, set[tuple[str, str, str]](), Tallies()
    while not over.wait(BEAT_S):
        try:
            found = standing(folder, tallies)
            write_json(folder / "status.json", {**found.as_json(), "beat": round(time.time(), 1)})
        except (CdbError, OSError) as error:
            shown.event(f"how the run stands cannot be seen: {error}")
            continue
        done, of = found.done
        first = done if first is None else first
        pace = (time.monotonic() - began) / (done - first) if done > first else None
        for one in _newly_stuck(found.busy, named):
            shown.event(f"WATCHDOG: {busy_line(one).strip()}; look at its logs, or stop the run and start it again")
        shown.look(found, None if pace is None else pace * (of - done))


def _newly_stuck(busy: list[Busy], named: set[tuple[str, str, str]]) -> list[Busy]:
    fresh = [one for one in busy if one.stuck and (one.entry, one.case, one.phase) not in named]
    named.update((one.entry, one.case, one.phase) for one in fresh)
    return fresh


def _eta(eta_s: float | None) -> str:
    return "" if eta_s is None else f", about {eta_s / 60:.0f} min left"
