"""From verified facts to verdicts: pure functions, each result with the name of the rule that gave it.

A sub-requirement is credited in three columns: `judge` (the judge's own claim), `card` (still there after the
refuter, whose word is taken) and `witnessed` (still there when only evidence that replays counts, for the claim and
against it). Neither of the last two ever credits more than the first; a bare word of the refuter lowers `card`
alone. A criterion is PASS when every sub-requirement is credited, PARTIAL when every core one is and some other is
not, FAIL otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from evaluator.records import (
    COLUMNS,
    Column,
    ColumnVerdict,
    PairRecord,
    ProvingProbe,
    Purpose,
    RefutationRecord,
    Replay,
    Verdict,
)

Ran = Literal["held", "failed", "error"]
Word = Literal["none", "uphold", "downgrade", "inconclusive"]
"""What the refuter over a model says; `none` where it was not asked."""

RULES: dict[str, str] = {
    "all_hold": "every part of the criterion holds",
    "core_holds": "every core part holds, some other part does not",
    "core_missing": "a core part does not hold",
    "no_witness": "the judge gave no witness for a part of it",
    "pair_not_won": "start and submission, unlabelled and in both orders, were not told apart in its favour",
    "attempt_failed": "the judge's own attempt failed",
    "vacuous": "the witness holds on the untouched start application too, so it shows no change",
    "not_on_start": "the witness does not hold on the start application, so it shows nothing that was kept",
    "varied_inputs": "the witness fails with other inputs: the result follows one input only",
    "not_examined": "a core part is lost already, which decides the criterion: this part was not examined",
    "not_held": "the judge's own witness never held on the submission",
    "counter_witness": "the refuter's counter-witness holds on the submission and shows the fault",
    "refuter_inputs": "the witness fails, again and again, with inputs the refuter chose",
    "cited_and_probed": "source cited by the refuter is there, and a probe the harness ran agrees that it is a sham",
    "refuted": "the refuter takes the claim away without evidence that replays",
    "unstable": "repeated runs of the same witness disagree and most of them fail",
    "missing": "there is no submission",
    "unchanged": "the submission equals the start application, so nothing asked for was changed",
    "build_failed": "the start application builds and the submission does not",
    "serve_failed": "the submission was built but never answered",
    "app_hang": "the submission's page never answered, twice, while the browser worked",
}
"""Every rule's name and its meaning in one sentence, as the report shows it."""


@dataclass(frozen=True)
class SubFacts:
    """What was seen of one sub-requirement. `attempts`: runs of the witness on the submission, in order.

    `start`: its run on the start application, `varied`: its runs with other inputs; None or empty where the
    sub-requirement was not claimed or not `examined`, so that nobody attacked it.
    `refuter`: the refuter's word; `counter`: runs of its counter-witness on the submission, `attacked`: runs of the
    claim's witness with the refuter's inputs, `probed`: a citation of its is in the source and the probe it named
    speaks against the claim. They count only together with the word `downgrade`.
    """

    core: bool
    preservation: bool
    has_witness: bool
    claimed: bool
    attempts: tuple[Ran, ...] = ()
    start: Ran | None = None
    varied: tuple[Ran, ...] = ()
    examined: bool = True
    refuter: Word = "none"
    counter: tuple[Ran, ...] = ()
    attacked: tuple[Ran, ...] = ()
    probed: bool = False
    pair: Literal["none", "won", "not_won"] = "none"
    """How a blind pair ended; it stands in for a witness where a purely visual part has none."""


def facts_of_runs(
    runs: Sequence[Replay],
    *,
    core: bool,
    preservation: bool,
    has_witness: bool,
    claimed: bool,
    examined: bool,
    refutation: RefutationRecord | None,
    pair: PairRecord | None = None,
) -> SubFacts:
    """The facts in the runs of one sub-requirement, when it is judged and when its record is checked."""

    def of(*purposes: Purpose) -> tuple[Ran, ...]:
        return tuple(run.outcome for run in runs if run.purpose in purposes)

    return SubFacts(
        core=core,
        preservation=preservation,
        has_witness=has_witness,
        claimed=claimed,
        attempts=of("propose", "repeat", "tiebreak"),
        start=next(iter(of("vacuity")), None),
        varied=of("vary"),
        examined=examined,
        refuter=refutation.outcome if refutation else "none",
        counter=of("counter"),
        attacked=of("attack"),
        probed=refutation is not None and probe_agrees(refutation),
        pair=_pair_fact(pair),
    )


