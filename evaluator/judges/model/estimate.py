"""`cdb judge --dry-run`: what a judging would take, before anything is called or built.

Sizes of the openings are counted (four characters a token); how long conversations get is assumed, see `LOW`,
`EXPECTED` and `HIGH`. An unknown price gives no money at all: unknown is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evaluator.cases import Case, Cases
from evaluator.judges.catalogue import Judges
from evaluator.judges.judge import Exhibits
from evaluator.judges.model.chat import Chat
from evaluator.judges.model.fences import Fence
from evaluator.judges.model.judge import ModelJudge
from evaluator.judges.model.opening import Opening
from evaluator.judges.model.prompts import render
from evaluator.judges.model.refuter import ModelRefuter
from evaluator.judges.model.settings import Caps, Price
from evaluator.judges.model.sources import Sources

CHARS_A_TOKEN = 4
PICTURE_TOKENS = 1_400
"""A picture of 1280 x 800 at today's providers."""
TOOL_TOKENS = 2_500
LOOK_TOKENS = 3_000
"""Two first looks, which nobody has had yet."""
LEVELS = ("low", "expected", "high")


class Talk(NamedTuple):
    """One conversation: its calls, what each adds to the next (tokens), what the model writes in each (tokens), and
    the shares of criteria that have one with the refuter, and that fail, of which some get an advocate."""

    calls: int
    growth: int
    output: int
    refuted: float
    failed: float


class Ahead(NamedTuple):
    """A case that waits: tokens that every call about it begins with, criteria, whether it speaks to a judge."""

    prefix: int
    criteria: int
    speaks: bool


LOW = Talk(calls=2, growth=500, output=300, refuted=0.0, failed=0.0)
EXPECTED = Talk(calls=10, growth=1_200, output=400, refuted=0.6, failed=0.4)
HIGH = Talk(calls=0, growth=4_000, output=1_500, refuted=1.0, failed=1.0)
"""Its calls are the cap."""


def estimate(cases: Cases, folder: Path, judges: Judges) -> dict[str, Any]:
    """Calls, tokens and USD for each role at three levels. `folder`: what the paths in `cases` are relative to."""
    waiting = {case.case: _to_judge(case) for case in cases.cases}
    caps = judges.judge.ledger.caps if isinstance(judges.judge, ModelJudge) else Caps()
    found: dict[str, Any] = {
        "cases": sum(bool(count) for count in waiting.values()),
        "criteria": sum(waiting.values()),
        "case_usd": caps.case_usd,
        "run_usd": caps.run_usd,
        "assumed": {name: talk._asdict() for name, talk in zip(LEVELS, _levels(caps), strict=True)},
    }
    judge, refuter = judges.judge, judges.refuter
    if isinstance(judge, ModelJudge):
        ahead = [_ahead(case, folder, judge.chat, waiting[case.case]) for case in cases.cases]
        advocates = judge.advocacy.share
        found["judge"] = _role(ahead, judge.chat, caps, lambda _case, talk: judge.samples + advocates * talk.failed)
    if isinstance(refuter, ModelRefuter):
        ahead = [_ahead(case, folder, refuter.chat, waiting[case.case]) for case in cases.cases]
        forced = refuter.only_flagged
        if not forced or any(case.speaks for case in ahead):
            found["refuter"] = _role(
                ahead, refuter.chat, caps, lambda case, talk: talk.refuted * (case.speaks or not forced)
            )
    return found


def lines(found: dict[str, Any]) -> list[str]:
    """The estimate for people."""
    rows = [f"{found['criteria']} criteria of {found['cases']} cases would be judged; nothing was called or built"]
    for role in ("judge", "refuter"):
        for level in LEVELS if role in found else ():
            told = found[role][level]
            usd = "price unknown" if told["usd"] is None else f"{told['usd']:.2f} USD"
            tokens = f"{told['input_tokens']:>12,} in {told['output_tokens']:>10,} out"
            rows.append(f"{role:<8} {level:<9} {told['calls']:>6} calls {tokens}  {usd}")
    if "judge" in found and found["case_usd"]:
        rows.append(f"never more than {found['case_usd']:g} USD a case and one call, where prices are known")
    return rows


def _to_judge(case: Case) -> int:
    """Criteria a model would be asked about."""
    if case.submission is None:
        return 0
    unchanged = case.submission.changed_files == 0
    return sum(not unchanged or part.kind == "preservation" for part in case.plan)


def _levels(caps: Caps) -> tuple[Talk, Talk, Talk]:
    return LOW, EXPECTED, HIGH._replace(calls=caps.criterion_calls)


def _ahead(case: Case, folder: Path, chat: Chat, criteria: int) -> Ahead:
    if case.submission is None:
        return Ahead(0, criteria, speaks=False)
    nowhere = folder / "no-evidence-yet"
    submission, start = folder / case.submission.folder, folder / case.project
    digests = {one.path: folder / one.digest for one in case.attachments if one.digest}
    exhibits = Exhibits(case, submission, start, running=_Nothing(), folder=nowhere, digests=digests)
    opening = Opening(exhibits, Sources(submission, start), Fence(), chat)
    parts = opening.parts
    text: int = sum(len(part["text"]) for part in parts if part["type"] == "text") + len(render("witness")) + 3_000
    shots = 4 if chat.vision else 0
    pictures: int = shots + sum(part["type"] == "image_url" for part in parts)
    prefix = text // CHARS_A_TOKEN + TOOL_TOKENS + LOOK_TOKENS + pictures * PICTURE_TOKENS
    return Ahead(prefix, criteria, speaks=bool(opening.speaks))


class _Nothing:
    """Applications that nobody may look at: an estimate runs none."""

    @property
    def submission(self) -> Any:
        raise AssertionError("an estimate opens no page")

    start = submission


def _role(
    ahead: Sequence[Ahead], chat: Chat, caps: Caps, talks_each: Callable[[Ahead, Talk], float]
) -> dict[str, Any]:
    """`talks_each`: how many conversations the role has about each criterion of a case."""
    price = chat.price()
    found = {}
    for name, talk in zip(LEVELS, _levels(caps), strict=True):
        calls, sent, cached, written = 0.0, 0.0, 0.0, 0.0
        for case in ahead:
            talks = case.criteria * talks_each(case, talk)
            calls += talks * talk.calls
            sent += talks * (case.prefix * talk.calls + talk.growth * talk.calls * (talk.calls - 1) / 2)
            cached += max(0.0, talks * talk.calls - 1) * case.prefix if name != "high" else 0.0
            written += talks * talk.calls * talk.output
        found[name] = {
            "calls": round(calls),
            "input_tokens": round(sent),
            "cached_tokens": round(cached),
            "output_tokens": round(written),
            "usd": _usd(price, sent, cached, written),
        }
    return found


def _usd(price: Price | None, sent: float, cached: float, written: float) -> float | None:
    if price is None:
        return None
    read = price.input if price.cache_read is None else price.cache_read
    return round(((sent - cached) * price.input + cached * read + written * price.output) / 1_000_000, 4)
