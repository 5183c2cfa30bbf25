"""Verdicts follow from facts alone; the refuter only lowers. Every combination of facts is tried."""

from __future__ import annotations

import itertools

import pytest

from evaluator.adjudicate import RULES, Ran, SubDecision, SubFacts, decide, decide_sub
from evaluator.records import COLUMNS

RANK = {"FAIL": 0, "PARTIAL": 1, "PASS": 2}
ATTEMPTS: list[tuple[Ran, ...]] = [
    (), ("held",), ("failed",), ("held", "held"), ("held", "failed", "held"), ("held", "failed", "failed"),
    ("failed", "held", "held"),
]  # fmt: skip
VARIED: list[tuple[Ran, ...]] = [(), ("held",), ("failed",), ("held", "failed")]


def every_fact() -> list[SubFacts]:
    flags = itertools.product([True, False], repeat=4)
    starts: list[Ran | None] = ["held", "failed", None]
    return [
        SubFacts(*f, a, s, v, examined)
        for f, a, s, v, examined in itertools.product(flags, ATTEMPTS, starts, VARIED, [True, False])
    ]


def fact(**changed: object) -> SubFacts:
    good = {
        "core": True, "preservation": False, "has_witness": True, "claimed": True,
        "attempts": ("held", "held"), "start": "failed", "varied": ("held",),
    }  # fmt: skip
    return SubFacts(**{**good, **changed})  # type: ignore[arg-type]


def test_no_column_credits_more_than_the_one_before_it() -> None:
    for facts in every_fact():
        decision = decide_sub(facts)
        credits = [decision.credited(column) for column in COLUMNS]
        assert credits == sorted(credits, reverse=True), facts


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


def test_c100_the_refuter_never_raises_a_verdict() -> None:
    states = [SubDecision(core, *credits) for core in (True, False)
              for credits in ((True, True, True), (True, True, False), (True, False, False), (False, False, False))]  # fmt: skip
    for subs in itertools.product(states, repeat=3):
        ranks = [RANK[decide(subs)[column].verdict] for column in COLUMNS]
        assert ranks == sorted(ranks, reverse=True), subs


def test_a_lowered_verdict_names_the_rule_that_lowered_it() -> None:
    hard_coded = decide_sub(fact(varied=("failed",)))
    verdicts = decide([hard_coded])
    assert (verdicts["judge"].verdict, verdicts["card"].rule) == ("PASS", "varied_inputs")
