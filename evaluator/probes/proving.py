"""Probes that may take a credit away beside a citation: those that show a sham, whatever the criterion is about.

The refuter names one; the harness runs it itself, on the applications as they lie there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluator.judges.model.sources import SourceError, Sources
from evaluator.probes import runs, source, state
from evaluator.probes.facts import Ground
from evaluator.records import Citation, ProbeFacts, ProvingProbe
from evaluator.witness import Witness


def proved(ground: Ground, probe: ProvingProbe, witness: Witness, citations: Sequence[Citation]) -> ProbeFacts | None:
    """What the probe finds on a claim's witness; None when no citation is word for word in the submission."""
    sources = Sources(ground.submission, ground.start)
    verified = [citation for citation in citations if _is_there(sources, citation)]
    if not verified:
        return None
    ground.folder.mkdir(parents=True, exist_ok=True)
    return _PROBES[probe](ground, witness, verified)


def _is_there(sources: Sources, citation: Citation) -> bool:
    try:
        sources.find_quote(citation.path, citation.quote)
    except SourceError:
        return False
    return True


def _literal(ground: Ground, witness: Witness, citations: Sequence[Citation]) -> ProbeFacts:
    """Only what stands in the cited lines' own files speaks against the claim."""
    found = source.literal_near_handler(ground, witness)
    cited = tuple(f"{citation.path}:" for citation in citations)
    if found.finding == "against" and not any(fact.startswith(cited) for fact in found.facts):
        found.finding = "nothing"
    return found


_PROBES: dict[ProvingProbe, Callable[[Ground, Witness, Sequence[Citation]], ProbeFacts]] = {
    "coverage": source.coverage,
    "literal_near_handler": _literal,
    "reachable": lambda ground, witness, _cited: state.reachable(ground, witness),
    "repeated": lambda ground, witness, _cited: runs.repeated(ground, witness),
    "masked": lambda ground, witness, _cited: runs.masked(ground, witness),
}
