"""Several samples of one judge: the majority's claims; a tie counts as not holding, a failed sample not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaluator.judges.judge import Claim

SPLIT = "samples_disagree"


def majority(samples: Sequence[tuple[Claim, ...]]) -> tuple[Claim, ...]:
    """One claim for each sub-requirement, out of at least one sample; `samples` of each tells how they voted.

    The claim is that of the first sample which says what the majority says and whose witness did what it says."""
    return tuple(_one(claims) for claims in zip(*samples, strict=True))


def _one(claims: tuple[Claim, ...]) -> Claim:
    votes = tuple(claim.holds for claim in claims)
    holds = 2 * sum(votes) > len(votes)
    agreeing = [claim for claim in claims if claim.holds == holds]
    chosen = next((claim for claim in agreeing if _is_shown(claim)), agreeing[0])
    if len(claims) == 1:
        return chosen
    flags = chosen.flags if len(set(votes)) == 1 else (*chosen.flags, SPLIT)
    return replace(chosen, flags=flags, samples=votes)


def _is_shown(claim: Claim) -> bool:
    return bool(claim.attempts) and (claim.attempts[0].outcome == "held") == claim.holds
