"""Probes that look at the page between a witness's steps: what an action changes, and whether a user can reach it."""

from __future__ import annotations

import hashlib
from typing import Any

from playwright.sync_api import Error as PlaywrightError

from evaluator.probes.facts import Ground
from evaluator.probes.runs import on_phone
from evaluator.probes.walk import WalkEnded, begin, take, walked
from evaluator.records import ProbeFacts
from evaluator.replay.inside import ask
from evaluator.replay.stage import Stage
from evaluator.witness import Step, Target, Witness, describe, describe_target
from evaluator.witness.actions import AnswerDialogs, Emulate, Remember, Scroll, SetViewport, Wait, WaitFor
from evaluator.witness.checks import Polled

MOST_TABS = 80
_CONTROLS = "button, a, input, select, textarea, label, summary, [role=button], [role=tab], [tabindex]"
"""Masked in the picture: a pointer over them or the focus changes their look and nothing else."""
_STATE = """() => ({
  text: document.body ? document.body.innerText : '', url: location.href,
  elements: document.querySelectorAll('*').length,
  local: JSON.stringify({...localStorage}), session: JSON.stringify({...sessionStorage}),
  fields: [...document.querySelectorAll('input,select,textarea')].map(f => f.type === 'checkbox' || f.type === 'radio'
    ? f.checked : f.value).join('\\n'),
  marks: [...document.querySelectorAll('[class],[aria-pressed],[aria-expanded],[aria-checked],[aria-selected]')]
    .map(e => ['class', 'aria-pressed', 'aria-expanded', 'aria-checked', 'aria-selected'].map(n => e.getAttribute(n)))
    .join('\\n'),
  playing: [...document.querySelectorAll('audio,video')].map(m => [m.paused, m.currentSrc, m.playbackRate])
    .join('\\n'),
})"""
_IDLE = (Polled, Wait, WaitFor, Remember, Scroll, SetViewport, Emulate, AnswerDialogs)


def state_delta(ground: Ground, witness: Witness) -> ProbeFacts:
    """What each action of the witness changes: text, fields, marks, stored data, address, sound, requests, pixels.

    `against` when the last action changes nothing at all: what the witness checks was there before it."""
    program = witness.with_inputs(None)
    facts: list[str] = []
    changed, acted, ended = [], False, ""
    with ground.running.submission.open(viewport=program.viewport, fake_clock=program.advances_clock) as visit:
        try:
            stage = begin(visit, program)
            for number, step in enumerate(program.steps, 1):
                acts = not isinstance(step, _IDLE)
                before = _state(stage) if acts else {}
                take(stage, step)
                if acts:
                    visit.settle()
                    changed, acted = _delta(before, _state(stage)), True
                    facts.append(f"step {number}, {describe(step)}: " + ("; ".join(changed) or "changes nothing"))
        except WalkEnded as why:
            ended = str(why)
    if ended:
        return ProbeFacts(probe="state_delta", finding="unclear", facts=[*facts, ended], visits=1)
    if not acted:
        return ProbeFacts(probe="state_delta", finding="unclear", facts=["the witness takes no action"], visits=1)
    return ProbeFacts(probe="state_delta", finding="nothing" if changed else "against", facts=facts, visits=1)


def _state(stage: Stage) -> dict[str, Any]:
    page = stage.page
    found: dict[str, Any] = page.evaluate(_STATE)
    found["requests"] = len(stage.visit.requests)
    found["downloads"] = len(stage.visit.downloads)
    found["dialogs"] = len(stage.visit.dialogs)
    pixels = page.screenshot(animations="disabled", caret="hide", timeout=5_000, mask=[page.locator(_CONTROLS)])
    found["picture"] = hashlib.sha256(pixels).hexdigest()
    return found


def _delta(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The kinds of state that differ, texts with the first lines that came and went."""
    said = []
    for kind, then in before.items():
        if then == after[kind]:
            continue
        if kind == "text":
            old, new = then.splitlines(), after[kind].splitlines()
            came = [line for line in new if line.strip() and line not in old][:3]
            went = [line for line in old if line.strip() and line not in new][:3]
            said.append(f"text (came: {came}; went: {went})"[:400])
        elif isinstance(after[kind], int):
            said.append(f"{kind} {then} → {after[kind]}")
        else:
            said.append(kind)
    return said


def reachable(ground: Ground, witness: Witness) -> ProbeFacts:
    """Whether a user can reach what the witness acts on: visible, on screen, not covered, by keyboard, on a phone.

    `against` when an element that an action needs cannot be hit on a desktop; the rest are facts."""
    facts: list[str] = []
    missed, last = False, 0
    browser = ground.running.submission
    program = witness.with_inputs(None)
    with browser.open(viewport=program.viewport, fake_clock=program.advances_clock) as visit:
        try:
            for stage, number, step in walked(visit, program):
                target = _acted_on(step)
                if target is None:
                    continue
                last = number
                seen, fact = _hit(stage, target)
                missed = missed or not seen
                facts.append(f"step {number}, {describe_target(target)}: {fact}")
        except WalkEnded as why:
            facts.append(f"the walk ended: {why}")
    visits = 1
    if last:
        facts.append(_by_keyboard(ground, program, last))
        visits += 1
    facts.append(f"on a phone: {on_phone(ground, witness).facts[0]}")
    finding = "against" if missed else "nothing" if last else "unclear"
    return ProbeFacts(probe="reachable", finding=finding, facts=facts, visits=visits + 1)


def _acted_on(step: Step) -> Target | None:
    if isinstance(step, _IDLE) or getattr(step, "do", "") == "upload":
        return None
    return getattr(step, "target", None)


def _hit(stage: Stage, target: Target) -> tuple[bool, str]:
    try:
        if not stage.all(target, visible=True).count():
            there = stage.all(target).count()
            hidden = ask(stage.all(target), "labels") if there else 0
            return bool(hidden), "hidden behind its label" if hidden else "not visible"
        found = ask(stage.one(target), "hit")
    except PlaywrightError as error:
        return False, error.message.splitlines()[0][:200]
    if not found["on"]:
        return False, "cannot be scrolled on screen"
    if not found["hit"]:
        return False, f"covered by {found['over'] or 'something'}"
    return True, f"visible, on screen, can be hit, {found['size'][0]} × {found['size'][1]} px"


def _by_keyboard(ground: Ground, program: Witness, last: int) -> str:
    """Whether Tab gets to the last element that is acted on."""
    step = program.steps[last - 1]
    target = _acted_on(step)
    assert target is not None
    with ground.running.submission.open(viewport=program.viewport, fake_clock=program.advances_clock) as visit:
        try:
            stage = begin(visit, program)
            for one in program.steps[: last - 1]:
                take(stage, one)
            for number in range(1, MOST_TABS + 1):
                stage.page.keyboard.press("Tab")
                if stage.all(target).and_(stage.page.locator(":focus")).count():
                    return f"by keyboard: {describe_target(target)} has the focus after {number} × Tab"
        except (WalkEnded, PlaywrightError) as why:
            return f"by keyboard: {str(why).splitlines()[0][:200]}"
    return f"by keyboard: {describe_target(target)} is not reached with Tab"
