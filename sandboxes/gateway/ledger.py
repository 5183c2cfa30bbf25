"""A trial's budget: what was spent, what is reserved for calls under way, and who may go next.

A call goes when its estimate fits beside what is spent and reserved, or when it would be the only one under
way and the cap is not reached yet. So a cap is overshot by one call at most. Estimates can be wrong, so they are
never less than the dearest call of that model so far, and a model's very first call goes alone.
A caller that does not fit waits for the calls under way; only a cap that is really reached refuses it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from sandboxes.gateway.policy import Caps

NOTHING = 1e-9
"""USD; sums of prices are not exact, and ten times 0.1 is a cap of 1."""


class Exhausted(Exception):
    """A cap is reached; `which` is `usd`, `tokens` or `requests`."""

    def __init__(self, which: str) -> None:
        super().__init__(which)
        self.which = which


@dataclass(eq=False)
class Reservation:
    """What one call may cost at most, held until it is settled. `usd` is None where the price is unknown."""

    model: str
    usd: float | None
    tokens: int


@dataclass
class Ledger:
    """Used by one event loop, so it needs no lock: nothing here awaits between looking and reserving."""

    caps: Caps
    usd: float = 0.0
    tokens: int = 0
    requests: int = 0
    _under_way: set[Reservation] = field(default_factory=set)
    _dearest: dict[str, tuple[float, int]] = field(default_factory=dict)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    def exhausted(self) -> str:
        """The cap that is reached, or empty."""
        if self.caps.usd is not None and self.usd >= self.caps.usd - NOTHING:
            return "usd"
        if self.caps.tokens is not None and self.tokens >= self.caps.tokens:
            return "tokens"
        if self.caps.requests is not None and self.requests >= self.caps.requests:
            return "requests"
        return ""

    async def reserve(self, model: str, usd: float | None, tokens: int) -> Reservation:
        """Wait until a call of this estimate may go. Raises Exhausted."""
        while True:
            if which := self.exhausted():
                raise Exhausted(which)
            wanted = self._at_least(model, usd, tokens)
            if self._fits(wanted):
                self._under_way.add(wanted)
                return wanted
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            finally:
                if turn in self._waiting:
                    self._waiting.remove(turn)

    def settle(self, held: Reservation, usd: float | None, tokens: int, *, counts: bool) -> None:
        """The call is over and cost this. `counts`: it is one of the trial's requests."""
        self._under_way.discard(held)
        self.usd += usd or 0.0
        self.tokens += tokens
        self.requests += counts
        if counts:
            dearest = self._dearest.get(held.model, (0.0, 0))
            self._dearest[held.model] = max(dearest[0], usd or 0.0), max(dearest[1], tokens)
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

    def _at_least(self, model: str, usd: float | None, tokens: int) -> Reservation:
        dearest = self._dearest.get(model, (0.0, 0))
        return Reservation(model, None if usd is None else max(usd, dearest[0]), max(tokens, dearest[1]))

    def _fits(self, wanted: Reservation) -> bool:
        if not self._under_way:
            return True
        if wanted.model not in self._dearest and any(held.model == wanted.model for held in self._under_way):
            return False
        caps, held = self.caps, self._under_way
        if caps.requests is not None and self.requests + len(held) + 1 > caps.requests:
            return False
        if caps.tokens is not None and self.tokens + wanted.tokens + sum(h.tokens for h in held) > caps.tokens:
            return False
        usd = (wanted.usd or 0.0) + sum(h.usd or 0.0 for h in held)
        return caps.usd is None or self.usd + usd <= caps.usd + NOTHING
