"""Running independent, idempotent jobs: one thread each, at most `concurrency` at a time."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from bench.errors import Interrupted

Item = TypeVar("Item")
Result = TypeVar("Result")


class StopFlag:
    """Set once when the run is asked to stop; jobs look at it between steps."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.signal_number = 0

    def set(self, signal_number: int) -> None:
        self.signal_number = signal_number
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def raise_if_set(self) -> None:
        """Raises Interrupted when the run was asked to stop."""
        if self._event.is_set():
            raise Interrupted(self.signal_number)


@contextmanager
def stopping_on_signals(on_stop: Callable[[], None]) -> Iterator[StopFlag]:
    """Turn SIGINT and SIGTERM into a StopFlag; `on_stop` runs once, so that blocked jobs can be freed.

    For the main thread only. The handlers that were there before are put back.
    """
    flag = StopFlag()

    def handle(number: int, _frame: FrameType | None) -> None:
        first = not flag.is_set()
        flag.set(number)
        if first:
            threading.Thread(target=on_stop, daemon=True).start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_all(
    job: Callable[[Item], Result], items: Iterable[Item], *, concurrency: int, stop: StopFlag
) -> Iterator[Result]:
    """Yield each job's result as it ends. After a stop no new job is begun; then Interrupted is raised.

    A job is expected to catch what it can turn into a record; what it raises ends the run.
    """
    queue = iter(items)
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        running: set[Future[Result]] = set()
        while True:
            while len(running) < concurrency and not stop.is_set():
                try:
                    running.add(pool.submit(job, next(queue)))
                except StopIteration:
                    break
            if not running:
                break
            done, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    stop.raise_if_set()
