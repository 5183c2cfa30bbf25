"""After a 429 every later call of that upstream waits, whichever trial it is of. Nothing is sent twice here."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

FIRST_S = 1.0
LONGEST_GUESS_S = 60.0
LONGEST_TOLD_S = 3600.0
JITTER = 0.25
LEAST_JITTER_S = 0.05
LARGEST_JITTER_S = 5.0


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds the upstream asks for: `retry-after-ms`, or `Retry-After` in seconds or as a date; else None."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return min(max(0.0, float(milliseconds) / 1000), LONGEST_TOLD_S)
        told = headers.get("Retry-After", "").strip()
        if not told:
            return None
        try:
            seconds = float(told)
        except ValueError:
            seconds = parsedate_to_datetime(told).timestamp() - now()
    except (ValueError, TypeError, OverflowError):
        return None
    return None if math.isnan(seconds) else min(max(0.0, seconds), LONGEST_TOLD_S)


class Pause:
    """One upstream's. Used by one event loop, so it needs no lock."""

    def __init__(self, jitter: Callable[[float, float], float] = random.uniform) -> None:
        self._until = 0.0
        self._strikes = 0
        self._length = 0.0
        self._jitter = jitter

    def limited(self, told_s: float | None) -> float:
        """A 429 came. Returns the pause's length: what was told, or a guess that doubles."""
        guess = min(FIRST_S * 2.0**self._strikes, LONGEST_GUESS_S)
        self._strikes = min(self._strikes + 1, 10)
        length = guess if told_s is None else told_s
        until = time.monotonic() + length
        if until > self._until:
            self._until, self._length = until, length
        return length

    def fine(self) -> None:
        """A call was answered: the guess starts small again. A pause that runs is not cut short."""
        self._strikes = 0

    async def wait(self) -> float:
        """Wait until the pause is over, plus a little that differs from caller to caller. Returns seconds waited."""
        began = time.monotonic()
        while (left := self._until - time.monotonic()) > 0:
            spread = min(max(LEAST_JITTER_S, self._length * JITTER), LARGEST_JITTER_S)
            await asyncio.sleep(left + self._jitter(0.0, spread))
        return time.monotonic() - began
