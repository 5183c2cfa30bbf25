"""Probes that run a claim's witness under other conditions: inputs, repetition, profile, clock, window, mask."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from evaluator.probes.facts import Ground, from_runs
from evaluator.probes.walk import WalkEnded, begin, take
from evaluator.records import ProbeFacts
from evaluator.witness import Viewport, Witness
from evaluator.witness.checks import Polled

OTHER_WINDOW = Viewport(width=1440, height=900)
PHONE = Viewport(width=390, height=844)
MOST_SETS = 4
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def varied_inputs(ground: Ground, witness: Witness, given: Sequence[Mapping[str, str]] = ()) -> ProbeFacts:
    """The witness with other inputs: those `given`, or others of the kind of its own."""
    if not witness.inputs:
        return ProbeFacts(probe="varied_inputs", finding="unclear", facts=["the witness has no inputs to change"])
    sets = [dict(one) for one in given] or other_inputs(witness)
    runs = [(f"with {one}", ground.run(witness, inputs=one)) for one in sets[:MOST_SETS]]
    found = from_runs("varied_inputs", runs)
    if found.finding == "against" and not given:  # nobody said that these inputs are covered by the request
        found.finding = "unclear"
        found.facts.append("these inputs were made up here; look whether the request covers them")
    return found


def other_inputs(witness: Witness) -> list[dict[str, str]]:
    """Two sets of inputs of the same kind: a number becomes two others, a word another of other length."""
    return [{name: _other(value, n) for name, value in witness.inputs.items()} for n in (1, 2)]


def _other(value: str, n: int) -> str:
    if _NUMBER.fullmatch(value):
        whole = "." not in value
        number = float(value) + (1 if n == 1 else 7)
        return str(int(number)) if whole else f"{number:.2f}"
    if _NUMBER.search(value):  # a date, a code: its form is part of its meaning
        return value
    return f"{value} {'Ivo' if n == 1 else 'Maren-Lou'}"


def repeated(ground: Ground, witness: Witness) -> ProbeFacts:
    """Three fresh runs. `against` when most of them fail, as for a claim's own runs; one that fails is a fact."""
    runs = [(f"run {n}", ground.run(witness)) for n in (1, 2, 3)]
    found = from_runs("repeated", runs)
    if found.finding == "against" and [one.outcome for _, one in runs].count("failed") < 2:
        found.finding = "unclear"
    return found


def reversed_inputs(ground: Ground, witness: Witness) -> ProbeFacts:
    """All sets of inputs, the last one first, in one visit without anything reset between them."""
    sets = [dict(one) for one in [witness.inputs, *witness.vary]][::-1]
    facts, failed = [], False
    with ground.running.submission.open(viewport=witness.viewport, fake_clock=witness.advances_clock) as visit:
        for inputs in sets:
            program = witness.with_inputs(inputs)
            try:
                stage = begin(visit, program)
                for step in program.steps:
                    take(stage, step)
                facts.append(f"with {inputs}: held")
            except WalkEnded as why:
                failed = True
                facts.append(f"with {inputs}: failed: {why}")
    finding = ("unclear" if len(sets) < 2 else "against") if failed else "nothing"
    return ProbeFacts(probe="reversed_inputs", finding=finding, facts=facts, visits=1)


def after_reload(ground: Ground, witness: Witness) -> ProbeFacts:
    """The witness's last checks once more after a reload: tells what is kept from what is only shown.

    Never `against` by itself: whether it has to be kept is for the criterion to say."""
    program = witness.with_inputs(None)
    last = max((n for n, step in enumerate(program.steps) if not isinstance(step, Polled)), default=-1)
    with ground.running.submission.open(viewport=program.viewport, fake_clock=program.advances_clock) as visit:
        try:
            stage = begin(visit, program)
            for step in program.steps:
                take(stage, step)
            visit.page.reload(wait_until="domcontentloaded")
            visit.loaded()
            for step in program.steps[last + 1 :]:
                take(stage, step)
        except WalkEnded as why:
            return ProbeFacts(probe="after_reload", finding="unclear", facts=[f"after a reload: {why}"], visits=1)
    said = (
        "the last checks hold after a reload too" if last + 1 < len(program.steps) else "there is no check to repeat"
    )
    return ProbeFacts(probe="after_reload", finding="nothing", facts=[said], visits=1)


def masked(ground: Ground, witness: Witness) -> ProbeFacts:
    """Without the marks of an automated browser, in a window of another size: tells behaviour made for tests."""
    window = OTHER_WINDOW if witness.viewport == Viewport() else witness.viewport
    plain = ground.run(witness)
    hidden = ground.run(witness, masked=True, viewport=window)
    found = from_runs("masked", [("as always", plain), (f"masked, {window.width} × {window.height}", hidden)])
    if plain.outcome == hidden.outcome:
        found.finding = "nothing" if plain.outcome == "held" else "unclear"
    return found


def warm_profile(ground: Ground, witness: Witness) -> ProbeFacts:
    """Two visits with one profile: the second finds what the first has stored, as a user does who comes back."""
    program = witness.with_inputs(None)
    facts, failed = [], False
    with ground.running.submission.open(viewport=program.viewport, fake_clock=program.advances_clock) as visit:
        for name in ("cold profile", "the same profile again"):
            try:
                stage = begin(visit, program)
                for step in program.steps:
                    take(stage, step)
                facts.append(f"{name}: held")
            except WalkEnded as why:
                failed = True
                facts.append(f"{name}: failed: {why}")
    if failed:
        facts.append("a witness that counts from nothing fails in a warm profile of a right application too")
    finding = "unclear" if failed else "nothing"
    return ProbeFacts(probe="warm_profile", finding=finding, facts=facts, visits=1)


def shifted_clock(ground: Ground, witness: Witness, days: int = 200) -> ProbeFacts:
    """On another day and at another hour: tells a date that is computed from one that is written in."""
    then = datetime.now(UTC) + timedelta(days=days, hours=9)
    runs = [("today", ground.run(witness)), (f"on {then:%Y-%m-%d %H:%M}", ground.run(witness, clock_at=then))]
    return from_runs("shifted_clock", runs)


def on_phone(ground: Ground, witness: Witness) -> ProbeFacts:
    """The witness in a phone's window. Never `against` by itself: not every criterion is about phones."""
    found = from_runs("on_phone", [("390 × 844", ground.run(witness, viewport=PHONE))])
    if found.finding == "against":
        found.finding = "unclear"
    return found


def preserved(ground: Ground, flows: Mapping[str, Witness]) -> ProbeFacts:
    """Flows that worked on the start application, run on the submission. One that does not hold on the start either
    says nothing."""
    facts, lost, visits = [], False, 0
    for name, flow in flows.items():
        now = ground.run(flow)
        visits += 1
        if now.outcome == "held":
            facts.append(f"{name}: still works")
            continue
        before = ground.run(flow, on_start=True)
        visits += 1
        worked = before.outcome == "held"
        lost = lost or (worked and now.outcome == "failed")
        facts.append(f"{name}: {'worked before' if worked else 'did not work before either'}; now {now.reason}")
    finding = "against" if lost else "nothing" if flows else "unclear"
    return ProbeFacts(probe="preserved", finding=finding, facts=facts, visits=visits)
