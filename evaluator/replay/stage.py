"""What actions and checks work on: the visit, what was remembered, and how elements are found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from playwright.sync_api import FrameLocator, Locator, Page

from evaluator.browser import AppPage
from evaluator.replay.inside import is_seen
from evaluator.witness import Step, Target
from evaluator.witness.checks import Polled
from evaluator.witness.program import fill_in

ACTION_MS = 2_000
MAX_MATCHES = 200


class NotShown(Exception):
    """What a step is about is not there, not visible, or not what the step takes it for. Read by people."""


@dataclass
class Stage:
    """One run: the visit, values remembered so far (`${name}` → text) and how patient we are.

    `patience` scales the deadlines that the witness does not give itself;
    `stretch` lengthens those of an action that is tried again."""

    visit: AppPage
    patience: float = 1.0
    stretch: float = 1.0
    memory: dict[str, str] = field(default_factory=dict)
    on_start: bool = False
    step: int = 0
    """Number of the step under way."""
    reference: Mapping[str, str] = field(default_factory=dict)
    """What the start application showed, by number of the step that compares with it."""
    readings: dict[str, str] = field(default_factory=dict)
    """What this application shows, by number of the step that compares it."""

    @property
    def page(self) -> Page:
        return self.visit.page

    @property
    def action_ms(self) -> float:
        return ACTION_MS * self.patience * self.stretch

    def check_s(self, check: Polled) -> float:
        """How long a check is polled, in seconds."""
        given = "within_ms" in check.model_fields_set
        return check.within_ms / 1000 * (1.0 if given else self.patience)

    def all(self, target: Target, *, visible: bool = False) -> Locator:
        """Every match of the target in document order, on the page as it will be when the locator is used.

        With `visible` only those with a box that are not hidden; `nth` then picks from all first."""
        found = self._base(target)
        if target.has_text is not None:
            found = found.filter(has_text=target.has_text)
        if target.nth is not None:
            found = found.nth(target.nth)
        return found.filter(visible=True) if visible else found

    def one(self, target: Target) -> Locator:
        """The match a user means: the first visible one, or the `nth`."""
        return self.all(target, visible=target.nth is None).first

    def present(self, target: Target) -> Locator:
        """The first visible match or else the first match, now. Raises NotShown when there is none."""
        if self.all(target, visible=True).count():
            return self.all(target, visible=True).first
        if self.all(target).count():
            return self.all(target).first
        raise NotShown("no such element on the page")

    def shown(self, target: Target) -> Locator:
        """The first match a user can see, now. Raises NotShown, saying whether it is missing or hidden."""
        found = self.all(target, visible=True).first
        if is_seen(found):  # the usual case, in one question
            return found
        found = self.present(target)
        if not is_seen(found):
            raise NotShown("the element is there but cannot be seen")
        return found

    def _base(self, target: Target) -> Locator:
        root: Page | Locator | FrameLocator = self.page if target.within is None else self.all(target.within)
        if target.frame is not None:
            root = self.page.frame_locator(target.frame)
        if target.role is not None:
            name = target.name if target.name_matches is None else re.compile(target.name_matches)
            exact = None if name is None or target.name is None else target.exact is not False
            return root.get_by_role(target.role, name=name, exact=exact)  # type: ignore[arg-type]
        exact = bool(target.exact)
        if target.label is not None:
            return root.get_by_label(target.label, exact=exact)
        if target.text is not None:
            return root.get_by_text(target.text, exact=exact)
        if target.placeholder is not None:
            return root.get_by_placeholder(target.placeholder, exact=exact)
        if target.testid is not None:
            return root.get_by_test_id(target.testid)
        return root.locator(f"css={target.css}")

    def resolved(self, step: Step) -> Step:
        """The step with remembered values in place. Raises ValueError when one does not fit where it is used."""
        if not self.memory:
            return step
        content = step.model_dump(mode="json", exclude_defaults=True)
        filled = fill_in(content, self.memory)
        return step if filled == content else type(step).model_validate(filled)
