"""Labels that say whose a container, volume, network or image is, so that only what is ours and dead is reaped."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import NamedTuple

OWNER = "cdb.owner"
RUN = "cdb.run"
CASE = "cdb.case"
ATTEMPT = "cdb.attempt"
ROLE = "cdb.role"
IMAGE = "cdb.image"
KEPT = "cdb-kept-"
"""How the name of a container begins that a user asked to keep: labels cannot be changed, names can."""


class Owner(NamedTuple):
    """The process that made a thing. `started` is the kernel's start time of that pid in clock ticks."""

    host: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.started}"

    @property
    def machine(self) -> str:
        """The host's name alone, whatever its boot."""
        return self.host.rsplit("-", 2)[0]

    @property
    def is_here(self) -> bool:
        return self.host == host()

    @property
    def is_dead(self) -> bool:
        """True only when known: the owner was on this host and its pid is gone or belongs to another process."""
        return self.is_here and start_time(self.pid) != self.started


def parse_owner(text: str) -> Owner | None:
    """Reads `host:pid:started`; None for anything else (a thing with an unreadable owner is never touched)."""
    match text.rsplit(":", 2):
        case [host_name, pid, started] if host_name and pid.isdigit() and started.isdigit():
            return Owner(host_name, int(pid), int(started))
    return None


def this_process() -> Owner:
    return Owner(host(), os.getpid(), start_time(os.getpid()) or 0)


@cache
def host() -> str:
    """This machine since its last boot: host name and the first digits of the boot id.

    Pids start again after a boot, and two machines (or two containers that share an engine) may have
    one name; a pid namespace of its own gets its own answer.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - the link itself is opaque to Path
    return f"{socket.gethostname()}-{boot}-{namespace}".replace(":", "-")


def start_time(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (man proc); None when no such process lives (a zombie does not)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
