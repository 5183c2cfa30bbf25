"""Numbers: the card's formulas, equal weight per task, and honesty about what was not scored."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.errors import DataError, UsageError
from evaluator.cases import Case, Cases, CriterionText, SubmissionFacts
from evaluator.intervals import bootstrap_mean, nested_bootstrap, wilson
from evaluator.score import score, settings_beside


def cases_of(counts: dict[str, int], kinds: dict[str, str] | None = None) -> Cases:
    made = [
        Case(
            case=name, request="r", attachment=(kinds or {}).get(name, "none"), attachments=[], annotation=None,
            project="p", start_digest="sha256:0", serve_plan=None, plan=[], planned=True,
            criteria=[CriterionText(criterion_index=i, rubric_id=f"{name}-{i}", criterion=f"{name} {i}") for i in range(1, n + 1)],
            submission=SubmissionFacts(folder="s", digest="sha256:1", changed_files=1, outcome="ok"),
        )
        for name, n in counts.items()
    ]  # fmt: skip
    return Cases(
        dataset={"name": "D"}, scope={"label": "D, all", "whole": True}, entry={"agent": "a"},
        plans_sha256="sha256:0", cases=made,
    )  # fmt: skip


@pytest.fixture
def scored(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    def run(cases: Cases, lines: list[dict[str, Any]], tail: str = "") -> dict[str, Any]:
        journal = tmp_path / "journal.jsonl"
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines) + tail, encoding="utf-8")
        return score(cases, journal, settings={})

    return run


def verdicts(case: str, *given: str | None) -> list[dict[str, Any]]:
    return [{"case": case, "criterion_index": i, "verdict": v} for i, v in enumerate(given, start=1)]


def means(found: dict[str, Any]) -> tuple[float, float, float]:
    columns = found["columns"]["witnessed"]
    return columns["strict"]["mean"], columns["graded"]["mean"], columns["full"]["mean"]


def test_c109_every_task_weighs_the_same(scored: Callable[..., dict[str, Any]]) -> None:
    lines = verdicts("A", "PASS") + verdicts("B", *["FAIL"] * 9)
    assert means(scored(cases_of({"A": 1, "B": 9}), lines))[0] == 50.0


def test_c109_partial_counts_half_in_graded_only(scored: Callable[..., dict[str, Any]]) -> None:
    lines = verdicts("A", "PASS", "PARTIAL") + verdicts("B", "FAIL", "PARTIAL", "PASS")
    strict, graded, full = means(scored(cases_of({"A": 2, "B": 3}), lines))
    assert (round(strict, 2), graded, full) == (41.67, 62.5, 0.0)


def test_c108_infrastructure_trouble_is_neither_a_fail_nor_dropped(scored: Callable[..., dict[str, Any]]) -> None:
    names = [f"c{n}" for n in range(10)]
    lines = [line for name in names[:6] for line in verdicts(name, "PASS", "FAIL")]
    lines += [line for name in names[6:] for line in verdicts(name, None, None)]
    found = scored(cases_of(dict.fromkeys(names, 2)), lines)
    assert means(found)[0] == 50.0
    assert (found["coverage"]["tasks_scored"], found["coverage"]["tasks"]) == (6, 10)
    assert found["bounds"]["strict"] == {"low": 30.0, "high": 70.0}
    assert found["incomplete"]


def test_a_task_with_one_unscored_criterion_is_not_scored_as_a_fail(scored: Callable[..., dict[str, Any]]) -> None:
    found = scored(cases_of({"A": 2, "B": 2}), verdicts("A", "PASS", "PASS") + verdicts("B", "PASS", None))
    assert means(found) == (100.0, 100.0, 100.0)
    assert found["coverage"] == {"tasks_scored": 1, "tasks": 2, "criteria_scored": 3, "criteria": 4}
    assert found["bounds"]["full"] == {"low": 50.0, "high": 100.0}


def test_c110_doubles_strangers_and_a_torn_line_are_warned_of(scored: Callable[..., dict[str, Any]]) -> None:
    lines = [*verdicts("A", "PASS"), *verdicts("A", "FAIL"), *verdicts("Z", "PASS")]
    found = scored(cases_of({"A": 1}), lines, tail='{"case": "A", "criterion_index": 1, "verd')
    assert means(found)[0] == 100.0
    assert len(found["warnings"]) == 3


def test_c110_a_verdict_that_says_what_it_supersedes_wins(scored: Callable[..., dict[str, Any]]) -> None:
    lines = [*verdicts("A", None), {**verdicts("A", "PASS")[0], "supersedes": 1}]
    assert means(scored(cases_of({"A": 1}), lines))[0] == 100.0


@pytest.mark.parametrize("name", ["criterion_index", "rubric_id", "criterion"])
def test_a_foreign_journal_may_name_a_criterion_in_three_ways(
    scored: Callable[..., dict[str, Any]], name: str
) -> None:
    value = {"criterion_index": 1, "rubric_id": "A-1", "criterion": "A 1"}[name]
    found = scored(cases_of({"A": 1}), [{"case_id": "A", name: value, "verdict": "PASS"}])
    assert means(found)[0] == 100.0


@pytest.mark.parametrize("verdict", ["pass", "N/A", "", 1, True])
def test_a_verdict_outside_the_three_is_an_error_not_a_score(
    scored: Callable[..., dict[str, Any]], verdict: object
) -> None:
    with pytest.raises(DataError, match="line 1"):
        scored(cases_of({"A": 1}), [{"case": "A", "criterion_index": 1, "verdict": verdict}])


def test_tasks_are_grouped_by_their_primary_attachment(scored: Callable[..., dict[str, Any]]) -> None:
    cases = cases_of({"A": 1, "B": 1, "C": 1}, {"A": "audio", "B": "audio"})
    found = scored(cases, verdicts("A", "PASS") + verdicts("B", "FAIL") + verdicts("C", "PASS"))
    assert found["by_attachment"]["audio"] == {"tasks": 2, "strict": 50.0, "graded": 50.0, "full": 50.0}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from(["PASS", "PARTIAL", "FAIL"]), min_size=1, max_size=8), min_size=1, max_size=12)
)
def test_the_metrics_agree_with_a_naive_second_count(tasks: list[list[str]]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        journal = Path(folder) / "journal.jsonl"
        lines = [line for n, given in enumerate(tasks) for line in verdicts(f"t{n}", *given)]
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = score(cases_of({f"t{n}": len(given) for n, given in enumerate(tasks)}), journal, settings={})
    strict = sum(t.count("PASS") / len(t) for t in tasks) / len(tasks)
    graded = sum((t.count("PASS") + t.count("PARTIAL") / 2) / len(t) for t in tasks) / len(tasks)
    full = sum(set(t) == {"PASS"} for t in tasks) / len(tasks)
    assert means(found) == pytest.approx((100 * strict, 100 * graded, 100 * full), abs=1e-3)


def test_the_bootstrap_interval_matches_the_exact_one_for_a_coin() -> None:
    found = bootstrap_mean([0.0, 1.0] * 50, seed=0)
    assert found.mean == 0.5
    assert (found.low, found.high) == pytest.approx((0.40, 0.60), abs=0.011)


@pytest.mark.parametrize(("value", "n"), [(0.5, 1), (1.0, 4), (0.0, 96), (0.25, 8)])
def test_equal_values_are_no_certainty(value: float, n: int) -> None:
    found = bootstrap_mean([value] * n, seed=0)
    assert found.mean == value
    assert 0 <= found.low <= value <= found.high <= 1
    assert found.high - found.low > 1 / (2 * n)
    if value == 1.0:
        assert (found.low, found.high) == wilson(n, n)[1:]
    assert nested_bootstrap([[value] * 2] * n, seed=0) == found


def test_wilson_matches_the_published_example() -> None:
    # 10 of 20 successes: Wilson 95 % interval 0.299 to 0.701 (Newcombe 1998, method 3).
    found = wilson(10, 20)
    assert (found.low, found.high) == pytest.approx((0.299, 0.701), abs=5e-4)


def test_the_same_journal_gives_the_same_bytes_under_any_locale_hash_seed_and_number_of_workers(
    tmp_path: Path,
) -> None:
    cases = cases_of({f"Ä{n}": 1 + n % 4 for n in range(40)}, {"Ä1": "audio", "Ä2": "video"})
    (tmp_path / "cases.json").write_text(cases.model_dump_json(by_alias=True), encoding="utf-8")
    chance = random.Random(3)
    lines = [
        {**line, "flags": [chance.choice(["flaky", "lowered"])]}
        for case in cases.cases
        for line in verdicts(case.case, *chance.choices(["PASS", "PARTIAL", "FAIL", None], k=len(case.criteria)))
    ]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    written = set()
    for seed, locale, workers in (("0", "C", "1"), ("1", "C.UTF-8", "2"), ("77", "de_DE.UTF-8", "8")):
        out = tmp_path / seed / "scores.json"
        argv = ["score", "--cases", tmp_path / "cases.json", "--results", tmp_path / "journal.jsonl", "--out", out]
        threads = {"OMP_NUM_THREADS": workers, "OPENBLAS_NUM_THREADS": workers}
        ended = subprocess.run(
            [sys.executable, "-m", "cdb", *map(str, argv)], check=False, capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, **threads},
        )  # fmt: skip
        assert ended.returncode == 3, ended.stderr
        written.add(tuple(out.with_name(name).read_bytes() for name in ("scores.json", "run_card.md", "spend.json")))
    assert len(written) == 1


def test_the_order_in_which_workers_ended_changes_nothing(scored: Callable[..., dict[str, Any]]) -> None:
    cases = cases_of({f"t{n}": 3 for n in range(12)})
    lines = [line for case in cases.cases for line in verdicts(case.case, "PASS", "PARTIAL", "FAIL")]
    first = scored(cases, lines)
    random.Random(5).shuffle(lines)
    assert scored(cases, lines) == first


def test_an_edited_journal_of_ours_is_refused_not_scored(tmp_path: Path) -> None:
    from bench.journal import Journal

    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        for line in verdicts("A", "FAIL") + verdicts("B", "FAIL"):
            journal.append({"type": "criterion", **line})
    path.write_bytes(path.read_bytes().replace(b'"FAIL"', b'"PASS"'))
    with pytest.raises(DataError, match="hash chain"):
        score(cases_of({"A": 1, "B": 1}), path, settings={})


def test_a_lock_of_another_judging_beside_the_journal_is_refused(tmp_path: Path) -> None:
    cases = cases_of({"A": 1})
    lock = {"step": "judge", "dataset": cases.dataset, "scope": cases.scope, "entry": {"agent": "other"}}
    (tmp_path / "lock.json").write_text(json.dumps(lock))
    with pytest.raises(UsageError, match=r"entry.*submissions|submissions.*entry|plans_sha256"):
        settings_beside(tmp_path / "journal.jsonl", cases)


@pytest.mark.parametrize(
    "odd",
    [{"verdit": "PASS"}, {"verdict": "PASS", "columns": [1]}, {"verdict": "PASS", "columns": {"judge": None}}],
)
def test_odd_records_are_errors_that_name_the_line(
    scored: Callable[..., dict[str, Any]], odd: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match="line 1"):
        scored(cases_of({"A": 1}), [{"case": "A", "criterion_index": 1, **odd}])


def test_odd_flags_blank_lines_and_a_missing_last_newline_are_no_trouble(tmp_path: Path) -> None:
    journal = tmp_path / "foreign.jsonl"
    line = json.dumps({"case": "A", "criterion_index": 1, "verdict": "PASS", "flags": [["x"], 5, "kept"]})
    journal.write_text("\n" + line)
    found = score(cases_of({"A": 1}), journal, settings={})
    assert (means(found)[0], found["flags"]) == (100.0, {"kept": 1})


def test_a_verdict_that_supersedes_something_else_does_not_win(scored: Callable[..., dict[str, Any]]) -> None:
    lines = [*verdicts("A", "FAIL"), {**verdicts("A", "PASS")[0], "supersedes": None}]
    assert means(scored(cases_of({"A": 1}), lines))[0] == 0.0


def test_c110_the_winner_does_not_depend_on_what_else_is_in_the_journal(
    scored: Callable[..., dict[str, Any]],
) -> None:
    first, again = verdicts("A", "FAIL")[0], {**verdicts("A", "PASS")[0], "supersedes": 2}
    lines = [*verdicts("B", "PASS"), first, {**first, "verdict": "PARTIAL"}, again, {**first, "supersedes": 2}]
    found = scored(cases_of({"A": 1, "B": 1}), lines)
    assert means(found)[0] == 100.0  # line 4 replaced line 2; line 5 names a line that is no winner any more
    assert [w.partition(":")[0] for w in found["warnings"]] == ["line 3", "line 5"]


def test_c110_a_million_doubles_do_not_make_a_million_warnings(scored: Callable[..., dict[str, Any]]) -> None:
    found = scored(cases_of({"A": 1}), verdicts("A", "PASS") * 500)
    assert len(found["warnings"]) == 21
    assert found["warnings"][-1] == "479 more lines: second verdicts, ignored"


def test_c111_a_subset_and_an_incomplete_result_say_so(scored: Callable[..., dict[str, Any]]) -> None:
    found = scored(cases_of({"A": 1, "B": 1}), verdicts("A", "PASS"))
    assert found["label"] == "INCOMPLETE (1 of 2 tasks scored), not a result of: D, all"
    assert (found["partial"], found["incomplete"]) == (True, True)


def test_c142_every_row_that_is_not_ok_says_whose_why_and_what_next(scored: Callable[..., dict[str, Any]]) -> None:
    cases = cases_of({"A": 1, "B": 1, "C": 1, "D": 1})
    cases.cases[1].submission = None
    lines = [
        *verdicts("A", "PASS"), *verdicts("B", "FAIL"),
        {**verdicts("C", None)[0], "outcome": "judge_error", "reason": "no reply"},
        *verdicts("D", "FAIL"),
        {"type": "case", "case": "D", "outcome": "build_failed", "reason": "tsc: error TS2304"},
    ]  # fmt: skip
    found = scored(cases, lines)
    assert sum(found["outcomes"].values()) == 4
    rows = {row["case"]: row for row in found["cases"]}
    assert rows["A"]["outcome"] == "ok"
    told = {name: (row["outcome"], row["whose"], row["reason"]) for name, row in rows.items() if name != "A"}
    assert told == {
        "B": ("missing", "agent", "no submission"),
        "C": ("judge_error", "judge", "no reply"),
        "D": ("build_failed", "application", "tsc: error TS2304"),
    }
    assert all(rows[name]["next_step"] and rows[name]["logs"] for name in "BCD")


@pytest.mark.parametrize("name", [True, 1.0, None, [1], {"a": 1}])
def test_what_only_looks_like_a_position_is_no_criterion(scored: Callable[..., dict[str, Any]], name: object) -> None:
    found = scored(cases_of({"A": 1}), [{"case": "A", "criterion": name, "verdict": "PASS"}])
    assert found["coverage"]["criteria_scored"] == 0


def test_a_text_that_two_criteria_share_names_neither(scored: Callable[..., dict[str, Any]]) -> None:
    cases = cases_of({"A": 2})
    for criterion in cases.cases[0].criteria:
        criterion.criterion = "the same words"
    lines = [{"case": "A", "criterion": "the same words", "verdict": "PASS"}, *verdicts("A", "FAIL", "FAIL")]
    found = scored(cases, lines)
    assert means(found)[0] == 0.0
    assert "several criteria" in found["warnings"][0]


def test_two_verdicts_in_one_line_are_an_error_not_a_choice(tmp_path: Path) -> None:
    journal = tmp_path / "foreign.jsonl"
    journal.write_text('{"case": "A", "criterion": 1, "verdict": "FAIL", "verdict": "PASS"}\n')
    with pytest.raises(DataError, match=r"line 1.*twice"):
        score(cases_of({"A": 1}), journal, settings={})


def test_lines_of_two_kinds_are_refused(tmp_path: Path) -> None:
    journal = tmp_path / "mixed.jsonl"
    ours = {"schema": "cdb.journal/1", "seq": 2, "prev": "0" * 64, **verdicts("A", "PASS")[0]}
    journal.write_text(json.dumps(verdicts("A", "FAIL")[0]) + "\n" + json.dumps(ours) + "\n")
    with pytest.raises(DataError, match="line 2: a line of a journal of ours"):
        score(cases_of({"A": 1}), journal, settings={})


def attempt_lines(*attempts: list[str | None]) -> list[dict[str, Any]]:
    return [{**line, "attempt": n} for n, given in enumerate(attempts, start=1) for line in verdicts("A", *given)]


def test_attempts_are_averaged_and_give_pass_at_k(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    lines = attempt_lines(["PASS", "PASS"], ["PASS", "FAIL"], ["FAIL", "PARTIAL"], ["PASS", "PASS"])
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = score(cases_of({"A": 2}), journal, settings={}, attempts=True)
    assert means(found) == (62.5, 68.75, 50.0)
    rates = found["attempts"]["columns"]["witnessed"]
    assert rates["pass_at"] == {"1": 50.0, "2": 83.3333, "3": 100.0, "4": 100.0}
    assert rates["pass_hat"] == {"1": 50.0, "2": 16.6667, "3": 0.0, "4": 0.0}
    assert found["attempts"]["count"] == 4
    one = score(cases_of({"A": 2}), journal, settings={})
    assert means(one)[0] == 100.0  # without --attempts the others are doubles
    assert "--attempts" in one["warnings"][0]


def test_an_attempt_with_something_unscored_is_left_out_of_the_mean(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    lines = attempt_lines(["PASS"], [None], ["PASS"])
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = score(cases_of({"A": 1}), journal, settings={}, attempts=True)
    assert (means(found)[0], found["incomplete"]) == (100.0, True)
    assert found["bounds"]["strict"] == {"low": 66.6667, "high": 100.0}
    assert (found["attempts"]["trials_scored"], found["coverage"]["tasks_scored"]) == (2, 0)


def override(**changed: Any) -> dict[str, Any]:
    line = {"case": "A", "criterion_index": 1, "verdict": "PASS", "author": "R. Reader", "reason": "seen by hand"}
    return {"overrides": [line | changed]}


def test_an_override_keeps_the_raw_verdict_beside_author_and_reason(tmp_path: Path) -> None:
    from evaluator.overrides import read_overrides

    (tmp_path / "o.yaml").write_text(json.dumps(override()))
    (tmp_path / "j.jsonl").write_text("".join(json.dumps(line) + "\n" for line in verdicts("A", "FAIL", None)))
    overrides = read_overrides(tmp_path / "o.yaml")
    found = score(cases_of({"A": 2}), tmp_path / "j.jsonl", settings={}, overrides=overrides)
    assert found["cases"][0]["pass"] == 1
    said = found["overrides"][0]
    assert (said["raw"]["witnessed"], said["verdict"], said["author"]) == ("FAIL", "PASS", "R. Reader")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (override(author=""), "author"),
        (override(why="x"), "why"),
        (override(verdict="pass"), "verdict"),
        ({"overrides": override()["overrides"] * 2}, "twice"),
    ],
)
def test_an_override_without_author_or_with_a_typo_is_refused(
    tmp_path: Path, content: dict[str, Any], message: str
) -> None:
    from evaluator.overrides import read_overrides

    (tmp_path / "o.yaml").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=message):
        read_overrides(tmp_path / "o.yaml")


def test_an_override_of_nothing_is_refused(tmp_path: Path) -> None:
    from evaluator.overrides import Override

    (tmp_path / "j.jsonl").write_text(json.dumps(verdicts("A", "FAIL")[0]) + "\n")
    strange = Override.model_validate(override(case="Z")["overrides"][0])
    with pytest.raises(UsageError, match="Z criterion 1"):
        score(cases_of({"A": 1}), tmp_path / "j.jsonl", settings={}, overrides=[strange])


def test_the_no_op_entry_keeps_what_is_to_be_preserved(scored: Callable[..., dict[str, Any]]) -> None:
    from evaluator.records import CriterionPlan, SubRequirement

    cases = cases_of({"A": 2, "B": 1})
    kinds = ("preservation", "behaviour")
    cases.cases[0].plan = [
        CriterionPlan(criterion_index=n, kind=kind, sub_requirements=[SubRequirement(id="a", text="t")])  # type: ignore[arg-type]
        for n, kind in enumerate(kinds, start=1)
    ]
    noop = scored(cases, verdicts("A", "PASS", "PASS") + verdicts("B", "PASS"))["noop"]
    assert (noop["strict"], noop["full"], noop["preservation_criteria"]) == (25.0, 0.0, 1)


def test_the_run_card_says_scope_caveats_and_what_was_flagged(tmp_path: Path) -> None:
    from evaluator.run_card import run_card

    (tmp_path / "j.jsonl").write_text(json.dumps({**verdicts("A", "PASS")[0], "flags": ["flaky"]}) + "\n")
    cases = cases_of({"A": 1, "B": 1})
    cases.entry = {"agent": "x<script>|", "model": "m", "attempt": 2, "reportable": True}
    card = run_card(score(cases, tmp_path / "j.jsonl", settings={"judge": {"name": "recorded"}}))
    for words in ("PARTIAL", "INCOMPLETE", "flaky: 1", "judge.name: recorded", "apart from the paper's full set",
                  "evidence audits", "1 of 2 tasks scored whole", "no-op"):  # fmt: skip
        assert words in card, words
    assert "<script>" not in card


def test_c121_eight_scorings_at_once_leave_whole_files(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from evaluator.cases import write_cases
    from evaluator.scoring import score_files

    write_cases(cases_of({"A": 1}), tmp_path / "cases.json")
    (tmp_path / "journal.jsonl").write_text(json.dumps(verdicts("A", "PASS")[0]) + "\n")
    files = (tmp_path / "cases.json", tmp_path / "journal.jsonl", tmp_path / "out" / "scores.json")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: score_files(*files), range(8)))
    assert json.loads(files[2].read_text()) == json.loads(json.dumps(found[0]))
    assert sorted(p.name for p in files[2].parent.iterdir()) == ["run_card.md", "scores.json", "spend.json"]
