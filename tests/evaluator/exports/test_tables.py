"""One row a criterion and one a trial, typed, the same in three formats, and opened by `datasets`."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_run import JudgedRun

from bench.errors import UsageError
from bench.strict_json import read_json
from evaluator.exports.entry import results_name
from evaluator.exports.rows import CRITERIA, TRIALS
from evaluator.exports.tables import write_tables
from evaluator.scoring import score_files


@pytest.fixture(scope="module")
def tables(judged: JudgedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tables")
    for kind in ("parquet", "csv", "jsonl"):
        assert write_tables([judged.results], out, kind) == {"criteria": 6, "trials": 3}
    return out


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_says_what_was_judged_and_found(tables: Path) -> None:
    rows = {(r["case"], r["criterion_index"]): r for r in lines(tables / "criteria.jsonl")}
    assert [r["verdict"] for r in rows.values()] == ["PASS", "FAIL", "PARTIAL", "PASS", "FAIL", "FAIL"]
    one = rows["list", 1]
    assert (one["entry"], one["agent"], one["rubric_id"], one["kind"]) == ("editor", "editor", "list-1", "content")
    assert (one["witnessed_rule"], one["sub_requirements"], one["witnesses"], one["replays"]) == (
        "core_holds",
        2,
        2,
        4,
    )
    assert (one["judge_cost_usd"], one["refuter_cost_usd"], one["judge_input_tokens"]) == (0.01, None, 10)
    assert rows["shop", 1]["witnessed_rule"] == "missing" and rows["shop", 1]["submission_digest"] is None


def test_a_trials_row_has_outcome_numbers_and_cost(tables: Path, judged: JudgedRun) -> None:
    rows = {r["case"]: r for r in lines(tables / "trials.jsonl")}
    clock, shop = rows["clock"], rows["shop"]
    assert (clock["strict"], clock["graded"], clock["passed"], clock["failed"]) == (50.0, 50.0, 1, 1)
    assert (clock["duration_s"], clock["cost_usd"], clock["calls"], clock["tokens"]) == (12.5, 0.25, 2, 900)
    assert (shop["outcome"], shop["trial_outcome"], shop["whose"]) == ("missing", "workspace_too_large", "agent")
    assert (shop["submitted"], shop["strict"], shop["failed"]) == (False, 0.0, 2)
    scored = {row["case"]: row["strict"] for row in read_json(judged.results / "scores.json")["cases"]}
    assert {case: row["strict"] for case, row in rows.items()} == scored


def test_parquet_opens_in_datasets_with_every_column_of_its_type(tables: Path, tmp_path: Path) -> None:
    import datasets

    kinds = {"text": "string", "whole": "int64", "number": "float64", "truth": "bool", "texts": "string"}
    for name, columns in (("criteria", CRITERIA), ("trials", TRIALS)):
        found = datasets.load_dataset(
            "parquet", data_files=str(tables / f"{name}.parquet"), split="train", cache_dir=str(tmp_path)
        )
        assert list(found.features) == list(columns)
        for column, kind in columns.items():
            feature = found.features[column]
            assert getattr(feature, "feature", feature).dtype == kinds[kind], column
        assert [dict(row) for row in found] == lines(tables / f"{name}.jsonl")


def test_csv_is_read_back_and_no_cell_of_another_is_run_as_a_formula(
    judged: JudgedRun, tables: Path, tmp_path: Path
) -> None:
    with (tables / "criteria.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["verdict"] for row in rows] == [row["verdict"] for row in lines(tables / "criteria.jsonl")]
    assert (rows[0]["reportable"], rows[0]["model"], rows[0]["judge_cost_usd"]) == ("true", "", "0.01")
    shutil.copytree(judged.root, tmp_path / "copy", symlinks=True)
    lock = tmp_path / "copy/results/editor/lock.json"
    lock.write_text(lock.read_text().replace('"made up"', '"=cmd|calc"'))
    write_tables([tmp_path / "copy/results/editor"], tmp_path / "out", "csv")
    with (tmp_path / "out/criteria.csv").open(newline="") as stream:
        assert next(iter(csv.DictReader(stream)))["judge"] == "'=cmd|calc"


def test_the_same_results_give_the_same_bytes(judged: JudgedRun, tables: Path, tmp_path: Path) -> None:
    for kind in ("parquet", "csv", "jsonl"):
        write_tables([judged.results], tmp_path, kind)
        assert (tmp_path / f"criteria.{kind}").read_bytes() == (tables / f"criteria.{kind}").read_bytes()


def test_an_overruled_verdict_counts_and_what_was_judged_stays(judged: JudgedRun, tmp_path: Path) -> None:
    shutil.copytree(judged.root, tmp_path / "copy", symlinks=True)
    results = tmp_path / "copy/results/editor"
    told = {"case": "clock", "criterion_index": 2, "verdict": "PASS", "author": "me", "reason": "looked"}
    (tmp_path / "o.yaml").write_text(json.dumps({"overrides": [told]}))
    score_files(
        results / "cases.json", results / "journal.jsonl", results / "scores.json", overrides=tmp_path / "o.yaml"
    )
    write_tables([results], tmp_path, "jsonl")
    row = lines(tmp_path / "criteria.jsonl")[1]
    assert (row["verdict"], row["witnessed_verdict"], row["overruled"]) == ("PASS", "FAIL", True)
    assert lines(tmp_path / "trials.jsonl")[0]["strict"] == 100.0


def test_a_foreign_journal_is_exported_with_what_it_has(judged: JudgedRun, tmp_path: Path) -> None:
    results = tmp_path / "foreign"
    results.mkdir()
    cases = (judged.results / "cases.json").read_text().replace("../../", f"{judged.root}/")
    (results / "cases.json").write_text(cases)
    (results / "journal.jsonl").write_text('{"case": "clock", "criterion_index": 1, "verdict": "PARTIAL"}\n')
    score_files(results / "cases.json", results / "journal.jsonl", results / "scores.json")
    write_tables([results], tmp_path, "jsonl")
    first, second = lines(tmp_path / "criteria.jsonl")[:2]
    assert (first["verdict"], first["card_verdict"], first["card_rule"]) == ("PARTIAL", "PARTIAL", None)
    assert (second["verdict"], second["outcome"]) == (None, None)


def test_entries_are_told_apart_by_name_or_refused(judged: JudgedRun, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two results folders are called 'editor'"):
        write_tables([judged.results, judged.results], tmp_path, "csv")
    with pytest.raises(UsageError, match="run `cdb score` first"):
        write_tables([tmp_path], tmp_path, "csv")
    entry = tmp_path / "runs/r/agent__m__1"
    (entry / "results/judge-a").mkdir(parents=True)
    (entry / "journal.jsonl").write_text("")
    assert results_name(entry / "results") == "agent__m__1"
    assert results_name(entry / "results/judge-a") == "agent__m__1__judge-a"


def test_the_verbs_answer_with_their_files(
    judged: JudgedRun, tmp_path: Path, run_cdb: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ended = run_cdb(["export", "csv", judged.results, "--out", tmp_path, "--json"])
    assert json.loads(ended.stdout)["rows"] == {"criteria": 6, "trials": 3}
