"""Checks of what is written: texts, values, counts, order, attributes, the address, remembered values."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator

from evaluator.replay.finding import Finding, count_fits, has_text, number_in, quoted, same_text
from evaluator.replay.inside import READ_MS, ask
from evaluator.replay.readings import amount, first_date, first_duration, first_number, fold
from evaluator.replay.stage import MAX_MATCHES, NotShown, Stage
from evaluator.witness import Target
from evaluator.witness import checks as c

_MAX_TEXT_CHARS = 20_000
_SIGN_WITHIN = re.compile(r"\S[-+/]\S")
"""A date, a telephone number: no arithmetic, which has spaces around its signs."""


def text(stage: Stage, check: c.TextCheck) -> Finding:
    seen = visible_text(stage.shown(check.target))
    holds = (
        (check.equals is None or same_text(seen, check.equals))
        and (check.contains is None or has_text(seen, check.contains))
        and (check.not_contains is None or not has_text(seen, check.not_contains))
        and (check.matches is None or re.search(check.matches, seen) is not None)
        and (check.number is None or number_in(seen, check.number))
    )
    return Finding(holds, quoted(seen))


def value(stage: Stage, check: c.ValueCheck) -> Finding:
    values = field_values(stage.present(check.target))
    holds = any(
        (check.equals is None or one == check.equals)
        and (check.contains is None or check.contains in one)
        and (check.matches is None or re.search(check.matches, one) is not None)
        and (check.number is None or number_in(one, check.number))
        for one in values
    )
    return Finding(holds, " or ".join(quoted(one) for one in values))


def count(stage: Stage, check: c.CountCheck) -> Finding:
    seen = stage.all(check.target, visible=not check.hidden_too).count()
    return Finding(count_fits(seen, check.equals, check.at_least, check.at_most), str(seen))


def url(stage: Stage, check: c.UrlCheck) -> Finding:
    parts = urlsplit(stage.page.url)
    seen = parts.path + (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
    base = urlsplit(stage.visit.base_url).path.rstrip("/")
    if stage.visit.is_own(stage.page.url):
        seen = seen.removeprefix(base)
    else:
        seen = stage.page.url
    holds = (
        (check.equals is None or seen == check.equals)
        and (check.contains is None or check.contains in seen)
        and (check.matches is None or re.search(check.matches, seen) is not None)
    )
    return Finding(holds, quoted(seen))


def attribute(stage: Stage, check: c.AttributeCheck) -> Finding:
    seen = stage.present(check.target).get_attribute(check.attribute, timeout=READ_MS)
    if seen is None:
        return Finding(check.absent is True, f"no attribute {check.attribute}")
    holds = (
        check.absent is None
        and (check.equals is None or seen == check.equals)
        and (check.contains is None or check.contains in seen)
        and (check.matches is None or re.search(check.matches, seen) is not None)
    )
    return Finding(holds, quoted(seen))


def order(stage: Stage, check: c.OrderCheck) -> Finding:
    texts = visible_texts(stage, check.target)
    seen = quoted(", ".join(one[:40] for one in texts))
    if len(texts) < 2:
        return Finding(False, f"{len(texts)} visible matches, which is no order")
    keys: list[tuple[float, str]] = []
    for one in texts:
        key = _sort_key(one, check.by)
        if key is None:
            return Finding(False, f"{quoted(one)}, in which there is no {check.by}")
        keys.append(key)
    return Finding(keys == sorted(keys, reverse=check.direction == "descending"), seen)


def _sort_key(one: str, by: str) -> tuple[float, str] | None:
    if by == "text":
        return 0, one.casefold()
    if by == "number":
        number = first_number(one)
        return None if number is None else (number, "")
    if by == "duration":
        length = first_duration(one)
        return None if length is None else (length, "")
    date = first_date(one)
    return None if date is None else (float(date.toordinal()) + (date.hour * 60 + date.minute) / 1440, "")


def each(stage: Stage, check: c.EachCheck) -> Finding:
    texts = _readings(stage, check)
    if not texts:
        return Finding(False, "no visible match")
    for place, seen in enumerate(texts, 1):
        odd = seen != texts[0] if check.same else check.distinct and seen in texts[: place - 1]
        if seen is None or odd or not _is_as_said(seen, check):
            return Finding(False, f"{quoted(seen or 'nothing')} as number {place} of {len(texts)}")
    return Finding(True, f"{len(texts)} of {len(texts)}, the first {quoted(texts[0] or '')}")


def _is_as_said(seen: str, check: c.EachCheck) -> bool:
    return (
        (check.equals is None or same_text(seen, check.equals))
        and (check.contains is None or has_text(seen, check.contains))
        and (check.not_contains is None or not has_text(seen, check.not_contains))
        and (check.matches is None or re.search(check.matches, seen) is not None)
        and (check.number is None or number_in(seen, check.number))
    )


def _readings(stage: Stage, check: c.EachCheck) -> list[str | None]:
    """What is looked at of every visible match; None where an element has no such attribute."""
    if check.what == "text":
        return list(visible_texts(stage, check.target))
    asked = {"attribute": ("attribute", check.attribute), "style": ("style", check.property)}
    question, name = asked.get(check.what, ("side", check.what))
    return [None if value is None else str(value) for value in _of_each(stage, check.target, question, name)]


def compare(check: c.CompareCheck) -> Finding:
    left, right = _value(check.left), _value(check.right)
    seen = f"{left} and {right}" if check.plus is None else f"{left} plus {check.plus} and {right}"
    if isinstance(left, float) and isinstance(right, float) and check.relation not in ("contains", "starts_with"):
        left += amount(check.plus or 0)
        gap = left - right
        near = abs(gap) <= check.tolerance + 1e-9 * max(1.0, abs(right))
        holds = {
            "equals": near,
            "not_equals": not near,
            "less": gap < 0 and not near,
            "greater": gap > 0 and not near,
        }
        return Finding(holds[check.relation], seen)
    if check.plus is not None or check.relation in ("less", "greater"):
        return Finding(False, f"{seen}, which are not both numbers")
    return Finding(_texts_related(fold(str(check.left)), fold(str(check.right)), check.relation), seen)


def _texts_related(left: str, right: str, relation: str) -> bool:
    if relation == "contains":
        return right in left
    if relation == "starts_with":
        return left.startswith(right)
    return (left == right) == (relation == "equals")


def _value(side: str | float) -> float | str:
    if isinstance(side, str) and _SIGN_WITHIN.search(side):
        return side
    try:
        return amount(side)
    except ValueError:
        return str(side)


def visible_text(found: Locator) -> str:
    """The element's text as rendered, white space folded, at most 20,000 characters."""
    return fold(ask(found, "text")[:_MAX_TEXT_CHARS])


def visible_texts(stage: Stage, target: Target) -> list[str]:
    """The texts of all visible matches in document order. Raises NotShown for more than 200."""
    return [fold(text[:_MAX_TEXT_CHARS]) for text in _of_each(stage, target, "text")]


def _of_each(stage: Stage, target: Target, question: str, *given: object) -> list[Any]:
    """The answers of all visible matches, each asked by itself: Playwright's calls that read all at once run in the
    page's own world. Raises NotShown for more than 200."""
    found = stage.all(target, visible=True)
    number = found.count()
    if number > MAX_MATCHES:
        raise NotShown(f"{number} matches, more than the {MAX_MATCHES} that are read")
    return [ask(found.nth(place), question, *given) for place in range(number)]


def field_values(found: Locator) -> list[str]:
    """What a field holds: its value, and for a drop-down list also the chosen label. Raises NotShown."""
    try:
        held = found.input_value(timeout=READ_MS)
    except PlaywrightError as error:
        if ask(found, "editable"):
            return [visible_text(found)]
        if "Node is not an" in error.message:
            raise NotShown("the element is no field and holds no value") from None
        raise
    chosen = ask(found, "chosen")
    return [held] if chosen in (None, held) else [held, chosen]
