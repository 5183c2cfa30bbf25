"""Turns at opening a page: the part of a visit that keeps a processor busy.

A visit is half a second of processor time to open and then mostly waiting. With more cases at a time than
processors, pages would open slowly and a working application might look slow; with fewer, processors idle while
witnesses wait for what does not come. So many cases run, and as many pages open at once as there are processors.
"""

from __future__ import annotations

import os
import threading

_OPENING = threading.BoundedSemaphore(max(1, len(os.sched_getaffinity(0))))


class Turn:
    """One turn, taken on entering; it ends with `done()`, at the latest on leaving."""

    def __init__(self) -> None:
        self._taken = False

    def __enter__(self) -> Turn:
        _OPENING.acquire()
        self._taken = True
        return self

    def done(self) -> None:
        """Let the next one open its page. Once more does nothing."""
        if self._taken:
            self._taken = False
            _OPENING.release()

    def __exit__(self, *_: object) -> None:
        self.done()
