"""What a judging has spent, and its caps: per case and for the whole run. Shared by judge and refuter."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from evaluator.judges.judge import OutOfBudget
from evaluator.judges.model.settings import Caps
from evaluator.records import Usage


class Ledger:
    """One for each judging. The lock protects the totals: cases are judged in several threads."""

    def __init__(self, caps: Caps) -> None:
        self.caps = caps
        self._lock = threading.Lock()
        self._run_usd = 0.0
        self._purses: dict[str, Purse] = {}

    def carry(self, criteria: Iterable[dict[str, Any]]) -> None:
        """Take over what earlier calls of the same judging spent, from their journal records."""
        for record in criteria:
            for usage in record.get("usage", {}).values():
                self.purse(str(record["case"])).charge(Usage.model_validate(usage))

    def purse(self, case: str) -> Purse:
        with self._lock:
            return self._purses.setdefault(case, Purse(self))

    def _add(self, usd: float) -> None:
        with self._lock:
            self._run_usd += usd

    def _check_run(self) -> None:
        cap = self.caps.run_usd
        if cap is not None and self._run_usd >= cap:
            raise OutOfBudget(f"the judging's cap of {cap:g} USD is used up ({self._run_usd:.2f} spent)")


class Purse:
    """What one case may spend. Used by the case's own thread only."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._spent = Usage()
        self._worked_s = 0.0

    @property
    def caps(self) -> Caps:
        return self._ledger.caps

    def charge(self, usage: Usage) -> None:
        self._spent += usage
        self._ledger._add(usage.cost_usd or 0.0)

    def check(self) -> None:
        """Raises OutOfBudget when a cap of the case or of the run is reached: overshot by one call at most."""
        caps, spent = self.caps, self._spent
        self._ledger._check_run()
        if caps.case_usd is not None and spent.cost_usd is not None and spent.cost_usd >= caps.case_usd:
            raise OutOfBudget(f"the case's cap of {caps.case_usd:g} USD is used up ({spent.cost_usd:.2f} spent)")
        tokens = spent.input_tokens + spent.output_tokens
        if caps.case_tokens is not None and tokens >= caps.case_tokens:
            raise OutOfBudget(f"the case's cap of {caps.case_tokens:,} tokens is used up")
        if caps.case_minutes is not None and self._worked_s - spent.waited_s >= 60 * caps.case_minutes:
            raise OutOfBudget(f"the case's {caps.case_minutes:g} minutes of judging are used up")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Counts the time inside as the case's."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._worked_s += time.monotonic() - began
