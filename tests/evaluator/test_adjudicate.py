"""Verdicts follow from facts alone; the refuter only lowers. Every combination of facts is tried."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import pytest

from evaluator.adjudicate import RULES, Ran, SubDecision, SubFacts, Word, decide, decide_sub
from evaluator.records import COLUMNS

RANK = {"FAIL": 0, "PARTIAL": 1, "PASS": 2}
ATTEMPTS: list[tuple[Ran, ...]] = [
    (), ("held",), ("failed",), ("held", "held"), ("held", "failed", "held"), ("held", "failed", "failed"),
    ("failed", "held", "held"),
]  # fmt: skip
VARIED: list[tuple[Ran, ...]] = [(), ("held",), ("failed",), ("held", "failed")]
WORDS: list[Word] = ["none", "uphold", "downgrade", "inconclusive"]
COUNTERS: list[tuple[Ran, ...]] = [(), ("held", "held"), ("failed", "failed"), ("held", "failed", "held")]
ATTACKED: list[tuple[Ran, ...]] = [(), ("failed", "failed"), ("held", "held"), ("failed", "held", "held")]
EVERY_COLUMN_ORDER = [(True, True, True), (True, True, False), (True, False, True), (True, False, False),
                      (False, False, False)]  # fmt: skip


@cache
def every_fact() -> list[SubFacts]:
    flags = itertools.product([True, False], repeat=4)
    starts: list[Ran | None] = ["held", "failed", None]
    refuted = itertools.product(WORDS, COUNTERS, ATTACKED, [True, False])
    return [
        SubFacts(*f, a, s, v, examined, *told)
        for f, a, s, v, examined, told in itertools.product(
            flags, ATTEMPTS, starts, VARIED, [True, False], list(refuted)
        )
    ]


def fact(**changed: object) -> SubFacts:
    good = {
        "core": True, "preservation": False, "has_witness": True, "claimed": True,
        "attempts": ("held", "held"), "start": "failed", "varied": ("held",),
    }  # fmt: skip
    return SubFacts(**{**good, **changed})  # type: ignore[arg-type]


def test_no_column_credits_more_than_the_judge_claimed() -> None:
    for facts in every_fact():
        decision = decide_sub(facts)
        assert decision.judge == facts.claimed
        assert decision.judge or not (decision.card or decision.witnessed), facts


def test_any_downgrade_lowers_the_card_column_and_only_what_replays_lowers_the_witnessed_one() -> None:
    for facts in every_fact():
        decision = decide_sub(facts)
        quiet = decide_sub(replace(facts, refuter="none"))
        if facts.refuter != "downgrade":
            assert decision == quiet, facts
            continue
        assert not decision.card or not facts.examined, facts
        shown = 2 * facts.counter.count("held") > len(facts.counter) or 2 * facts.attacked.count("failed") > len(
            facts.attacked
        )
        shown = shown or facts.probed
        assert decision.witnessed == (quiet.witnessed and not shown), facts


def test_a_credit_in_the_witnessed_column_always_stands_on_a_witness_that_replayed() -> None:
    for facts in every_fact():
        if decide_sub(facts).witnessed:
            assert facts.has_witness
            assert facts.claimed
            assert 2 * facts.attempts.count("held") > len(facts.attempts)
            assert facts.start == ("held" if facts.preservation else "failed") or facts.start is None
            assert "failed" not in facts.varied


def test_every_lowering_names_a_known_rule() -> None:
    for facts in every_fact():
        decision = decide_sub(facts)
        assert decision.rule in RULES or (decision.rule == "" and decision.witnessed)


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        (fact(), ""),
        (fact(start="held"), "vacuous"),
        (fact(varied=("held", "failed")), "varied_inputs"),
        (fact(attempts=("held", "failed", "failed")), "unstable"),
        (fact(claimed=False), "attempt_failed"),
        (fact(has_witness=False), "no_witness"),
        (fact(examined=False), "not_examined"),
        (fact(preservation=True, start="held"), ""),
        (fact(preservation=True, start="failed"), "not_on_start"),
        (fact(attempts=("failed",)), "not_held"),
        (fact(refuter="downgrade"), "refuted"),
        (fact(refuter="downgrade", counter=("held", "held")), "counter_witness"),
        (fact(refuter="downgrade", counter=("failed", "failed")), "refuted"),
        (fact(refuter="downgrade", attacked=("failed", "held", "failed")), "refuter_inputs"),
        (fact(refuter="downgrade", probed=True), "cited_and_probed"),
        (fact(refuter="uphold", counter=("held", "held"), probed=True), ""),
    ],
)
def test_each_rule_has_its_facts(facts: SubFacts, rule: str) -> None:
    assert decide_sub(facts).rule == rule


def test_two_of_three_runs_are_a_credit_that_is_flagged() -> None:
    decision = decide_sub(fact(attempts=("held", "failed", "held")))
    assert (decision.witnessed, decision.flags) == (True, ("flaky",))


@pytest.mark.parametrize(
    ("core_holds", "other_holds", "verdict"),
    [(True, True, "PASS"), (True, False, "PARTIAL"), (False, True, "FAIL"), (False, False, "FAIL")],
)
def test_pass_partial_and_fail(core_holds: bool, other_holds: bool, verdict: str) -> None:
    subs = [SubDecision(True, *[core_holds] * 3), SubDecision(False, *[other_holds] * 3)]
    assert decide(subs)["witnessed"].verdict == verdict


def test_c100_no_column_stands_above_the_judge_s() -> None:
    states = [SubDecision(core, *credits) for core in (True, False) for credits in EVERY_COLUMN_ORDER]
    for subs in itertools.product(states, repeat=3):
        ranks = {column: RANK[decide(subs)[column].verdict] for column in COLUMNS}
        assert ranks["card"] <= ranks["judge"], subs
        assert ranks["witnessed"] <= ranks["judge"], subs


@pytest.mark.parametrize(
    ("core", "other", "card"),
    [("uphold", "downgrade", "PARTIAL"), ("downgrade", "uphold", "FAIL"), ("inconclusive", "none", "PASS")],
)
def test_c100_what_the_refuter_lowers_is_lowered_in_card(core: Word, other: Word, card: str) -> None:
    subs = [decide_sub(fact(refuter=core)), decide_sub(fact(core=False, refuter=other))]
    verdicts = decide(subs)
    assert (verdicts["judge"].verdict, verdicts["card"].verdict, verdicts["witnessed"].verdict) == (
        "PASS",
        card,
        "PASS",
    )


def test_a_lowered_verdict_names_the_rule_that_lowered_it() -> None:
    hard_coded = decide_sub(fact(varied=("failed",)))
    verdicts = decide([hard_coded])
    assert (verdicts["judge"].verdict, verdicts["card"].rule) == ("PASS", "varied_inputs")
