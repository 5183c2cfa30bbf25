"""Whether the kernel's memory killer struck in a container: a count that only rises."""

from __future__ import annotations

import re
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_PLACES = (
    "memory/docker/{id}/memory.oom_control",
    "memory/system.slice/docker-{id}.scope/memory.oom_control",
    "docker/{id}/memory.events",
    "system.slice/docker-{id}.scope/memory.events",
)
"""Cgroup v1 and v2, with the drivers cgroupfs and systemd."""
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


def oom_kills(container: str) -> int | None:
    """Processes of the container (full id) killed for memory since it started.

    None where this cannot be read: another machine's engine, a kernel before 4.13, or a container that
    is gone. The engine's own flag, which it sets when the container ends, is then all there is.
    """
    for place in _PLACES:
        try:
            text = (_CGROUPS / place.format(id=container)).read_text(encoding="ascii")
        except OSError:
            continue
        found = _COUNT.search(text)
        if found:
            return int(found[1])
    return None
