"""The deadline of a tool's call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from evaluator.replay.stage import Stage

Given = ParamSpec("Given")
Result = TypeVar("Result")
CALL_S = 15.0


def tool_call(
    limit_s: float = CALL_S,
) -> Callable[[Callable[Concatenate[Stage, Given], Result]], Callable[Concatenate[Stage, Given], Result]]:
    """A tool that may keep us `limit_s` at most: then the page is given up and PageHung raised."""

    def limited(tool: Callable[Concatenate[Stage, Given], Result]) -> Callable[Concatenate[Stage, Given], Result]:
        @wraps(tool)
        def call(stage: Stage, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
            with stage.visit.within(limit_s):
                return tool(stage, *args, **kwargs)

        return call

    return limited
