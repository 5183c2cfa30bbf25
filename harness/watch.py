"""Looking after a running agent: its own clock, a budget that is used up, and silence."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from harness.line import Line

QUIET_S = 300.0
"""Silence after which it is reported, and again at each doubling."""
_ASK_GATEWAY_S = 2.0

Why = Literal["", "timeout", "budget"]


class Watch:
    """Asked about once a second while the agent runs; True stops it, and `why` then says for what.

    Time in which a rate limit held the agent's calls back is not the agent's: its deadline moves by it. Not shared
    between threads.
    """

    def __init__(
        self,
        timeout_s: float,
        line: Line,
        outputs: tuple[Path, ...],
        report: Callable[[str], None],
        *,
        quiet_s: float = QUIET_S,
        budget_grace_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.why: Why = ""
        self.waited_s = 0.0
        self._timeout_s = timeout_s
        self._line = line
        self._outputs = outputs
        self._report = report
        self._report_at_s = quiet_s
        self._quiet_s = quiet_s
        self._grace_s = budget_grace_s
        self._clock = clock
        self._began = self._heard_at = self._asked_at = clock()
        self._size = -1
        self._calls = 0
        self._exhausted_at: float | None = None

    def __call__(self) -> bool:
        now = self._clock()
        if now - self._asked_at >= _ASK_GATEWAY_S:
            self._asked_at = now
            self._ask(now)
        self._listen(now)
        if now - self._began - self.waited_s >= self._timeout_s:
            self.why = "timeout"
        elif self._exhausted_at is not None and now - self._exhausted_at >= self._grace_s:
            self.why = "budget"
        return bool(self.why)

    @property
    def quiet_s(self) -> float:
        """How long nothing has been heard: no output and no call to the model."""
        return self._clock() - self._heard_at

    def _ask(self, now: float) -> None:
        summary = self._line.summary()
        if summary is None:
            return
        self.waited_s = summary.waited_s
        if summary.calls + summary.in_flight != self._calls:
            self._calls, self._heard_at = summary.calls + summary.in_flight, now
        if summary.exhausted and self._exhausted_at is None:
            self._exhausted_at = now

    def _listen(self, now: float) -> None:
        size = sum(path.stat().st_size for path in self._outputs if path.exists())
        if size != self._size:
            self._size, self._heard_at = size, now
            self._report_at_s = self._quiet_s
        elif now - self._heard_at >= self._report_at_s:
            self._report(f"no output for {now - self._heard_at:.0f} s")
            self._report_at_s *= 2
