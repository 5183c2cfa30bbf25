"""How a run stands, from what its steps have written: nothing is kept twice, so a killed run can be asked as well."""

from __future__ import annotations

import fcntl
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.activity import Doing, read_activity
from bench.atomic import write_json
from bench.errors import UsageError
from bench.outcomes import TRIAL
from bench.strict_json import read_json
from runner.tally import Tally

PLAN = "run.json"
LOCK = "run.lock"
GRACE_S = 300.0
"""What a case may take beyond its own limit (containers, images, sealing) before it is called stuck."""


@dataclass(frozen=True)
class PlannedEntry:
    """One entry as run.json names it; folders relative to the run's."""

    name: str
    results: list[str]


@dataclass(frozen=True)
class RunPlan:
    """`run.json`: what a run consists of, for `cdb status` from another shell."""

    name: str
    entries: list[PlannedEntry]
    tasks: list[str]
    criteria_column: str
    limits_s: dict[str, float]
    """Seconds a case may be in a phase: `trial`, `judging`."""

    def write(self, folder: Path) -> None:
        write_json(folder / PLAN, {"schema": "cdb.run/1", **asdict(self)})


def read_plan(folder: Path) -> RunPlan:
    """Raises UsageError when `folder` is no run of `cdb run`."""
    path = folder / PLAN
    if not path.is_file():
        raise UsageError(f"{folder} is no run ({PLAN} is missing); give the folder that `cdb run` writes (`out`)")
    content = read_json(path)
    try:
        entries = [PlannedEntry(str(e["name"]), [str(r) for r in e["results"]]) for e in content["entries"]]
        limits = {str(k): float(v) for k, v in content["limits_s"].items()}
        return RunPlan(
            str(content["name"]), entries, [str(t) for t in content["tasks"]],
            str(content["criteria_column"]), limits,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} cannot be understood ({error!r}); run the same `cdb run` command again") from error


@dataclass(frozen=True)
class Busy:
    """A case at work: for how long, and whether that is longer than it may be."""

    entry: str
    case: str
    phase: str
    age_s: float
    stuck: bool


@dataclass(frozen=True)
class EntryStanding:
    """One entry: outcomes of its last trials, and for each results folder the criteria with and without verdict."""

    name: str
    tasks: int
    trials: dict[str, int]
    judged: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Standing:
    """A whole run. `holder`: who runs it now; "" when nobody does."""

    name: str
    holder: str
    entries: list[EntryStanding]
    busy: list[Busy]
    usd: float | None
    last_events: list[str] = field(default_factory=list)

    @property
    def done(self) -> tuple[int, int]:
        """Cases finished and cases in all, a trial and a judging counting one each."""
        finished = sum(
            sum(n for outcome, n in entry.trials.items() if TRIAL[outcome].counts != "unscored")
            + sum(told["cases"] for told in entry.judged.values())
            for entry in self.entries
        )
        return finished, sum(entry.tasks * (1 + len(entry.judged)) for entry in self.entries)

    def as_json(self) -> dict[str, Any]:
        return {"schema": "cdb.status/1", **asdict(self), "done": self.done[0], "of": self.done[1]}


class Tallies:
    """The journals of a run, each read on from where the last look left it."""

    def __init__(self) -> None:
        self._known: dict[Path, Tally] = {}

    def of(self, journal: Path) -> Tally:
        return self._known.setdefault(journal, Tally(journal)).read_on()


def standing(folder: Path, tallies: Tallies | None = None) -> Standing:
    """How the run in `folder` stands now; `tallies` makes the next look cheap.

    Raises UsageError when it is no run, DataError for a damaged journal.
    """
    plan, tallies = read_plan(folder), tallies or Tallies()
    entries, busy, costs = [], [], []
    for planned in plan.entries:
        solved = tallies.of(folder / planned.name / "journal.jsonl")
        judged = {name: tallies.of(folder / name / "journal.jsonl") for name in planned.results}
        costs += [solved.usd, *(tally.usd for tally in judged.values())]
        told = {
            name: {"cases": len(t.cases), "criteria": t.decided, "unscored": len(t.criteria) - t.decided}
            for name, t in judged.items()
        }
        entries.append(EntryStanding(planned.name, len(plan.tasks), solved.outcomes(), told))
        for place in (planned.name, *planned.results):
            busy += [_busy(planned.name, doing, plan) for doing in read_activity(folder / place)]
    known = [cost for cost in costs if cost is not None]
    usd = round(sum(known), 6) if len(known) == len(costs) else None
    return Standing(plan.name, _holder(folder / LOCK), entries, busy, usd, last_events(folder))


def last_events(folder: Path, count: int = 8) -> list[str]:
    """The last lines of the run's log."""
    path = folder / "run.log"
    if not path.is_file():
        return []
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 8192))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    return lines[-count:]


def _busy(entry: str, doing: Doing, plan: RunPlan) -> Busy:
    age = max(0.0, time.time() - doing.since)
    limit = plan.limits_s.get(doing.phase)
    return Busy(entry, doing.case, doing.phase, round(age, 1), limit is not None and age > limit + GRACE_S)


def _holder(lock: Path) -> str:
    """Who holds the run's lock: pid and host, or "" when it is free."""
    try:
        with lock.open("r", encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return stream.read().strip() or "another process"
    except FileNotFoundError:
        pass
    return ""


def lines(found: Standing) -> list[str]:
    """What `cdb status` prints."""
    state = f"running ({found.holder})" if found.holder else "not running; the same `cdb run` command goes on with it"
    done, of = found.done
    usd = "unknown" if found.usd is None else f"{found.usd:.2f} USD"
    said = [f"{found.name}: {state}; {done} of {of} done; spent {usd}"]
    for entry in found.entries:
        trials = " ".join(f"{outcome} {n}" for outcome, n in entry.trials.items()) or "nothing yet"
        said.append(f"  {entry.name}: solved {sum(entry.trials.values())}/{entry.tasks} ({trials})")
        said += [
            f"    {name}: {told['cases']}/{entry.tasks} cases, {told['criteria']} verdicts, "
            f"{told['unscored']} unscored"
            for name, told in entry.judged.items()
        ]
    said += [busy_line(one) for one in found.busy]
    return [*said, *(f"  | {event}" for event in found.last_events)]


def busy_line(one: Busy) -> str:
    mark = "STUCK " if one.stuck else ""
    return f"  {mark}{one.entry}: {one.case} in {one.phase} for {one.age_s:.0f} s"
