"""Numbers and dates as they stand in the texts of applications."""

from __future__ import annotations

import re
from datetime import date, datetime

from evaluator.witness.parts import NumberCheck
from evaluator.witness.sums import value_of

_SPACES = "\u00a0\u202f\u2009"
_NUMBER = re.compile(
    rf"""(?<![\w.,])(?P<sign>[-\u2212+]?)\s?(?:[$€£¥₹]|[A-Z]{{3}}\s)?\s?
    (?P<digits>\d{{1,3}}(?:[,'{_SPACES}]\d{{3}})+(?:\.\d+)?(?!\d)
    |\d{{1,3}}(?:\.\d{{3}})+,\d+
    |\d+,\d{{1,2}}(?![\d,])
    |\d*\.\d+|\d+)""",
    re.VERBOSE,
)
_ANY_NUMBER = re.compile(r"(?P<sign>)(?P<digits>\d+(?:\.\d+)?)")
_FLOAT_SLACK = 1e-9
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_CLOCK = re.compile(r"(?<!\d)(?:(\d{1,2}):)?(\d{1,3}):(\d{2})(?!\d)")
_SPAN = re.compile(r"(\d+(?:[.,]\d+)?)\s*(hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b", re.IGNORECASE)
_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0}
_NUMERIC_DATE = re.compile(r"\b(\d{1,2})([/.])(\d{1,2})\2(\d{4})\b")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(?P<month>" + "|".join(_MONTHS) + r")[a-z]*\.?"
_DAY_FIRST = re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+{_MONTH},?(?:\s+(?P<year>\d{{4}}))?\b", re.I)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b,?(?:\s+(?P<year>\d{{4}}))?", re.I)


def first_number(text: str) -> float | None:
    """The first number in `text`, or None.

    Reads 1,234.5 and 1.234,5 and 1'234 and 12,50 (a comma before one or two last digits is decimal), with a
    minus before it or before its currency sign. Prefers a number that stands alone over one glued to letters
    (in "h2 3 items" it is 3)."""
    match = _NUMBER.search(text) or _ANY_NUMBER.search(text)
    if match is None:
        return None
    digits = match["digits"]
    if re.fullmatch(r"\d{1,3}(\.\d{3})+,\d+|\d+,\d{1,2}", digits):
        digits = digits.replace(".", "").replace(",", ".")
    number = float(re.sub(rf"[,'{_SPACES}]", "", digits))
    return -number if match["sign"] in ("-", "\u2212") else number


def amount(value: float | str) -> float:
    """A number, or the value of arithmetic such as "3 + 1". Raises ValueError for anything else."""
    return value_of(value) if isinstance(value, str) else float(value)


def number_fits(seen: float, check: NumberCheck) -> bool:
    """Whether `seen` is what `check` asks for, with slack for binary fractions."""
    slack = _FLOAT_SLACK * max(1.0, abs(seen))
    return (
        (check.equals is None or abs(seen - amount(check.equals)) <= check.tolerance + slack)
        and (check.at_least is None or seen >= amount(check.at_least) - check.tolerance - slack)
        and (check.at_most is None or seen <= amount(check.at_most) + check.tolerance + slack)
    )


def plain(number: float) -> str:
    """The number as it is remembered and shown: no trailing zeros, no exponent for usual sizes."""
    return f"{number:.12g}"


def first_duration(text: str) -> float | None:
    """The first length of time in `text` in seconds, or None: 1:02:03, 4:05, 1 h 5 min, 90 s."""
    if match := _CLOCK.search(text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return hours * 3600.0 + minutes * 60 + seconds
    parts = {unit[0].lower(): float(number.replace(",", ".")) for number, unit in _SPAN.findall(text)}
    return sum(number * _UNIT_S[unit] for unit, number in parts.items()) if parts else None


def first_date(text: str) -> datetime | None:
    """The first date in `text`, or None: ISO, 3/14/2026 (month first, as in en-US), 14.3.2026, 14 Mar 2026,
    March 14, 2026. Without a year it is taken as 2000, so that dates of one year sort."""
    if match := _ISO.search(text):
        try:
            return datetime.fromisoformat(match[0])
        except ValueError:
            return None
    if match := _NUMERIC_DATE.search(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        month, day = (first, second) if match[2] == "/" else (second, first)
        return _date(year, month, day)
    found = [match for pattern in (_DAY_FIRST, _MONTH_FIRST) if (match := pattern.search(text))]
    if not found:
        return None
    match = min(found, key=lambda one: one.start())
    return _date(int(match["year"] or 2000), _MONTHS.index(match["month"].lower()) + 1, int(match["day"]))


def _date(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime.combine(date(year, month, day), datetime.min.time())
    except ValueError:
        return None


def fold(text: str) -> str:
    """White space folded to single spaces and trimmed, as a reader sees it."""
    return " ".join(text.split())
