"""The tools judge and refuter share: the source, and the running applications."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from evaluator.judges.model.browsing import Browsing, Log
from evaluator.judges.model.closer import closer_tools
from evaluator.judges.model.sources import Sources
from evaluator.judges.model.toolbox import Output, Tool, ToolInput, tool
from evaluator.witness import Viewport

App = Literal["submission", "start"]


class ListFiles(ToolInput):
    folder: str = ""
    app: App = "submission"


class ReadFile(ToolInput):
    path: str
    first_line: int = Field(default=1, ge=1)
    last_line: int | None = Field(default=None, ge=1)
    column: int = Field(default=1, ge=1)
    app: App = "submission"


class Search(ToolInput):
    text: str = Field(min_length=2, max_length=200)
    folder: str = ""
    app: App = "submission"


class Diff(ToolInput):
    path: str | None = None


class OpenPage(ToolInput):
    path: str = "/"
    app: App = "submission"
    width: int = Field(default=1280, ge=200, le=2000)
    height: int = Field(default=800, ge=200, le=2000)
    clock: bool = False
    touch: bool = False


class Act(ToolInput):
    steps: list[dict[str, Any]] = Field(min_length=1, max_length=12)
    app: App = "submission"


class Snapshot(ToolInput):
    offset: int = Field(default=0, ge=0)
    boxes: bool = False
    within: dict[str, Any] | None = None
    app: App = "submission"


class Find(ToolInput):
    target: dict[str, Any]
    app: App = "submission"


class PageLog(ToolInput):
    what: Log
    app: App = "submission"


def source_tools(sources: Sources) -> list[Tool]:
    return [
        tool(
            "list_files",
            "Every file with its size, and whether it was added or changed against the start.",
            ListFiles,
            lambda i: Output(sources.tree(i.app, i.folder), i.app),
        ),
        tool(
            "read_file",
            "Numbered lines of a text file. Read a range; long lines go on from `column`.",
            ReadFile,
            lambda i: Output(sources.read(i.path, i.first_line, i.last_line, i.app, i.column), i.app),
        ),
        tool(
            "search",
            "Places where a text occurs in the source, in any case. No pattern, just text.",
            Search,
            lambda i: Output(sources.search(i.text, i.app, i.folder), i.app),
        ),
        tool(
            "diff",
            "One file's changes against the start; without a path the list of what changed.",
            Diff,
            lambda i: Output(sources.difference(i.path)),
        ),
    ]


def browser_tools(browsing: Browsing, *, pictures: int) -> list[Tool]:
    """`pictures`: how many pictures may be taken; 0 leaves the tools out that give nothing else."""
    tools = [
        tool(
            "open_page",
            "A fresh visit with empty storage. `clock` lets `clock` steps jump in time, `touch` is a touch screen. "
            "Shows the page's snapshot.",
            OpenPage,
            lambda i: Output(
                browsing.open(i.app, i.path, Viewport(width=i.width, height=i.height), clock=i.clock, touch=i.touch),
                i.app,
            ),
        ),
        tool(
            "act",
            "Up to 12 steps of the witness language (actions and checks) on the open page, as a user would.",
            Act,
            lambda i: Output(browsing.act(i.app, i.steps), i.app),
        ),
        tool(
            "snapshot",
            "The open page's accessibility tree, with `boxes` or only `within` a target. What a user cannot see is "
            "marked.",
            Snapshot,
            lambda i: Output(browsing.snapshot(i.app, i.offset, boxes=i.boxes, within=i.within), i.app),
        ),
        tool(
            "find",
            "Which elements a target of the witness language means: tag, text, box, visible or not.",
            Find,
            lambda i: Output(browsing.find(i.app, i.target), i.app),
        ),
        tool(
            "page_log",
            "Console, network, storage, dialogs, downloads, popups or clipboard of the open page's visit.",
            PageLog,
            lambda i: Output(browsing.log(i.app, i.what), f"{i.app}, {i.what}"),
        ),
    ]
    return [*tools, *closer_tools(browsing, pictures)]
