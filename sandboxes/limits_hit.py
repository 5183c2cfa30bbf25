"""Which limits a command ran into, told from the kernel's counts, from full volumes, and last from its own words.

A count or a full volume is a fact. A message is only the command's word, which it may print without need; it is
read of a command that failed and for which no fact was found, so that a failure gets a name, never a better one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandboxes.cgroup import Counts

Kind = Literal["memory", "processes", "disk", "inodes", "open files"]

_FULL_SHARE = 0.01
"""A volume with less than this share left counts as full: a command that fills it seldom hits the last byte."""
_TAIL_BYTES = 4096
_WORDS: tuple[tuple[bytes, Kind], ...] = (
    (b"No space left on device", "disk"),
    (b"ENOSPC", "disk"),
    (b"Too many open files", "open files"),
    (b"EMFILE", "open files"),
    (b"Resource temporarily unavailable", "processes"),
    (b"can't start new thread", "processes"),
    (b"Cannot allocate memory", "memory"),
)


@dataclass(frozen=True)
class LimitHit:
    """One limit that was reached; `place` is the volume for disk and inodes, `told`: only the command says so."""

    kind: Kind
    evidence: str
    place: str = ""
    told: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.evidence}"


def counted(before: Counts, after: Counts, *, flagged_oom: bool) -> tuple[LimitHit, ...]:
    """What rose between two readings; `flagged_oom` is the engine's own word where the count cannot be read."""
    hits = []
    kills = _rise(before.oom_kills, after.oom_kills)
    if kills or flagged_oom:
        hits.append(LimitHit("memory", f"{kills or 'some'} processes killed for it"))
    refused = _rise(before.forks_refused, after.forks_refused)
    if refused:
        hits.append(LimitHit("processes", f"{refused} times no further process or thread"))
    return tuple(hits)


def full(volumes: Mapping[str, Path]) -> tuple[LimitHit, ...]:
    """The full ones among `volumes` (path inside → the mount on this host). One that cannot be read says nothing."""
    hits = []
    for place, mount in volumes.items():
        try:
            if not mount.is_mount():  # the engine's mounts are in a namespace of its own, or on another machine
                continue
            level = os.statvfs(mount)
        except OSError:  # its folder is closed to this user
            continue
        if level.f_bavail < level.f_blocks * _FULL_SHARE:
            hits.append(LimitHit("disk", f"{place} is full ({level.f_blocks * level.f_frsize} bytes)", place))
        elif level.f_favail < level.f_files * _FULL_SHARE:
            hits.append(LimitHit("inodes", f"{place} is full ({level.f_files} files)", place))
    return tuple(hits)


def told(*outputs: Path | None) -> tuple[LimitHit, ...]:
    """What the ends of a failed command's outputs say of a limit, at most one of each kind."""
    hits: dict[Kind, LimitHit] = {}
    for output in outputs:
        if output is None or not output.is_file():
            continue
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - _TAIL_BYTES))
            tail = file.read()
        for words, kind in _WORDS:
            if words in tail:
                hits.setdefault(kind, LimitHit(kind, f"it ended with the words {words.decode()!r}", told=True))
    return tuple(hits.values())


def _rise(before: int | None, after: int | None) -> int:
    return max(0, (after or 0) - (before or 0))
