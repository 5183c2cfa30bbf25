"""What a user does in a witness: one model for each `do`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from evaluator.witness.parts import Part, Point, Property, Text, Words, require_one_of, require_what
from evaluator.witness.targets import Target


def _is_inside(path: str) -> str:
    if path[:1] not in ("/", "?", "#") or path.startswith("//") or "\\" in path:
        raise ValueError(f"must be a path inside the application that starts with /, ? or #; got {path!r}")
    return path


PagePath = Annotated[str, Field(max_length=500), AfterValidator(_is_inside)]
"""A path inside the application, for example `/`, `/about.html?tab=2` or `#/settings`."""


class Open(Part):
    do: Literal["open"]
    path: PagePath


class Click(Part):
    """`at` clicks a place inside the element instead of its middle (a seek bar, a canvas). `holding` are keys held
    down meanwhile, as for choosing several things."""

    do: Literal["click", "dblclick", "right_click", "hover"]
    target: Target
    at: Point | None = None
    holding: list[Literal["Shift", "Control", "Alt", "Meta"]] | None = Field(default=None, min_length=1, max_length=3)


class Fill(Part):
    do: Literal["fill"]
    target: Target
    text: Text


class Type(Part):
    """Keystrokes one after the other, into the target or where the focus is."""

    do: Literal["type"]
    target: Target | None = None
    text: Words


class Press(Part):
    do: Literal["press"]
    target: Target | None = None
    key: str = Field(pattern=r"^((Control|Shift|Alt|Meta|ControlOrMeta)\+)*([A-Z][A-Za-z0-9]*|\S| )$")
    """A key's name as in browsers' KeyboardEvent.key (`Enter`, `ArrowLeft`, `a`), with `Control+`, `Shift+`,
    `Alt+` or `Meta+` before it."""
    times: int = Field(default=1, ge=1, le=50)


class Select(Part):
    """Choose the option with this label or value in a drop-down list."""

    do: Literal["select"]
    target: Target
    option: Text


class SetChecked(Part):
    do: Literal["check", "uncheck"]
    target: Target


class Drag(Part):
    do: Literal["drag"]
    target: Target
    to: Target
    at: Point | None = None
    to_at: Point | None = None


class Upload(Part):
    """Give a file to a file field, or to the chooser that a click on the target opens."""

    do: Literal["upload"]
    target: Target
    name: str | None = Field(default=None, pattern=r"^[^/\\]{1,100}$")
    content: str | None = Field(default=None, max_length=20_000)
    media: Literal["png", "mp3", "mp4", "pdf"] | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        require_one_of(self, ("content", "media"), at_most_one=True)
        if self.content is not None and self.name is None:
            raise ValueError("content needs a name, for example notes.txt")
        return self


class Scroll(Part):
    """Scroll the page, or the target's own content; with a target alone, bring it into view."""

    do: Literal["scroll"]
    target: Target | None = None
    to: Literal["top", "bottom"] | None = None
    by: int | None = Field(default=None, ge=-20_000, le=20_000)

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        if self.target is None or self.to is not None or self.by is not None:
            require_one_of(self, ("to", "by"), at_most_one=True)
        return self


class SetViewport(Part):
    do: Literal["viewport"]
    width: int = Field(ge=200, le=2000)
    height: int = Field(ge=200, le=2000)


class Simple(Part):
    """Reload the page, go back or forward in its history, or wipe everything the browser stored for it."""

    do: Literal["reload", "back", "forward", "clear_storage"]


class Wait(Part):
    do: Literal["wait"]
    ms: int = Field(ge=1, le=3000)


class WaitFor(Part):
    """Wait until an element is there to be seen, or gone; for what takes longer than an action waits by itself."""

    do: Literal["wait_for"]
    target: Target
    state: Literal["visible", "hidden"] = "visible"
    within_ms: int = Field(default=10_000, ge=1, le=20_000)


class Emulate(Part):
    """What the browser tells the page of its user and device from here on: colours, motion, paper, no network."""

    ONE_OF: ClassVar = ("color_scheme", "reduced_motion", "media", "offline")
    do: Literal["emulate"]
    color_scheme: Literal["light", "dark"] | None = None
    reduced_motion: bool | None = None
    media: Literal["screen", "print"] | None = None
    offline: bool | None = None


class AnswerDialogs(Part):
    """How alert, confirm and prompt are answered from here on; before it, everything is accepted."""

    do: Literal["answer_dialogs"]
    accept: bool
    text: Text | None = None


class Clock(Part):
    """Let the page's clock jump ahead and its due timers fire."""

    do: Literal["clock"]
    advance_ms: int = Field(ge=1, le=400 * 24 * 3600 * 1000)


class Remember(Part):
    """Keep what is seen now for later steps as `${as}`; a box as `${as.x}`, `.y`, `.width`, `.height`."""

    do: Literal["remember"]
    target: Target
    as_: str = Field(alias="as", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,40}$")
    what: Literal["text", "number", "value", "count", "attribute", "style", "box", "time"]
    attribute: Words | None = None
    property: Property | None = None

    @model_validator(mode="after")
    def _names_what_it_reads(self) -> Self:
        require_what(self.what, attribute=self.attribute, style=self.property)
        return self


Action = Annotated[
    Open
    | Click
    | Fill
    | Type
    | Press
    | Select
    | SetChecked
    | Drag
    | Upload
    | Scroll
    | SetViewport
    | Simple
    | Wait
    | WaitFor
    | Emulate
    | AnswerDialogs
    | Clock
    | Remember,
    Field(discriminator="do"),
]
