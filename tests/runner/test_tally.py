"""A journal that is looked at again and again gives what one look at the whole of it would."""

from __future__ import annotations

import random
from pathlib import Path

from bench.journal import Journal
from runner.tally import Tally


def test_looking_often_tells_the_same_as_looking_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    often, chance = Tally(path), random.Random(1)
    assert often.read_on().trials == {}
    with Journal(path) as journal:
        for _ in range(60):
            case = f"c{chance.randrange(5)}"
            journal.append(
                chance.choice([
                    {"type": "trial", "case": case, "outcome": chance.choice(["ok", "infra_error"]), "account": {"cost_usd": 0.25}},
                    {"type": "criterion", "case": case, "criterion_index": 1, "verdict": chance.choice(["PASS", None])},
                    {"type": "case", "case": case},
                ])
            )  # fmt: skip
            if chance.random() < 0.3:
                often.read_on()
    once = Tally(path).read_on()
    often.read_on()
    assert (often.trials, often.criteria, often.cases, often.usd) == (
        once.trials,
        once.criteria,
        once.cases,
        once.usd,
    )
    assert sum(once.outcomes().values()) == len(once.trials) == 5
    assert once.usd and once.usd % 0.25 == 0


def test_a_torn_line_is_left_for_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"type": "trial", "case": "a", "outcome": "ok"}\n{"type": "trial", "ca')
    tally = Tally(path).read_on()
    assert tally.trials == {"a": "ok"}
    path.write_bytes(path.read_bytes() + b'se": "b", "outcome": "ok"}\n')
    assert tally.read_on().trials == {"a": "ok", "b": "ok"}


def test_a_cost_nobody_knows_makes_the_whole_unknown(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"type": "trial", "case": "a", "outcome": "ok", "account": {"cost_usd": null}}\n')
    assert Tally(path).read_on().usd is None
