"""Probes that may take a credit away beside a citation: those that show a sham, whatever the criterion is about.

The refuter names one; the harness runs it itself, on the applications as they lie there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Error as PlaywrightError

from evaluator.judges.model.sources import SourceError, Sources
from evaluator.probes import runs, source, state
from evaluator.probes.facts import Ground
from evaluator.records import Citation, ProbeFacts, ProvingProbe
from evaluator.replay.readings import fold
from evaluator.witness import Witness


def proved(
    ground: Ground,
    probe: ProvingProbe,
    witness: Witness,
    cited: Sequence[Citation],
    rests_on: Sequence[Citation] = (),
) -> ProbeFacts | None:
    """What the probe finds on a claim's witness, given the refuter's citations and those the claim `rests_on`.

    None when no citation stands word for word in the submission and not in the start, which nobody blames."""
    verified = new_quotes(ground.submission, ground.start, cited)
    if not verified:
        return None
    ground.folder.mkdir(parents=True, exist_ok=True)
    try:
        return _PROBES[probe](_Case(ground, witness, verified, rests_on))
    except PlaywrightError as error:  # the page went away under it
        return ProbeFacts(probe=probe, finding="unclear", facts=[error.message.splitlines()[0][:300]])


def new_quotes(submission: Path, start: Path, cited: Sequence[Citation]) -> list[Citation]:
    """The citations that stand word for word in the submission's tree and not in the start's."""
    sources = Sources(submission, start)
    return [citation for citation in cited if _is_new(sources, citation)]


def _is_new(sources: Sources, citation: Citation) -> bool:
    try:
        sources.find_quote(citation.path, citation.quote)
    except SourceError:
        return False
    return fold(citation.quote) not in fold(sources.start_text(citation.path))


class _Case(NamedTuple):
    ground: Ground
    witness: Witness
    cited: Sequence[Citation]
    rests_on: Sequence[Citation]


def _coverage(case: _Case) -> ProbeFacts:
    """Only lines the claim itself rests on: code beside it may wait for an error that never comes."""
    own = [fold(one.quote) for one in case.rests_on]
    core = [one for one in case.cited if any(fold(one.quote) in q or q in fold(one.quote) for q in own)]
    if not core:
        return ProbeFacts(probe="coverage", finding="nothing", facts=["the claim rests on none of the cited lines"])
    return source.coverage(case.ground, case.witness, core)


def _literal(case: _Case) -> ProbeFacts:
    """Only an input that a cited line compares with, of a witness without other inputs: a list of goods holds names,
    and what held with other inputs was not made for one."""
    found = source.literal_near_handler(case.ground, case.witness)
    shown = [one.quote for one in case.cited if _COMPARES.search(one.quote)]
    named = [value for value in case.witness.inputs.values() if any(value in quote for quote in shown)]
    if found.finding == "against" and (case.witness.vary or not named):
        found.finding = "nothing"
    return found


_COMPARES = re.compile(r"[=!]==?|\bcase\b|\.(?:includes|startsWith|test|match)\(")
_PROBES: dict[ProvingProbe, Callable[[_Case], ProbeFacts]] = {
    "coverage": _coverage,
    "literal_near_handler": _literal,
    "reachable": lambda case: state.reachable(case.ground, case.witness),
    "repeated": lambda case: runs.repeated(case.ground, case.witness),
    "masked": lambda case: runs.masked(case.ground, case.witness),
}
