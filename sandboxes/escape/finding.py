"""What is listed before the suite runs, and what each attempt came to."""

from __future__ import annotations

from typing import Literal, NamedTuple

Came = Literal["contained", "escaped", "unproved"]
"""unproved: the attempt itself could not be made, which shows nothing and counts as a failure of the suite."""


class Listed(NamedTuple):
    """An attempt by name. `what` completes the sentence "it tries to get at …"."""

    name: str
    group: str
    what: str

    def came(self, contained: bool, evidence: str) -> Finding:
        return Finding(*self, came="contained" if contained else "escaped", evidence=evidence)

    def unproved(self, why: str) -> Finding:
        return Finding(*self, came="unproved", evidence=why)


class Finding(NamedTuple):
    """An attempt and its end, with what was seen."""

    name: str
    group: str
    what: str
    came: Came
    evidence: str
