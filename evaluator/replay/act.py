"""The actions of a witness, done as a user does them: on what is visible, enabled and not covered."""

from __future__ import annotations

import time
from importlib import resources
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import FilePayload, Locator, Position
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from evaluator.browser import LOAD_TIMEOUT_MS
from evaluator.replay.inside import READ_MS, ask, only_seen
from evaluator.replay.readings import first_number, fold, plain
from evaluator.replay.stage import NotShown, Stage
from evaluator.witness import Action, Target
from evaluator.witness import actions as a
from evaluator.witness.parts import Point

_MEDIA_TYPES = {"png": "image/png", "mp3": "audio/mpeg", "mp4": "video/mp4", "pdf": "application/pdf"}
_EXACT_CLOCK_MS = 600_000
_WHEEL_FAR = 1_000_000
POLL_MS = 50
_CLEAR = """async () => {
  for (const one of await indexedDB.databases()) indexedDB.deleteDatabase(one.name);
  if (self.caches) for (const name of await caches.keys()) await caches.delete(name);
}"""


def act(stage: Stage, step: Action) -> str:
    """Do `step`; returns a note on what was seen, usually empty.

    A machine under load must not look like a broken application: where nothing stood in the way and only
    time ran out, the action gets four times as long, and one whose input was already given counts as done
    once the page answers again. Raises NotShown (words for people) or a Playwright error."""
    try:
        return _do(stage, step)
    except PlaywrightTimeout as error:
        target = getattr(step, "target", None)
        if target is None or "net::ERR" in error.message:
            raise
        if "performing " in error.message:
            stage.page.evaluate("0")
            return "the page was slow to take it"
        if _obstacle(error.message) or not stage.all(target, visible=True).count():
            raise
    stage.stretch = 4.0
    try:
        return _do(stage, step)
    finally:
        stage.stretch = 1.0


def _do(stage: Stage, step: Action) -> str:  # noqa: PLR0912 - one line for each word of the language
    page = stage.page
    match step:
        case a.Open():
            status = stage.visit.goto(step.path)
            return f"HTTP status {status}" if status and status >= 400 else ""
        case a.Click():
            _point(stage, step)
        case a.Fill():
            stage.one(step.target).fill(step.text, timeout=stage.action_ms)
        case a.Type():
            if step.target is None:
                page.keyboard.type(step.text)
            else:
                stage.one(step.target).press_sequentially(step.text, timeout=stage.action_ms)
        case a.Press():
            if step.target is None:
                for _ in range(step.times):
                    page.keyboard.press(step.key)
            else:
                stage.one(step.target).press(step.key, timeout=stage.action_ms)
                for _ in range(step.times - 1):  # the focus stays where the first one put it
                    page.keyboard.press(step.key)
        case a.Select():
            stage.one(step.target).select_option(step.option, timeout=stage.action_ms)
        case a.SetChecked():
            _set_checked(stage, step.target, step.do == "check")
        case a.Drag():
            _drag(stage, step)
        case a.Upload():
            _upload(stage, step)
        case a.Scroll():
            _scroll(stage, step)
        case a.SetViewport():
            page.set_viewport_size({"width": step.width, "height": step.height})
        case a.Simple():
            _simple(stage, step)
        case a.Wait():
            page.wait_for_timeout(step.ms)
        case a.WaitFor():
            _wait_for(stage, step)
        case a.Emulate():
            _emulate(stage, step)
        case a.AnswerDialogs():
            stage.visit.accept_dialogs, stage.visit.dialog_text = step.accept, step.text
        case a.Clock():
            jump = page.clock.run_for if step.advance_ms <= _EXACT_CLOCK_MS else page.clock.fast_forward
            jump(step.advance_ms)
        case a.Remember():
            return _remember(stage, step)
    return ""


def _point(stage: Stage, step: a.Click) -> None:
    found = stage.one(step.target)
    spot = _spot(stage, found, step.at)
    keys = step.holding
    match step.do:
        case "click":
            found.click(position=spot, timeout=stage.action_ms, modifiers=keys)
        case "dblclick":
            found.dblclick(position=spot, timeout=stage.action_ms, modifiers=keys)
        case "right_click":
            found.click(button="right", position=spot, timeout=stage.action_ms, modifiers=keys)
        case "hover":
            found.hover(position=spot, timeout=stage.action_ms, modifiers=keys)


