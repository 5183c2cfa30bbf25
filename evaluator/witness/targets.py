"""How a witness says which element it means: as a user would, by role and name, label, text or place."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from evaluator.witness.parts import Part, Pattern, Words, require_one_of

WAYS = ("role", "label", "text", "placeholder", "testid", "css")


class Target(Part):
    """One or more elements of the page.

    Exactly one of `role`, `label`, `text`, `placeholder`, `testid` and `css` is given. `nth` picks among all
    matches in document order (0 is the first, -1 the last); without it the first visible match is meant.
    """

    role: str | None = Field(default=None, pattern=r"^[a-z]+$")
    name: Words | None = None
    """Accessible name, for `role` only; the whole name unless `exact` is false (then any part, any case)."""
    name_matches: Pattern | None = None
    label: Words | None = None
    text: Words | None = None
    placeholder: Words | None = None
    testid: Words | None = None
    css: Words | None = None
    exact: bool | None = None
    """For `name`, `label`, `text` and `placeholder`. Default: true for `name`, false for the others."""
    nth: int | None = Field(default=None, ge=-100, le=1000)
    within: Target | None = None
    has_text: Words | None = None
    frame: Words | None = None
    """CSS selector of the embedded frame that the element is in."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        require_one_of(self, WAYS, at_most_one=True)
        if self.role is None and (self.name is not None or self.name_matches is not None):
            raise ValueError("name and name_matches go with role only")
        if self.name is not None and self.name_matches is not None:
            raise ValueError("needs name or name_matches, not both")
        if self.frame is not None and self.within is not None:
            raise ValueError("frame goes on the outermost target: put it into within")
        for selector in (self.css, self.frame):
            if selector is not None and ">>" in selector:
                raise ValueError("a CSS selector holds no >>; use within")
        if self.exact is not None and (self.testid is not None or self.css is not None):
            raise ValueError("exact does not go with testid or css")
        return self
