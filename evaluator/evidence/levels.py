"""How much is looked at and kept. A level is part of a judging's lock."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from bench.errors import UsageError

EvidenceLevel = Literal["minimal", "standard", "full"]
LEVELS: tuple[EvidenceLevel, ...] = get_args(EvidenceLevel)


class Depth(NamedTuple):
    """What a closer first look does, and what is kept of visits."""

    level: Literal["standard", "full"]
    controls: int
    """How many controls of the opening page are tried."""
    explore_s: float
    flows: int
    tiles: int
    films_s: float
    records_visits: bool
    """HAR and Playwright trace of the first look and of every witness's first run."""


STANDARD = Depth("standard", controls=10, explore_s=40, flows=5, tiles=6, films_s=0, records_visits=False)
FULL = Depth("full", controls=25, explore_s=120, flows=12, tiles=12, films_s=3, records_visits=True)


def depth_of(level: EvidenceLevel) -> Depth | None:
    """None for `minimal`: the first look at desktop and phone size is all."""
    return {"minimal": None, "standard": STANDARD, "full": FULL}[level]


def level_named(name: str) -> EvidenceLevel:
    """Raises UsageError naming the levels there are."""
    for level in LEVELS:
        if level == name:
            return level
    raise UsageError(f"--evidence {name}: there are {', '.join(LEVELS)}")


def records_visits(level: EvidenceLevel) -> bool:
    depth = depth_of(level)
    return bool(depth and depth.records_visits)