def _spot(stage: Stage, found: Locator, at: Point | None) -> Position | None:
    """The place `at` inside the element in px, kept off its very edge; None for the middle."""
    if at is None:
        return None
    box = found.bounding_box(timeout=stage.action_ms)
    if box is None:
        raise NotShown("the element is there but cannot be seen")
    return {"x": _inside(at.x, box["width"]), "y": _inside(at.y, box["height"])}


def _inside(share: float, length: float) -> float:
    return min(max(share * length, 1), max(length - 1, 0))


def _set_checked(stage: Stage, target: Target, wanted: bool) -> None:
    """Check or uncheck; where the box itself is hidden behind its label, click the label as a user would."""
    if stage.all(target, visible=True).count() == 0 and stage.all(target).count():
        field = stage.all(target).first
        if field.is_checked(timeout=READ_MS) == wanted:
            return
        label = field.locator("xpath=ancestor::label")
        if label.count() == 0 and (name := field.get_attribute("id", timeout=READ_MS)):
            label = stage.page.locator(f'label[for="{name}"]')
        if label.count():
            label.first.click(timeout=stage.action_ms)
            return
    stage.one(target).set_checked(wanted, timeout=stage.action_ms)


def _drag(stage: Stage, step: a.Drag) -> None:
    """Press, move in small steps, release: serves HTML drag and drop and pointer-event code alike."""
    source, goal = stage.one(step.target), stage.one(step.to)
    mouse = stage.page.mouse
    goal.wait_for(state="visible", timeout=stage.action_ms)
    source.hover(position=_spot(stage, source, step.at), timeout=stage.action_ms)
    mouse.down()
    try:
        box = goal.bounding_box(timeout=stage.action_ms)
        if box is None:
            raise NotShown("the place to drag to cannot be seen")
        share = step.to_at or Point(x=0.5, y=0.5)
        mouse.move(box["x"] + box["width"] * share.x, box["y"] + box["height"] * share.y, steps=8)
    finally:
        mouse.up()


def _upload(stage: Stage, step: a.Upload) -> None:
    if step.media is not None:
        sample = resources.files("evaluator.replay") / "media" / f"sample.{step.media}"
        content, kind = sample.read_bytes(), _MEDIA_TYPES[step.media]
    else:
        content, kind = (step.content or "").encode(), _text_type(step.name or "")
    file: FilePayload = {"name": step.name or f"sample.{step.media}", "mimeType": kind, "buffer": content}
    stage.all(step.target).first.wait_for(state="attached", timeout=stage.action_ms)
    field = stage.all(step.target).first
    if ask(field, "takesFiles"):
        field.set_input_files(file, timeout=stage.action_ms)
        return
    try:
        with stage.page.expect_file_chooser(timeout=stage.action_ms + 500) as chooser:
            stage.one(step.target).click(timeout=stage.action_ms)
    except PlaywrightTimeout as error:
        if "waiting for event" in error.message.lower() or "filechooser" in error.message.lower():
            raise NotShown("a click on it opens no file chooser") from None
        raise
    chooser.value.set_files(file, timeout=stage.action_ms)


def _text_type(name: str) -> str:
    types = {"csv": "text/csv", "json": "application/json", "html": "text/html", "md": "text/markdown"}
    return types.get(name.rpartition(".")[2].lower(), "text/plain")


def _scroll(stage: Stage, step: a.Scroll) -> None:
    """With the wheel, over the target or over the middle of the window."""
    page = stage.page
    if step.target is not None:
        found = stage.one(step.target)
        if step.to is None and step.by is None:
            found.scroll_into_view_if_needed(timeout=stage.action_ms)
            return
        found.hover(timeout=stage.action_ms)
    else:
        size = page.viewport_size or {"width": 2, "height": 2}
        page.mouse.move(size["width"] / 2, size["height"] / 2)
    far = {"top": -_WHEEL_FAR, "bottom": _WHEEL_FAR, None: step.by or 0}
    page.mouse.wheel(0, far[step.to])
    page.wait_for_timeout(80)  # the wheel's event is answered in a later frame


def _simple(stage: Stage, step: a.Simple) -> None:
    page = stage.page
    if step.do == "clear_storage":
        ask(page.locator(":root"), "forget")
        page.evaluate(_CLEAR)
        stage.visit.context.clear_cookies()
        return
    go = {"reload": page.reload, "back": page.go_back, "forward": page.go_forward}[step.do]
    go(wait_until="domcontentloaded", timeout=LOAD_TIMEOUT_MS)
    stage.visit.loaded()


