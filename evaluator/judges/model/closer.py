"""Tools that look closer at an open page: pictures of a part, measures, media, frames, both applications, fingers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from evaluator.browser_tools import shots, touching
from evaluator.browser_tools.compare import compare
from evaluator.browser_tools.measures import measure
from evaluator.browser_tools.media_states import media_states
from evaluator.browser_tools.recording import MAX_SECONDS, record
from evaluator.browser_tools.results import Box
from evaluator.judges.model.browsing import App, Browsing, target_of, told
from evaluator.judges.model.toolbox import Output, Refused, Tool, ToolInput, tool
from evaluator.replay.stage import Stage


class Screenshot(ToolInput):
    from_y: int | None = Field(default=None, ge=0)
    target: dict[str, Any] | None = None
    region: Box | None = None
    app: App = "submission"

    @model_validator(mode="after")
    def _shows_one_thing(self) -> Self:
        if sum(part is not None for part in (self.from_y, self.target, self.region)) > 1:
            raise ValueError("give one of from_y, target and region, or none for the window")
        return self


class Compare(ToolInput):
    """No field: both pages as they are now."""


class Measure(ToolInput):
    target: dict[str, Any]
    to: dict[str, Any] | None = None
    app: App = "submission"


class Media(ToolInput):
    watch_ms: int = Field(default=600, ge=100, le=5_000)
    app: App = "submission"


class Record(ToolInput):
    seconds: float = Field(default=2.0, ge=0.2, le=MAX_SECONDS)
    steps: list[dict[str, Any]] = Field(default_factory=list, max_length=6)
    app: App = "submission"


class Touch(ToolInput):
    target: dict[str, Any]
    swipe: Literal["left", "right", "up", "down"] | None = None
    by: int = Field(default=200, ge=10, le=2_000)
    app: App = "submission"


@dataclass
class _Pictures:
    """How many pictures a conversation may still take."""

    left: int

    def take(self, taken: Callable[[], Output]) -> Output:
        """What `taken` gives; counted only when it gives one. Raises Refused when there are none left."""
        if not self.left:
            raise Refused("no more pictures in this conversation; use snapshot, find, measure or a witness")
        output = taken()
        self.left -= 1
        return output


def closer_tools(browsing: Browsing, pictures: int) -> list[Tool]:
    """`pictures`: how many may be taken in one conversation; 0 leaves out what gives nothing else."""
    left = _Pictures(pictures)
    tools = [
        tool(
            "measure",
            "An element's box, styles, contrast and what covers it; with `to` also how a second element lies to it.",
            Measure,
            lambda i: Output(_measured(browsing, i), i.app),
        ),
        tool(
            "media",
            "State of every audio, video and canvas element, looked at twice: do time, frames and pixels go on?",
            Media,
            lambda i: Output(_media(browsing, i), i.app),
        ),
        tool(
            "touch",
            "Tap an element, or swipe on it by so many px. Open the page with `touch` first.",
            Touch,
            lambda i: Output(_touched(browsing, i), i.app),
        ),
    ]
    pictured = [
        tool(
            "screenshot",
            "A picture of the window; of 1,500 px of the whole page `from_y` on; of a `target`; or of a `region` of "
            "the page.",
            Screenshot,
            lambda i: left.take(lambda: _shot(browsing, i)),
        ),
        tool(
            "compare",
            "Start and submission as both are open now, in one picture, and where they differ.",
            Compare,
            lambda _i: left.take(lambda: _compared(browsing)),
        ),
        tool(
            "record",
            "Film the window for some seconds while up to 6 steps are taken: one picture of the frames that differ.",
            Record,
            lambda i: left.take(lambda: _recorded(browsing, i)),
        ),
    ]
    return [*tools, *pictured] if pictures else tools


def _measured(browsing: Browsing, wanted: Measure) -> str:
    first, second = target_of(wanted.target), target_of(wanted.to) if wanted.to else None
    with browsing.looking(wanted.app) as stage:
        return told(measure(stage, first, second))


def _media(browsing: Browsing, wanted: Media) -> str:
    with browsing.looking(wanted.app) as stage:
        return told(media_states(stage, wanted.watch_ms))


def _touched(browsing: Browsing, wanted: Touch) -> str:
    target = target_of(wanted.target)
    with browsing.looking(wanted.app) as stage:
        if wanted.swipe:
            touching.swipe(stage, target, wanted.swipe, wanted.by)
        else:
            touching.tap(stage, target)
        stage.visit.settle()
    return browsing.snapshot(wanted.app)


def _shot(browsing: Browsing, wanted: Screenshot) -> Output:
    target = target_of(wanted.target) if wanted.target else None
    with browsing.looking(wanted.app) as stage:
        picture = _part(stage, wanted, target)
    return Output(note=f"{wanted.app} {told(picture.shot)}", picture=picture.jpeg)


def _part(stage: Stage, wanted: Screenshot, target: Any) -> shots.Picture:
    if target is not None:
        return shots.element(stage, target)
    if wanted.region is not None:
        return shots.region(stage, wanted.region)
    return shots.window(stage) if wanted.from_y is None else shots.stretch(stage, wanted.from_y)


def _compared(browsing: Browsing) -> Output:
    """A page that hangs costs its own visit only."""
    with browsing.looking("start") as start, browsing.looking("submission") as submission:
        pair = compare(start, submission)
    return Output(told(pair.seen), "start left, submission right", picture=pair.jpeg)


def _recorded(browsing: Browsing, wanted: Record) -> Output:
    said: list[str] = []

    def during() -> None:
        if wanted.steps:
            said.append(browsing.act(wanted.app, wanted.steps))

    with browsing.looking(wanted.app, MAX_SECONDS + 40) as stage:
        filmed = record(stage, wanted.seconds, during)
    return Output("\n".join([told(filmed.seen), *said]), wanted.app, picture=filmed.sheet)
