"""What a reader found in a file; travels from the reading process as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["audio", "video", "image", "pdf", "office", "text", "other"]


class Section(BaseModel):
    """A part of the readable text."""

    model_config = ConfigDict(extra="forbid")
    title: str
    text: str


class Picture(BaseModel):
    """A picture in the digest's folder, and what it shows."""

    model_config = ConfigDict(extra="forbid")
    file: str
    caption: str


class Found(BaseModel):
    """Facts in reading order, texts, pictures; what could not be read, and which limits cut something off."""

    model_config = ConfigDict(extra="forbid")
    kind: Kind = "other"
    facts: dict[str, str] = Field(default_factory=dict)
    sections: list[Section] = Field(default_factory=list)
    pictures: list[Picture] = Field(default_factory=list)
    unread: list[str] = Field(default_factory=list)
    limits: list[str] = Field(default_factory=list)
    speech: bool = False
    """There is sound that was decoded, so a transcript can be asked for."""

    def text(self, title: str, text: str) -> None:
        """Add a section, unless there is nothing in it."""
        if text.strip():
            self.sections.append(Section(title=title, text=text))

    def said(self, error: Exception) -> str:
        """A reader's error, the same wherever the file lies."""
        told = str(error).replace(self.hide, "the file") if self.hide else str(error)
        return f"{type(error).__name__}: {one_line(told)}"

    def limit(self, said: str) -> None:
        if said not in self.limits:
            self.limits.append(said)

    hide: str = Field(default="", exclude=True)
    """The path on this machine, which readers put into their messages."""

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """Read a part; what is wrong with the file there is noted, and the rest still read."""
        try:
            yield
        except MemoryError:
            self.unread.append(f"{what}: it needs more memory than a digest may take")
        except Exception as error:  # noqa: BLE001  (a damaged file makes its reader raise anything)
            self.unread.append(f"{what}: {self.said(error)}")


def one_line(said: object, limit: int = 300) -> str:
    """A reader's message or a file's own word in one line."""
    return " ".join(str(said).split())[:limit]


def clock(seconds: float) -> str:
    """`1:02:03.4` or `2:03.4`."""
    tenths = round(max(0.0, seconds) * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    short = f"{rest // 10:02}.{rest % 10}"
    return f"{hours}:{minutes:02}:{short}" if hours else f"{minutes}:{short}"