def _wait_for(stage: Stage, step: a.WaitFor) -> None:
    """Raises NotShown when the time is over; a hidden element counts as gone when none of its matches is seen."""
    began, limit_s = time.monotonic(), step.within_ms / 1000
    while True:
        seen = only_seen(stage.all(step.target, visible=True)).count()
        stage.visit.answered_at = time.monotonic()
        if (seen > 0) == (step.state == "visible"):
            return
        if time.monotonic() - began >= limit_s:
            raise NotShown(f"it was still {'there' if seen else 'not there'} after {step.within_ms} ms")
        stage.page.wait_for_timeout(POLL_MS)


def _emulate(stage: Stage, step: a.Emulate) -> None:
    motion: Literal["reduce", "no-preference"] = "reduce" if step.reduced_motion else "no-preference"
    stage.page.emulate_media(
        color_scheme=step.color_scheme,
        reduced_motion=None if step.reduced_motion is None else motion,
        media=step.media,
    )
    if step.offline is not None:
        stage.visit.context.set_offline(step.offline)
    stage.visit.settle()


def _remember(stage: Stage, step: a.Remember) -> str:
    """Read the value into `stage.memory`; waits for the element as an action does."""
    if step.what == "count":
        values = {step.as_: str(stage.all(step.target, visible=True).count())}
    else:
        stage.all(step.target).first.wait_for(state="attached", timeout=stage.action_ms)
        found = stage.present(step.target)
        values = {step.as_ + suffix: value for suffix, value in _read(found, step).items()}
    if any("${" in value for value in values.values()):
        raise NotShown("what is shown holds a ${placeholder} and cannot be remembered")
    stage.memory |= values
    return ", ".join(f"{name} = {value}"[:200] for name, value in values.items())


def _read(found: Locator, step: a.Remember) -> dict[str, str]:  # noqa: PLR0911 - one line for each word
    """What is to be remembered, by the suffix of its name."""
    match step.what:
        case "value":
            return {"": found.input_value(timeout=READ_MS)}
        case "attribute":
            value = found.get_attribute(step.attribute or "", timeout=READ_MS)
            if value is None:
                raise NotShown(f"the element has no attribute {step.attribute}")
            return {"": value}
        case "style":
            return {"": ask(found, "style", step.property)}
        case "time":
            player = ask(found, "media")
            if player is None:
                raise NotShown("an element that is neither audio nor video")
            return {"": plain(player["time"])}
        case "box":
            box = found.bounding_box(timeout=READ_MS)
            if box is None:
                raise NotShown("the element is there but cannot be seen")
            return {f".{side}": plain(value) for side, value in box.items()}  # type: ignore[arg-type]
        case "number":
            text = fold(ask(found, "text"))
            number = first_number(text)
            if number is None:
                raise NotShown(f"there is no number in “{text[:100]}”")
            return {"": plain(number)}
        case _:
            return {"": fold(ask(found, "text"))[:2000]}


def why_not(stage: Stage, step: Action, error: PlaywrightError) -> str:
    """Why an action could not be done, in words a person understands, from Playwright's own log."""
    target = getattr(step, "target", None)
    if isinstance(step, a.Drag) and stage.all(step.target, visible=True).count():
        target = step.to
    log = error.message
    if "net::ERR" in log:
        return f"{urlsplit(stage.visit.base_url).netloc} gave no page: {log.split('net::')[1].split()[0]}"
    if not isinstance(error, PlaywrightTimeout):
        return log.splitlines()[0].partition(": ")[2] or log.splitlines()[0]
    if isinstance(step, a.Open) or (isinstance(step, a.Simple) and step.do != "clear_storage"):
        return "the page never came to the end of loading"
    if target is None:
        return "it took too long"
    if stage.all(target, visible=True).count():
        return _obstacle(log) or "it did not take the action in time"
    there = stage.all(target).count()
    return "the element is there but cannot be seen" if there else "there is no such element on the page"


_OBSTACLES = {
    "intercepts pointer events": "it is covered: {line}",
    "element is not enabled": "it is disabled",
    "element is not editable": "it cannot be edited",
    "element is not stable": "it never stops moving",
    "outside of the viewport": "it cannot be scrolled into view",
    "did not find some options": "it has no such option",
}
"""A phrase of Playwright's call log → what we say instead; the log's last match counts."""


def _obstacle(log: str) -> str:
    """What stood in the way, or an empty string."""
    for line in reversed(log.splitlines()):
        for phrase, said in _OBSTACLES.items():
            if phrase in line:
                return said.format(line=line.strip(" -")[:200])
    return ""
