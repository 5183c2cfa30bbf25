"""A judge's browser: it opens pages and acts with the witness language's own steps, as a user would.

No script, no shell, no other address. One page an application is open at a time, for the length of a conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from playwright.sync_api import Error as PlaywrightError
from pydantic import BaseModel

from bench.errors import InfraError
from evaluator.browser import AppPage, PageHung
from evaluator.browser_tools import effects, shots
from evaluator.browser_tools.effects import NetworkLog
from evaluator.browser_tools.snapshots import snapshot as snapshot_of
from evaluator.judges.judge import Running
from evaluator.judges.model.unseen import mark_unseen, unseen_texts
from evaluator.replay.act import act, why_not
from evaluator.replay.inside import READ_MS, is_seen
from evaluator.replay.stage import NotShown, Stage
from evaluator.replay.watch import watch
from evaluator.witness import Action, Step, Target, Viewport, WitnessError, describe, load_witness
from evaluator.witness.checks import Polled

App = Literal["submission", "start"]
Log = Literal["console", "network", "storage", "dialogs", "downloads", "popups", "clipboard"]
MAX_STEPS = 12
MAX_SNAPSHOT_CHARS = 8_000
STEP_S = 25.0
LOOK_S = 15.0
_ENOUGH = {"expect": "url", "contains": "/"}
_BOX = """e => { const b = e.getBoundingClientRect();
  const text = e.innerText || e.value || e.getAttribute('aria-label') || '';
  return {tag: e.tagName.toLowerCase(), text: text.slice(0, 120),
          x: Math.round(b.x), y: Math.round(b.y), width: Math.round(b.width), height: Math.round(b.height)}; }"""


class BrowsingError(Exception):
    """What was asked cannot be done; the message is for whoever asked."""


class Browsing:
    """Pages of a conversation; closed with `close`. Used in the case's own thread."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._stacks: dict[App, ExitStack] = {}
        self._stages: dict[App, Stage] = {}
        self._networks: dict[App, NetworkLog] = {}

    def close(self) -> None:
        for stack in self._stacks.values():
            stack.close()
        self._stacks.clear()
        self._stages.clear()

    def open(self, app: App, path: str, viewport: Viewport, *, clock: bool = False, touch: bool = False) -> str:
        """A fresh visit, nothing stored from an earlier one; returns what the page shows."""
        wanted = [{"do": "open", "path": path}]
        steps(wanted)  # a bad path must not cost the page that is open
        if app in self._stacks:
            self._stacks.pop(app).close()
            self._stages.pop(app, None)
        browser = self._running.submission if app == "submission" else self._running.start
        stack = ExitStack()
        visit = stack.enter_context(browser.open(viewport=viewport, fake_clock=clock, touch=touch))
        self._networks[app] = NetworkLog().follow(visit)
        self._stacks[app], self._stages[app] = stack, Stage(visit)
        said = self.act(app, wanted)
        return f"{said}\n{self.snapshot(app)}"

    def act(self, app: App, wanted: list[dict[str, Any]]) -> str:
        """Take steps in order until one fails; one line for each, then what changed about the page."""
        program = steps(wanted)
        stage = self._stage(app)
        seen = len(stage.visit.console), len(stage.visit.dialogs)
        lines = []
        for number, step in enumerate(program, 1):
            problem, note = self._take(app, stage, step)
            came_out = f"FAILED: {problem}" if problem else "done"
            lines.append(f"{number}. {describe(step)}: {came_out}{'; ' + note if note else ''}")
            if problem:
                break
        if app in self._stages:
            lines.append(f"now at {self._place(app, stage.visit)}")
            lines += [f"console {line}" for line in stage.visit.console[seen[0] :][:10]]
            lines += [f"dialog {dialog.kind}: {dialog.message}" for dialog in stage.visit.dialogs[seen[1] :]]
        return "\n".join(lines)

    def snapshot(
        self, app: App, offset: int = 0, *, boxes: bool = False, within: Mapping[str, Any] | None = None
    ) -> str:
        """The accessibility tree from character `offset` on; what a user cannot see is marked."""
        part = target_of(within) if within else None
        with self.looking(app) as stage:
            seen = snapshot_of(stage, boxes=boxes, within=part, offset=offset, budget=MAX_SNAPSHOT_CHARS)
            text = mark_unseen(seen.text, unseen_texts(stage.visit))
        for frame in seen.frames if not offset else ():
            text += (
                f"\nframe {frame.number} at {frame.url}{'' if frame.own else ' (foreign, not loaded)'}\n{frame.text}"
            )
        if seen.next_offset is None:
            return text
        return f"{text}\n(harness: {seen.chars - seen.next_offset} more characters, from offset {seen.next_offset})"

    def find(self, app: App, target: Mapping[str, Any]) -> str:
        """How many elements a target means, and the first ten of them with their boxes."""
        wanted = target_of(target)
        with self.looking(app) as stage:
            every = stage.all(wanted)
            count = every.count()
            lines = [f"{count} in the document"]
            for number in range(min(count, 10)):
                one = every.nth(number)
                box = one.evaluate(_BOX, timeout=READ_MS)
                seen = "" if is_seen(one) else "  not visible to a user"
                place = f"at {box['x']},{box['y']} {box['width']}x{box['height']}"
                lines.append(f"{number}: <{box['tag']}> {box['text']!r} {place}{seen}")
        return "\n".join(lines)

    def screenshot(self, app: App, from_y: int | None = None) -> bytes:
        """A JPEG of the window; with `from_y` 1,500 px of the page from there on, so that text stays readable."""
        with self.looking(app) as stage:
            return (shots.window(stage) if from_y is None else shots.stretch(stage, from_y)).jpeg

    def log(self, app: App, what: Log) -> str:
        """What the page did so far in this visit."""
        with self.looking(app) as stage:
            lines = self._logged(app, stage, what)
        return "\n".join(lines[-80:]) or "nothing"

    def _logged(self, app: App, stage: Stage, what: Log) -> list[str]:  # noqa: PLR0911 - one for each log
        visit = stage.visit
        match what:
            case "console":
                return visit.console
            case "network":
                asked = self._networks[app].entries[-60:]
                lines = [f"{r.method} {r.url} {r.failure or r.status or 'no answer yet'} {r.type}" for r in asked]
                return [line.rstrip() for line in lines] + [f"refused {url}" for url in visit.refused]
            case "storage":
                kept = effects.storage(stage)
                areas = {"local": kept.local, "session": kept.session}
                lines = [
                    f"{area} {key} = {value[:500]}" for area, held in areas.items() for key, value in held.items()
                ]
                lines += [f"cookie {c.name} = {c.value[:500]}" for c in kept.cookies]
                return [*lines, *(f"database {n}" for n in kept.databases), *(f"cache {n}" for n in kept.caches)]
            case "dialogs":
                return [f"{dialog.kind}: {dialog.message}" for dialog in visit.dialogs]
            case "downloads":
                return [told(one) for one in effects.downloads(stage)]
            case "popups":
                return [told(one) for one in effects.popups(stage)]
            case "clipboard":
                return effects.clipboard(stage).splitlines()

    def _take(self, app: App, stage: Stage, step: Step) -> tuple[str, str]:
        """Take one step: why it failed, or an empty text, and a note."""
        try:
            with stage.visit.within(STEP_S):
                step = stage.resolved(step)
                if not isinstance(step, Polled):
                    return "", act(stage, step)
                finding = watch(stage, step)
                return ("" if finding.holds else "does not hold"), f"saw {finding.seen}"
        except (NotShown, ValueError) as why:
            return str(why), ""
        except PageHung as why:
            self._lose(app)
            return f"{why}; the visit is over, open the page again", ""
        except PlaywrightError as error:
            if stage.visit.crashed or not stage.visit.context.pages:
                self._lose(app)
                return "the page crashed or closed itself; open it again", ""
            return (error.message.splitlines()[0] if isinstance(step, Polled) else _why_not(stage, step, error)), ""

    def _stage(self, app: App) -> Stage:
        if app not in self._stages:
            raise BrowsingError(f"no page of the {app} is open; call open_page first")
        return self._stages[app]

    @contextmanager
    def looking(self, app: App, limit_s: float | None = None) -> Iterator[Stage]:
        """Look at an open page, `LOOK_S` at most; what goes wrong becomes a BrowsingError."""
        stage = self._stage(app)
        try:
            with stage.visit.within(limit_s or LOOK_S):
                yield stage
        except PageHung as why:
            if not stage.visit.hung:
                raise  # the other application's page, looked at beside this one
            self._lose(app)
            raise BrowsingError(f"{why}; the visit is over, open the page again") from why
        except (NotShown, ValueError) as why:
            raise BrowsingError(str(why)) from why
        except PlaywrightError as error:
            if not stage.visit.context.browser or not stage.visit.context.browser.is_connected():
                raise InfraError("the browser is gone") from error
            raise BrowsingError(error.message.splitlines()[0][:300]) from error

    def _place(self, app: App, visit: AppPage) -> str:
        try:
            return visit.page.url.removeprefix(visit.base_url.rstrip("/")) or "/"
        except PlaywrightError:
            self._lose(app)
            return "no page: the application closed it; open it again"

    def _lose(self, app: App) -> None:
        self._stages.pop(app, None)
        if app in self._stacks:
            self._stacks.pop(app).close()


