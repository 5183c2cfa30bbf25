"""Which states one action on the opening page leads to: every control is tried once, as a user would.

What can be acted on is read from the accessibility tree, so that each action is a step of the witness language with
a target by role and name, and a state that shows something new can be recorded as a witness.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from playwright.sync_api import Error as PlaywrightError

from evaluator.browser import AppBrowser, PageHung
from evaluator.browser_tools.snapshots import snapshot
from evaluator.first_look.facts import State
from evaluator.replay.act import act, why_not
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import Action
from evaluator.witness.actions import Simple
from evaluator.witness.program import load_witness

CLICKED = ("link", "button", "tab", "menuitem", "switch", "checkbox", "radio")
FILLED = ("textbox", "searchbox")
PROBE = "cdb probe"
ACTION_S = 8.0
MAX_SHOWN = 30
_LINE = re.compile(r'^\s*- (?P<role>[a-z]+) (?P<name>"(?:[^"\\]|\\.)*")')
_ENOUGH = {"expect": "url", "contains": "/"}


def controls(tree: str) -> list[dict[str, Any]]:
    """One step for each control of an accessibility tree whose role and name are its own, in document order."""
    found: list[tuple[str, str]] = []
    for line in tree.splitlines():
        if match := _LINE.match(line):
            found.append((match["role"], json.loads(match["name"])))
    steps: list[dict[str, Any]] = []
    for role, name in found:
        if not name or len(name) > 120 or "${" in name or found.count((role, name)) > 1:
            continue
        target = {"role": role, "name": name}
        if role in CLICKED:
            steps.append({"do": "click", "target": target})
        elif role in FILLED:
            steps.append({"do": "fill", "target": target, "text": PROBE})
    return steps


def explore(browser: AppBrowser, *, most: int, limit_s: float) -> tuple[list[State], bool]:
    """Try up to `most` controls, each from the opening page with empty storage; and whether some were left out.

    Raises PlaywrightError or PageHung only when the opening page itself cannot be had.
    """
    until, states = time.monotonic() + limit_s, list[State]()
    steps: list[dict[str, Any]] | None = None
    while steps is None or len(states) < min(len(steps), most):
        with browser.open() as visit:
            stage = Stage(visit)
            with visit.within(ACTION_S * 3):
                visit.goto("/")
            before = _lines(stage)
            if steps is None:
                steps = controls("\n".join(before))
            for state in _tried(stage, steps[len(states) : most], before, until):
                states.append(state)
        if time.monotonic() > until:
            break
    return states, len(states) < len(steps)


def _tried(stage: Stage, steps: list[dict[str, Any]], before: list[str], until: float) -> Iterator[State]:
    """States one after the other on one visit; ends early with the state whose page was lost."""
    clear = Simple(do="clear_storage")
    for number, step in enumerate(steps):
        if time.monotonic() > until:
            return
        try:
            with stage.visit.within(ACTION_S * 3):
                if number:
                    act(stage, clear)
                    stage.visit.goto("/")
        except (PlaywrightError, PageHung):
            return  # the next visit begins with this step
        state = _state(stage, step, before)
        yield state
        if stage.visit.hung or stage.visit.crashed:
            return
        _close_popups(stage)


def _state(stage: Stage, step: dict[str, Any], before: list[str]) -> State:
    state = State(action=step)
    try:
        for action in program_of(step):
            if problem := _taken(stage, action):
                state.problem = problem
                return state
        known = set(before)
        state.shows = [line for line in _lines(stage) if line not in known][:MAX_SHOWN]
        state.path = urlunsplit(("", "", *urlsplit(stage.page.url)[2:]))[:300]
        state.title = stage.page.title()[:200]
    except PageHung:
        state.problem = "the page stopped answering"
    except PlaywrightError as error:
        state.problem = error.message.splitlines()[0][:300]
    state.changed = bool(state.shows) or state.path not in ("", _opening(stage))
    return state


def _taken(stage: Stage, action: Action) -> str:
    """Why the action could not be taken; empty when it was. Raises PageHung."""
    try:
        with stage.visit.within(ACTION_S):
            act(stage, action)
            stage.visit.settle()
    except NotShown as why:
        return str(why)
    except PlaywrightError as error:
        return _problem(stage, action, error)
    return ""


def _problem(stage: Stage, action: Action, error: PlaywrightError) -> str:
    if stage.visit.crashed or not stage.visit.context.pages:
        return "the page crashed or closed itself"
    try:
        with stage.visit.within(ACTION_S):
            return why_not(stage, action, error)[:300]
    except (PlaywrightError, PageHung):  # the page is going; the error's own words are all there is
        return error.message.splitlines()[0][:300]


def _opening(stage: Stage) -> str:
    return urlsplit(stage.visit.base_url.rstrip("/") + "/").path


def program_of(step: dict[str, Any]) -> list[Action]:
    """The step as the witness language's own; a text that is filled in is sent with Enter."""
    return list(load_witness({"schema": "cdb.witness/1", "steps": [*steps_of(step), _ENOUGH]}).steps[:-1])  # type: ignore[arg-type]


def steps_of(step: dict[str, Any]) -> list[dict[str, Any]]:
    if step["do"] != "fill":
        return [step]
    return [step, {"do": "press", "target": step["target"], "key": "Enter"}]


def _lines(stage: Stage) -> list[str]:
    tree = snapshot(stage, boxes=False, frames=False, budget=100_000).text
    return [line.strip() for line in tree.splitlines()]


def _close_popups(stage: Stage) -> None:
    for page in stage.visit.context.pages[1:]:
        try:
            page.close()
        except PlaywrightError:
            continue  # it closed itself


def named(line: str) -> tuple[str, str] | None:
    """Role and name of a line of the tree; None for one without a name."""
    match = _LINE.match(line)
    return (match["role"], json.loads(match["name"])) if match else None
