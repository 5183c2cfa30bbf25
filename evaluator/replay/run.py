"""One run of one witness: opens the application, takes the steps in order, stops at the first that fails."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from playwright.sync_api import Error as PlaywrightError
from pydantic import ValidationError

from bench.errors import InfraError
from evaluator.browser import AppBrowser, AppPage, PageHung
from evaluator.records import Purpose, Replay, StepResult
from evaluator.replay.act import act, why_not
from evaluator.replay.stage import NotShown, Stage
from evaluator.replay.watch import MOST_STRETCH, watch
from evaluator.turns import Turn
from evaluator.witness import Action, Check, Step, Viewport, Witness, describe
from evaluator.witness.actions import Clock, Open, WaitFor
from evaluator.witness.checks import Polled, StartCheck

ANSWER_S = 6.0
"""How long past a step's own deadline a page may leave us without an answer before it counts as hung."""
SILENCE_S = 3.0
"""A page that answered less than this ago when the run's time was over is slow, not hung."""
TIME_OVER = "the run's time was over before the witness was done"
"""How the reason of a run ends that was stopped while its page still answered."""
RUN_S = 60.0
NAVIGATION_S = 20.0
VACUITY_PATIENCE = 0.5
"""For runs that are mostly expected to fail: what is missing is given up after 1 s."""


class StepFailed(Exception):
    """A step could not be taken or its check did not hold; the message is for people."""


class BrowserBroke(Exception):
    """Nothing can be said about the application: the browser or the machine failed."""


@dataclass
class _Run:
    """What one run has gathered so far."""

    browser: AppBrowser
    visit: AppPage
    stage: Stage
    frames_dir: Path | None
    results_root: Path
    ends_at: float
    turn: Turn
    steps: list[StepResult] = field(default_factory=list)


def run_witness(
    browser: AppBrowser,
    witness: Witness,
    *,
    app: Literal["submission", "start"],
    purpose: Purpose,
    inputs: Mapping[str, str] | None = None,
    frames_dir: Path | None,
    results_root: Path,
    deadline_s: float = RUN_S,
    patience: float | None = None,
    masked: bool = False,
    viewport: Viewport | None = None,
    reference: Mapping[str, str] | None = None,
    clock_at: datetime | None = None,
) -> Replay:
    """Run `witness` once in a fresh visit to the application of `browser`; never raises for what happens there.

    `inputs` replace some or all of the witness's own. With `frames_dir`, which must lie inside
    `results_root`, a JPEG of the window as the last step left it is kept there.
    `patience` scales the default deadlines of actions and checks, never a `within_ms` that the witness
    gives; by default it is VACUITY_PATIENCE for purpose `vacuity` and 1 for the others. `viewport` overrides
    the witness's. Purpose `reload` changes nothing here: a witness that claims persistence says `reload`
    itself. `reference` are the readings of a run of the same witness on the start application; without it the
    checks `changed` and `unchanged` fail. `clock_at` is the time that the page is told when it opens.

    In the record step 0 is the opening of the witness's path; the witness's own steps count from 1. The
    outcome is `error`, and no statement on the application, when the browser or the machine broke: page
    crashed, browser gone, nothing listening at the address, or `deadline_s` over while the page still
    answered. A page that stops answering while the browser works is the application's doing: `failed`.

    Raises WitnessError when `inputs` do not fit the witness.
    """
    given = dict(witness.inputs) | dict(inputs or {})
    program = witness.with_inputs(given)
    if patience is None:
        patience = VACUITY_PATIENCE if purpose == "vacuity" else 1.0
    replay = Replay(app=app, purpose=purpose, inputs=given, outcome="error")
    with Turn() as turn:
        started = time.monotonic()
        try:
            with browser.open(
                viewport=viewport or witness.viewport,
                masked=masked,
                fake_clock=witness.advances_clock,
                clock_at=clock_at,
            ) as visit:
                stage = Stage(visit, patience, on_start=app == "start", reference=reference or {})
                run = _Run(browser, visit, stage, frames_dir, results_root, started + deadline_s, turn)
                try:
                    replay.outcome, replay.reason = _all_steps(run, program)
                finally:
                    replay.steps = run.steps
                    replay.readings = run.stage.readings
                    replay.console = list(visit.console)
                    replay.refused_requests = list(visit.refused)
        except InfraError as error:
            replay.outcome, replay.reason = "error", str(error)
    if replay.outcome != "held" and replay.steps:
        replay.failed_step = replay.steps[-1].index
    replay.duration_s = round(time.monotonic() - started, 3)
    return replay


def _all_steps(run: _Run, program: Witness) -> tuple[Literal["held", "failed", "error"], str]:
    """Take the opening and every step; the outcome and its reason."""
    if run.frames_dir is not None:
        run.frames_dir.mkdir(parents=True, exist_ok=True)
    steps: list[Step] = [Open(do="open", path=program.path), *program.steps]
    for index, step in enumerate(steps):
        try:
            run.stage.step = index
            _one_step(run, index, step, last=index == len(steps) - 1)
        except StepFailed as error:
            if run.stage.on_start and isinstance(step, StartCheck):
                _read_on(run, index, steps)
            return "failed", str(error)
        except BrowserBroke as error:
            return "error", str(error)
        run.turn.done()  # the page is open; what follows is mostly waiting
    return "held", ""


