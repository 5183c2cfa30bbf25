"""Walks a witness step by step, so that a probe can look between the steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Error as PlaywrightError

from bench.errors import InfraError
from evaluator.browser import AppPage, PageHung
from evaluator.replay.act import act
from evaluator.replay.stage import NotShown, Stage
from evaluator.replay.watch import watch
from evaluator.witness import Step, Witness, describe
from evaluator.witness.checks import Polled

STEP_S = 25.0


class WalkEnded(Exception):
    """A step could not be taken or its check did not hold: the walk cannot go on. The message is for people."""


def begin(visit: AppPage, witness: Witness) -> Stage:
    """Open the witness's page. Raises WalkEnded."""
    stage = Stage(visit)
    with _ending("opening"), visit.within(STEP_S):
        visit.goto(witness.path)
    return stage


def take(stage: Stage, step: Step) -> None:
    """Take one step. Raises WalkEnded."""
    with _ending(describe(step)), stage.visit.within(STEP_S):
        resolved = stage.resolved(step)
        if not isinstance(resolved, Polled):
            act(stage, resolved)
            return
        finding = watch(stage, resolved)
        if not finding.holds:
            raise WalkEnded(f"{describe(step)}: saw {finding.seen}")


def walked(visit: AppPage, witness: Witness) -> Iterator[tuple[Stage, int, Step]]:
    """Before each step: the stage, the step's number from 1, the step; it is taken when the caller goes on.

    Raises WalkEnded."""
    stage = begin(visit, witness)
    for number, step in enumerate(witness.steps, 1):
        yield stage, number, step
        take(stage, step)


@contextmanager
def _ending(what: str) -> Iterator[None]:
    try:
        yield
    except (NotShown, ValueError, PageHung) as error:
        raise WalkEnded(f"{what}: {error}") from error
    except PlaywrightError as error:
        if "has been closed" in error.message:
            raise InfraError(f"the browser closed during a probe: {error.message.splitlines()[0]}") from error
        raise WalkEnded(f"{what}: {error.message.splitlines()[0]}") from error
