"""What the browser's tools give: one model each, in CSS px and seconds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from evaluator.records import Strict


class Box(Strict):
    """Of the window's top left corner, rounded to px."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height


class FrameSeen(Strict):
    """A page within the page. `own`: it is of the application's own origin."""

    number: int
    url: str
    own: bool
    text: str
    """Its accessibility tree, without boxes; empty for a foreign one, which never loads."""


class SnapshotSeen(Strict):
    """Part of a page's accessibility tree. `next_offset`: where the rest begins; null at the end."""

    text: str
    chars: int
    next_offset: int | None = None
    frames: list[FrameSeen] = Field(default_factory=list)


class Look(Strict):
    """How one element is drawn. `contrast`: of its text against its ground (WCAG); null where the ground is a
    picture."""

    color: str
    background: str
    contrast: float | None
    font_family: str
    font_size: str
    font_weight: str
    border: str
    radius: str
    opacity: str
    display: str
    position: str
    cursor: str
    overflow: str


class Measured(Strict):
    """One element. `cut`: its content is larger than its box. `covered_by`: what lies over its middle."""

    target: str
    text: str
    box: Box
    visible: bool
    in_window: bool
    cut: bool
    covered_by: str | None
    look: Look


class Distance(Strict):
    """From the first element to the second. Gaps are between facing edges: negative where they overlap."""

    gap_x: int
    gap_y: int
    left_edges: int
    top_edges: int
    centres_x: int
    centres_y: int
    overlap: bool
    inside: bool
    """The second lies within the first."""


class Measurement(Strict):
    first: Measured
    second: Measured | None = None
    distance: Distance | None = None


class MediaState(Strict):
    """An audio or video element, looked at twice. `advancing`: its time went on between the looks."""

    kind: Literal["audio", "video"]
    source: str
    state: Literal["playing", "stalled", "paused", "ended", "failed", "empty"]
    time_s: float
    duration_s: float | None
    advancing: bool
    frames_advance: bool
    frames: int
    width: int
    height: int
    audio_bytes: int
    volume: float
    muted: bool
    rate: float
    seekable_s: float
    error: str | None
    note: str = ""
    """What cannot be told here: a picture that this browser cannot decode says so."""


class CanvasState(Strict):
    """A canvas. `blank`: nothing is drawn on it; null where the page may not read it. `changing`: between the
    looks."""

    box: Box
    visible: bool
    blank: bool | None
    colours: int
    changing: bool | None


class MediaSeen(Strict):
    """Every audio, video and canvas element of the page, shadow trees included."""

    watched_s: float
    media: list[MediaState]
    canvases: list[CanvasState]
    animations: int
    """CSS and scripted animations that run."""


class NetworkEntry(Strict):
    """One request. `status`: null where no answer came; then `failure` says why."""

    method: str
    url: str
    kind: str
    status: int | None = None
    type: str = ""
    failure: str = ""
    bytes: int | None = None

    @property
    def failed(self) -> bool:
        return bool(self.failure) or (self.status or 0) >= 400


class CookieSeen(Strict):
    name: str
    value: str
    persists: bool


class StorageSeen(Strict):
    """What the application keeps in the browser. Values are cut at 2,000 characters."""

    local: dict[str, str]
    session: dict[str, str]
    cookies: list[CookieSeen]
    databases: list[str]
    caches: list[str]


class DownloadSeen(Strict):
    """A downloaded file. `text`: its beginning where it is text; null for binary content."""

    name: str
    bytes: int
    sha256: str
    text: str | None
    failure: str = ""


class PopupSeen(Strict):
    """A further page of the visit; `current`: the one the tools look at."""

    number: int
    url: str
    title: str
    current: bool


class Shot(Strict):
    """A picture that was taken: which part of the page, and its size in px."""

    part: Literal["window", "page", "element", "region", "pair"]
    box: Box
    page_height: int
    width: int
    height: int


class Region(Strict):
    """A rectangle in which two pictures differ."""

    box: Box
    share: float
    """Of its px that differ."""


class Compared(Strict):
    """Start and submission beside each other. `share`: of the px that differ; regions, the largest first."""

    share: float
    regions: list[Region]
    start_size: tuple[int, int]
    submission_size: tuple[int, int]
    only_start: list[str]
    only_submission: list[str]
    """Lines of the accessibility tree that only one of the two has."""


class FrameShot(Strict):
    """One picture of a recording. `changed`: share of px that differ from the one before it."""

    at_s: float
    changed: float


class Recorded(Strict):
    """Pictures taken while the page went on. `moved`: something changed between them."""

    seconds: float
    frames_seen: int
    kept: list[FrameShot]
    moved: bool
    last_change_s: float | None