def _read_on(run: _Run, failed: int, steps: list[Step]) -> None:
    """On the start, after a check that has to fail there: go on for the readings of the later ones.

    No step is recorded any more; the first that cannot be taken ends it."""
    last = max(index for index, step in enumerate(steps) if isinstance(step, StartCheck))
    for index in range(failed + 1, last + 1):
        run.stage.step = index
        try:
            with run.visit.within(_limit(run, steps[index])):
                _take(run.stage, steps[index])
        except StepFailed:
            if not isinstance(steps[index], StartCheck):
                return
        except (BrowserBroke, PageHung, PlaywrightError):
            return


def _one_step(run: _Run, index: int, step: Step, *, last: bool) -> None:
    """Take one step, note it and picture it. Raises StepFailed or BrowserBroke after noting it."""
    began = run.visit.answered_at = time.monotonic()
    result = StepResult(index=index, text=describe(step), ok=False)
    run.steps.append(result)
    failure: Exception | None = None
    try:
        with run.visit.within(_limit(run, step)):
            result.note = _take(run.stage, step)
        result.ok = True
    except (StepFailed, BrowserBroke) as error:
        failure = error
    except PageHung as error:
        failure = _hung(run, str(error))
    except PlaywrightError as error:
        failure = _broken(run, error)
    result.ms = round((time.monotonic() - began) * 1000)
    if failure is not None:
        result.note = str(failure)
    if failure is not None or last:
        result.frame = _frame(run, index)
    if failure is not None:
        raise type(failure)(f"{'Opening' if index == 0 else f'Step {index}'}, {_lower(result.text)}: {failure}")


def _take(stage: Stage, step: Step) -> str:
    """Do what the step says; returns its note. Raises StepFailed, PageHung or a Playwright error."""
    try:
        step = stage.resolved(step)
    except (ValidationError, ValueError) as error:
        raise StepFailed(f"a remembered value does not fit here: {error}") from None
    if isinstance(step, Polled):
        return _look(stage, step)
    return _act(stage, step)


def _act(stage: Stage, step: Action) -> str:
    try:
        return act(stage, step)
    except NotShown as why:
        raise StepFailed(str(why)) from None
    except PlaywrightError as error:
        if _is_gone(stage.visit, error):
            raise
        if isinstance(step, Open) and "net::ERR_CONNECTION_REFUSED" in error.message:
            raise BrowserBroke(why_not(stage, step, error)) from None
        raise StepFailed(why_not(stage, step, error)) from None


def _look(stage: Stage, check: Check) -> str:
    nested = _nested(check)
    try:
        finding = watch(stage, check)
    except NotShown as why:
        raise StepFailed(str(why)) from None
    except PlaywrightError as error:
        if _is_gone(stage.visit, error) or nested is None:
            raise
        raise StepFailed(why_not(stage, nested, error)) from None
    except ValueError as error:
        raise StepFailed(str(error)) from None
    if not finding.holds:
        raise StepFailed(f"saw {finding.seen}")
    return f"saw {finding.seen}"


def _nested(check: Check) -> Action | None:
    """The action inside a check."""
    nested: Action | None = getattr(check, "after", None) or getattr(check, "during", None)
    return nested


def _is_gone(visit: AppPage, error: PlaywrightError) -> bool:
    """Whether the error speaks of the page's end and not of the step."""
    return visit.hung or visit.crashed or "has been closed" in error.message or "crashed" in error.message


def _broken(run: _Run, error: PlaywrightError) -> Exception:
    """Whose fault it is that Playwright could not go on."""
    if run.visit.crashed:
        return BrowserBroke("the browser's page crashed")
    if not run.browser.browser.is_connected():
        return BrowserBroke("the browser is gone")
    if not run.visit.context.pages:
        return StepFailed("the application closed its own page")
    return BrowserBroke(f"the browser failed: {error.message.splitlines()[0][:300]}")


def _hung(run: _Run, said: str) -> Exception:
    """A page that was given up: the application's doing if it was silent and a fresh page answers."""
    silent_s = time.monotonic() - run.visit.answered_at
    if not run.browser.browser.is_connected() or not run.browser.answers():
        return BrowserBroke(f"{said}, and neither does the browser")
    if silent_s < SILENCE_S:
        return BrowserBroke(TIME_OVER)
    return StepFailed("the page stopped answering: it is busy and never comes to an end")


def _limit(run: _Run, step: Step) -> float:
    """How long this step may keep us at most: its own deadlines and room to answer, within the run's."""
    patience = run.stage.patience
    own = 10.0 * patience
    if isinstance(step, Polled):
        own = MOST_STRETCH * run.stage.check_s(step)
        if (nested := _nested(step)) is not None:
            own, step = own + 10.0 * patience, nested
    if isinstance(step, Open) or getattr(step, "do", "") in ("reload", "back", "forward"):
        own += NAVIGATION_S
    elif isinstance(step, Clock):
        own += 20
    elif isinstance(step, WaitFor):
        own += step.within_ms / 1000
    elif getattr(step, "do", "") == "wait":
        own += 3
    return min(own + ANSWER_S, run.ends_at - time.monotonic())


def _frame(run: _Run, index: int) -> str | None:
    """Picture the window now; None when no pictures are wanted or the page gives none any more."""
    if run.frames_dir is None or run.visit.hung or run.visit.crashed:
        return None
    path = run.frames_dir / f"{index:02d}.jpg"
    with suppress(PlaywrightError, PageHung), run.visit.within(ANSWER_S):
        run.visit.screenshot(path)
        return path.relative_to(run.results_root).as_posix()
    return None


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
