"""An attempt: a name, what it tries, and a function that tries it and says what happened."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Facts = dict[str, Any]
"""What the host tells an attempt: its addresses, ports that wait, marks that were left elsewhere."""


class Result(NamedTuple):
    """`escaped`: the attempt succeeded. `evidence` says what was seen, either way."""

    escaped: bool
    evidence: str


class Attempt(NamedTuple):
    name: str
    group: str
    what: str
    run: Callable[[Facts], Result]


ATTEMPTS: dict[str, Attempt] = {}
"""Every attempt of the modules imported so far, in the order of their definition."""


def attempt(group: str, what: str) -> Callable[[Callable[[Facts], Result]], Callable[[Facts], Result]]:
    """Enters a function into the list, under its own name with dashes."""

    def enter(run: Callable[[Facts], Result]) -> Callable[[Facts], Result]:
        add(Attempt(run.__name__.replace("_", "-"), group, what, run))
        return run

    return enter


def add(entry: Attempt) -> None:
    if entry.name in ATTEMPTS:
        raise ValueError(f"two attempts are called {entry.name}")
    ATTEMPTS[entry.name] = entry


def refused(trial: Callable[[], object], worked: str = "it worked") -> Result:
    """Contained when `trial` ends in an OSError, whose name is the evidence."""
    try:
        got = trial()
    except OSError as error:
        return Result(False, named(error))
    return Result(True, f"{worked}: {got!r}"[:300])


def none_of(trials: Mapping[str, Callable[[], object]]) -> Result:
    """Contained when every one of the named trials ends in an OSError."""
    errors: dict[str, int] = {}
    for name, trial in trials.items():
        try:
            trial()
        except OSError as error:
            errors[named(error)] = errors.get(named(error), 0) + 1
        else:
            return Result(True, f"{name} worked")
    return Result(False, ", ".join(f"{count} × {name}" for name, count in errors.items()) or "nothing to try")


def nothing_in(found: list[str], looked_at: int, of_what: str) -> Result:
    """Contained when a search found nothing though it looked at something. Raises RuntimeError when it did not."""
    if not looked_at:
        raise RuntimeError(f"no {of_what} were looked at, so nothing is shown")
    if found:
        return Result(True, f"{len(found)} of {looked_at} {of_what}: {', '.join(found[:5])}")
    return Result(False, f"none of {looked_at} {of_what}")


def named(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))