def target_of(given: Mapping[str, Any]) -> Target:
    """A target of the witness language. Raises BrowsingError saying what is wrong with it."""
    try:
        return Target.model_validate(dict(given))
    except ValueError as error:
        raise BrowsingError(f"this is no target: {error}") from error


def told(result: BaseModel) -> str:
    """A tool's result in one line of JSON, without what is as ever."""
    said = json.dumps(result.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    return said.encode("utf-8", "backslashreplace").decode()  # half a character of a page's text has no UTF-8


def steps(wanted: list[dict[str, Any]]) -> list[Step]:
    """Steps of the witness language. Raises BrowsingError with the step and the field that are wrong."""
    if not 1 <= len(wanted) <= MAX_STEPS:
        raise BrowsingError(f"give 1 to {MAX_STEPS} steps at a time; got {len(wanted)}")
    try:
        program = load_witness({"schema": "cdb.witness/1", "steps": [*wanted, _ENOUGH]})
    except WitnessError as error:
        raise BrowsingError(str(error)) from error
    return list(program.steps[:-1])


def _why_not(stage: Stage, step: Action, error: PlaywrightError) -> str:
    try:
        return why_not(stage, step, error)
    except PlaywrightError:  # the page is going; its own words are all there is
        return error.message.splitlines()[0]
