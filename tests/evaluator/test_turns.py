"""As many pages open at once as there are processors, however many cases are judged at a time."""

from __future__ import annotations

import os
import threading
import time

import pytest

from evaluator.turns import Turn

PROCESSORS = len(os.sched_getaffinity(0))


def test_no_more_turns_at_once_than_processors_and_nobody_is_left_waiting() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def open_a_page() -> None:
        nonlocal now, most
        with Turn() as turn:
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 1
            turn.done()
            turn.done()  # what follows the opening is nobody else's matter, and ending twice gives no second turn
            time.sleep(0.02)

    threads = [threading.Thread(target=open_a_page) for _ in range(4 * PROCESSORS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert most == PROCESSORS


def test_a_turn_ends_with_the_visit_that_broke() -> None:
    for _ in range(PROCESSORS + 1):
        with pytest.raises(RuntimeError), Turn():
            raise RuntimeError("the browser is gone")