def probe_agrees(refutation: RefutationRecord) -> bool:
    """Whether a probe that can speaks against the claim beside a citation."""
    probe = refutation.probe
    if probe is None or probe.probe not in get_args(ProvingProbe):
        return False
    return bool(refutation.citations) and probe.finding == "against"


def _pair_fact(pair: PairRecord | None) -> Literal["none", "won", "not_won"]:
    if pair is None or pair.outcome == "not_asked":
        return "none"
    return "won" if pair.outcome == "won" else "not_won"


@dataclass(frozen=True)
class SubDecision:
    """One sub-requirement's credit in each column, and the rule that took it away where one did."""

    core: bool
    judge: bool
    card: bool
    witnessed: bool
    rule: str = ""
    flags: tuple[str, ...] = ()

    def credited(self, column: Column) -> bool:
        return {"judge": self.judge, "card": self.card, "witnessed": self.witnessed}[column]


def decide_sub(facts: SubFacts) -> SubDecision:
    """Credit or not, in each column. Errors of the machine must have been dealt with before: they are no facts."""
    if not facts.claimed:
        return SubDecision(facts.core, False, False, False, "attempt_failed" if facts.has_witness else "no_witness")
    word = _refuter_rule(facts)
    if not facts.has_witness and facts.pair == "won":
        return SubDecision(facts.core, True, not word, True, word, ("blind_pair",))
    if not facts.has_witness:
        missing = "pair_not_won" if facts.pair == "not_won" else "no_witness"
        return SubDecision(facts.core, True, not word, False, missing)
    if not facts.examined:
        return SubDecision(facts.core, True, True, False, "not_examined")
    shown = _refuted(facts) or (word if word != "refuted" else "")
    if shown:
        return SubDecision(facts.core, True, False, False, shown)
    return _by_runs(facts, word)


def _by_runs(facts: SubFacts, word: str) -> SubDecision:
    """The decision on a claim that nothing which replays speaks against; `word` is the refuter's bare word."""
    held = facts.attempts.count("held")
    if 2 * held <= len(facts.attempts):
        return SubDecision(facts.core, True, not word, False, "unstable" if held else "not_held")
    flags = ("flaky",) if held < len(facts.attempts) else ()
    if word:
        return SubDecision(facts.core, True, False, True, word, (*flags, "refuted_without_evidence"))
    return SubDecision(facts.core, True, True, True, flags=flags)


def _refuter_rule(facts: SubFacts) -> str:
    """The rule that the refuter's word comes under, or nothing. Most of the runs must bear its evidence out."""
    if facts.refuter != "downgrade":
        return ""
    if 2 * facts.counter.count("held") > len(facts.counter):
        return "counter_witness"
    if 2 * facts.attacked.count("failed") > len(facts.attacked):
        return "refuter_inputs"
    return "cited_and_probed" if facts.probed else "refuted"


def _refuted(facts: SubFacts) -> str:
    """The mechanical probe that takes the claim away, or nothing."""
    if facts.preservation:
        if facts.start != "held":
            return "not_on_start"
    elif facts.start == "held":
        return "vacuous"
    return "varied_inputs" if "failed" in facts.varied else ""


def decide(subs: Sequence[SubDecision]) -> dict[Column, ColumnVerdict]:
    """The criterion's verdict in each column; a lowered verdict carries the rule that lowered it."""
    verdicts: dict[Column, ColumnVerdict] = {}
    for column in COLUMNS:
        verdict = _verdict(subs, column)
        verdicts[column] = ColumnVerdict(verdict=verdict, rule=_rule(subs, column, verdict))
    return verdicts


def decide_whole(verdict: Verdict, rule: str) -> dict[Column, ColumnVerdict]:
    """The same verdict in every column, where the case as a whole decides (no submission, failed build …)."""
    return {column: ColumnVerdict(verdict=verdict, rule=rule) for column in COLUMNS}


def _verdict(subs: Sequence[SubDecision], column: Column) -> Verdict:
    if all(sub.credited(column) for sub in subs):
        return "PASS"
    return "PARTIAL" if all(sub.credited(column) for sub in subs if sub.core) else "FAIL"


def _rule(subs: Sequence[SubDecision], column: Column, verdict: Verdict) -> str:
    if verdict == "PASS":
        return "all_hold"
    lost = [sub for sub in subs if not sub.credited(column) and (sub.core or verdict == "PARTIAL")]
    attacked = [sub.rule for sub in lost if sub.judge and sub.rule != "not_examined"]
    if attacked:
        return attacked[0]
    return "core_holds" if verdict == "PARTIAL" else "core_missing"
