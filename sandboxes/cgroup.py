"""What the kernel counted against a container's limits: numbers that only rise while it lives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_CGROUPS = Path("/sys/fs/cgroup")
_FOLDERS = ("{controller}/docker/{id}", "{controller}/system.slice/docker-{id}.scope")
"""Below /sys/fs/cgroup, with the drivers cgroupfs and systemd; cgroup v2 has no folder for a controller."""


class _Counter(NamedTuple):
    controller: str
    files: tuple[str, ...]
    """The file's name on cgroup v1 and v2."""
    line: re.Pattern[str]


_OOM_KILLS = _Counter(
    "memory", ("memory.oom_control", "memory.events"), re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
)
_FORKS_REFUSED = _Counter("pids", ("pids.events",), re.compile(r"^max (\d+)$", re.MULTILINE))


class Counts(NamedTuple):
    """None where a count cannot be read: another machine's engine, an old kernel, a container that is gone."""

    oom_kills: int | None
    """Processes killed for memory."""
    forks_refused: int | None
    """Times a process or thread was refused for the limit on their number."""


def counts(container: str, root: Path = _CGROUPS) -> Counts:
    """The counts of the container with this full id since it started."""
    return Counts(_read(_OOM_KILLS, container, root), _read(_FORKS_REFUSED, container, root))


def _read(counter: _Counter, container: str, root: Path) -> int | None:
    for folder in _FOLDERS:
        for controller in (counter.controller, "."):
            for name in counter.files:
                place = root / folder.format(controller=controller, id=container) / name
                try:
                    found = counter.line.search(place.read_text(encoding="ascii"))
                except OSError:
                    continue
                if found:
                    return int(found[1])
    return None
