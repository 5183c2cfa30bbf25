"""The facts of a closer first look, as they lie in `evidence/CASE/`. docs/records.md explains every field."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from evaluator.browser_tools.results import MediaSeen, NetworkEntry, Region, StorageSeen
from evaluator.records import Replay, Strict


class Moment(Strict):
    """The window some time after the page was loaded. `changed`: share of px that differ from the moment before."""

    at_s: float
    picture: str
    changed: float


class Violation(Strict):
    """One rule of axe-core that the page breaks. `where`: selectors of the first elements."""

    rule: str
    impact: str
    help: str
    count: int
    where: list[str]


class Accessibility(Strict):
    """What axe-core found. `undecided`: rules it could not decide, by id."""

    axe: str
    violations: list[Violation]
    undecided: list[str]
    passed: int


class State(Strict):
    """What one action on the opening page led to. `shows`: lines of the accessibility tree that came with it."""

    action: dict[str, Any]
    """A step of the witness language; its target is what was clicked or filled."""
    path: str = ""
    title: str = ""
    changed: bool = False
    shows: list[str] = Field(default_factory=list)
    problem: str = ""


class OutsideAsk(Strict):
    """A way out of the application that leaves no request: a peer connection, a worker, a hint to the browser."""

    kind: Literal["webrtc", "service_worker", "dns-prefetch", "preconnect", "prefetch", "prerender", "ping"]
    address: str


class ClosePage(Strict):
    """`APP.facts.json` (`cdb.look/1`): one application, looked at closely. `error`: how the page ended the look."""

    app: Literal["start", "submission"]
    level: Literal["standard", "full"]
    title: str = ""
    page_px: tuple[int, int] = (0, 0)
    moments: list[Moment] = Field(default_factory=list)
    tiles: list[str] = Field(default_factory=list)
    whole: str | None = None
    frames: list[str] = Field(default_factory=list)
    network: list[NetworkEntry] = Field(default_factory=list)
    refused: list[str] = Field(default_factory=list)
    outside: list[OutsideAsk] = Field(default_factory=list)
    console: list[str] = Field(default_factory=list)
    dialogs: list[str] = Field(default_factory=list)
    popups: list[str] = Field(default_factory=list)
    media: MediaSeen | None = None
    storage: StorageSeen | None = None
    accessibility: Accessibility | None = None
    states: list[State] = Field(default_factory=list)
    states_cut: bool = False
    """There were more controls than were tried."""
    error: str = ""


class Flow(Strict):
    """A flow recorded on the start application, as a preservation witness. `witness`: its file.

    `lost`: it held on the start and failed on the submission, twice each."""

    name: str
    witness: str
    witness_sha256: str
    start: list[Replay]
    submission: list[Replay] = Field(default_factory=list)
    lost: bool = False


class Differences(Strict):
    """`differences.json` (`cdb.differences/1`): what a closer look finds different between start and submission."""

    pair: str | None
    """Both desktop windows in one picture, the start on the left."""
    share: float | None
    regions: list[Region]
    only_start: list[str]
    only_submission: list[str]
    new_failed_requests: list[str]
    new_console_errors: list[str]
    new_violations: list[str]
    mended_violations: list[str]
    lost_controls: list[str]
    new_controls: list[str]
    flows_lost: list[str]
    flows_kept: int
