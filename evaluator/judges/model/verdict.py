"""The judge's answer: its schema, and what is checked before it counts.

Schema, ids and witnesses must be right, or there is no answer. What weakens a claim without making it unreadable (no
witness, an attempt that holds although the claim says no, a quotation that is not there) is asked for once more,
then kept as it is and flagged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, StrictBool

from bench.errors import DataError
from bench.strict_json import parse_json
from evaluator.judges.judge import Claim
from evaluator.judges.model.conversation import Repair
from evaluator.judges.model.sources import SourceError, Sources
from evaluator.judges.model.toolbox import ToolInput
from evaluator.records import Citation, Replay
from evaluator.witness import Witness, WitnessError, load_witness

_DENIAL = re.compile(
    r"(?i)\b(?:not implemented|is missing|does not work|doesn't work|not present|no evidence|cannot be found"
    r"|never happens|is not met|not satisfied|fails to)\b"
)


class Quote(ToolInput):
    path: str = Field(max_length=1000)
    quote: str = Field(min_length=1, max_length=2000)


class ClaimInput(ToolInput):
    """One claim. `witness` is an object of the witness language, or null."""

    sub: str = Field(description="the sub-requirement's id")
    holds: StrictBool
    witness: dict[str, Any] | str | None = Field(
        default=None, description="what shows it; for a claim that does not hold, the attempt that fails"
    )
    reason: str = Field(min_length=1, max_length=4000)
    citations: list[Quote] = Field(default_factory=list, max_length=12)
    evidence: list[str] = Field(default_factory=list, max_length=40, description="ids of results, such as E3")


class VerdictInput(ToolInput):
    claims: list[ClaimInput] = Field(max_length=8)


@dataclass
class Tried:
    """The attempts of one conversation. The witness tried last for a sub-requirement is not run again."""

    attempt: Callable[[str, Witness], Replay]
    last: dict[str, tuple[str, Replay]] = field(default_factory=dict)

    def run(self, sub: str, witness: Witness) -> Replay:
        replay = self.attempt(sub, witness)
        self.last[sub] = (witness.digest(), replay)
        return replay

    def of(self, sub: str, witness: Witness) -> Replay:
        digest, replay = self.last.get(sub, ("", None))
        return replay if replay is not None and digest == witness.digest() else self.run(sub, witness)


@dataclass
class VerdictCheck:
    """Turns a judge's answer into claims, in the plan's order whatever order it was given in. One a conversation."""

    subs: tuple[str, ...]
    sources: Sources
    tried: Tried
    known: Callable[[], Sequence[str]]
    """Ids of the evidence so far."""
    pairs: bool = False
    """Whether a claim without a witness is put to a blind pair: a purely visual criterion."""
    asked_again: bool = False
    """Whether weak claims were sent back already: that is done once."""

    def take(self, arguments: dict[str, Any], last: bool) -> tuple[Claim, ...]:
        """Raises ValidationError or Repair for what cannot be taken, and once for weak claims."""
        given = VerdictInput.model_validate(arguments).claims
        require_ids([claim.sub for claim in given], self.subs)
        by_id = {claim.sub: claim for claim in given}
        weak: list[str] = []
        claims = tuple(self._claim(by_id[sub], weak) for sub in self.subs)
        if weak and not (last or self.asked_again):
            self.asked_again = True
            raise Repair("; ".join(weak) + ". Mend it, or give the same verdict again if you are sure.")
        return claims

    def _claim(self, given: ClaimInput, weak: list[str]) -> Claim:
        name = given.sub
        if unknown := [one for one in given.evidence if one not in self.known()]:
            known = ", ".join(self.known()) or "none yet"
            raise Repair(f"{name}: {', '.join(unknown)} is no evidence of this conversation; known: {known}")
        flags: list[str] = []
        citations, bad = checked_quotes(given.citations, self.sources)
        if bad:
            weak.append(f"{name}: {'; '.join(bad)}")
            flags.append("unverified_citation")
        witness = read_witness(name, given.witness)
        attempts: tuple[Replay, ...] = ()
        if witness is not None:
            attempts = (self.tried.of(name, witness),)
        problem, flag = self._weakness(given, witness, attempts, bool(citations))
        if problem:
            weak.append(f"{name}: {problem}")
            flags += [flag] if flag else []
        if given.holds and _DENIAL.search(given.reason):
            flags.append("contradicts_reason")
        return Claim(name, given.holds, witness, attempts, given.reason, tuple(citations), tuple(flags))

    def _weakness(
        self, given: ClaimInput, witness: Witness | None, attempts: tuple[Replay, ...], cited: bool
    ) -> tuple[str, str]:
        """What is weak about a claim, and the flag it gets when it is kept all the same."""
        held = bool(attempts) and attempts[0].outcome == "held"
        if given.holds and witness is None and self.pairs:
            return "", ""
        if given.holds and witness is None:
            return "it is claimed to hold without a witness, which counts for nothing", ""
        if given.holds and not held:
            return f"its witness does not hold on the submission ({attempts[0].reason[:300]})", ""
        if not given.holds and held:
            return "it is said not to hold, and the attempt given for that holds on the submission", "attempt_holds"
        if not given.holds and witness is None and not cited:
            return "it is said not to hold without an attempt that fails and without a citation", "unattempted"
        return "", ""


def require_ids(given: list[str], wanted: Sequence[str]) -> None:
    """Every wanted id exactly once. Raises Repair saying which are missing, doubled or unknown."""
    problems = [f"{one} is missing" for one in wanted if one not in given]
    problems += [f"{one} is given {given.count(one)} times" for one in dict.fromkeys(given) if given.count(one) > 1]
    problems += [f"{one!r} is no id here" for one in dict.fromkeys(given) if one not in wanted]
    if problems:
        raise Repair(f"{'; '.join(problems)}. The ids are: {', '.join(wanted)}; give each exactly once, in one call")


def read_witness(name: str, given: Mapping[str, Any] | str | None) -> Witness | None:
    """A witness as a model gives it: an object, or its JSON text. Raises Repair saying what is wrong with it."""
    if given is None or given == "":
        return None
    try:
        content = (
            parse_json(given.encode("utf-8", "surrogatepass"), "the witness") if isinstance(given, str) else given
        )
        return load_witness(content if isinstance(content, dict) else json.dumps(content))
    except (WitnessError, DataError) as error:
        raise Repair(f"{name}: {error}") from error


def checked_quotes(quotes: Sequence[Quote], sources: Sources) -> tuple[list[Citation], list[str]]:
    """The citations that are word for word in the submission, with their lines; and what is wrong with the others."""
    good, bad = [], []
    for quote in quotes:
        try:
            good.append(
                Citation(path=quote.path, quote=quote.quote, line=sources.find_quote(quote.path, quote.quote))
            )
        except SourceError as error:
            bad.append(str(error))
    return good, bad
