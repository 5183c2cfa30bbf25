"""`cdb judge --evidence full` as a user runs it, on one case of the sample: what is kept, and that it is in the chain."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.journal import of_type, read_journal
from bench.release import extract, open_release
from evaluator.evidence.store import Manifest, check_evidence, sha256_of
from evaluator.sample_release import make_sample_release
from evaluator.try_witness import prepare

REPOSITORY = Path(__file__).parents[2]
CASE = "plant-shop"
RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.docker
@pytest.mark.browser
@pytest.mark.slow
def test_everything_of_a_judging_is_kept_hashed_and_of_its_level(tmp_path: Path, run_cdb: RunCdb) -> None:
    extract(open_release(make_sample_release(tmp_path / "release")), tmp_path / "work")
    sources = REPOSITORY / "harness/sample/cases" / CASE
    made = prepare(sources / "project", tmp_path / "gold", sources / "edits/gold.patch")
    submissions = tmp_path / "submissions"
    shutil.copytree(tmp_path / "work/evaluation-inputs/cases" / CASE / "project", submissions / CASE)
    shutil.copytree(made, submissions / CASE, dirs_exist_ok=True)
    inputs = ["--dataset", tmp_path / "work/evaluation-inputs", "--submissions", submissions, "--only", CASE]
    assert run_cdb(["prepare", *inputs, "--out", tmp_path / "evaluation"]).returncode == 0
    results = tmp_path / "results"
    verb = ["judge", "--cases", tmp_path / "evaluation/cases.json", "--out", results, "--model", "recorded"]
    ended = run_cdb([*verb, "--evidence", "full"])
    assert ended.returncode == 0, ended.stderr

    records = read_journal(results / "journal.jsonl").records
    (case,) = of_type(records, "case")
    assert {record["verdict"] for record in of_type(records, "criterion")} == {"PASS"}
    manifest_file = results / "evidence" / CASE / "manifest.json"
    assert case["evidence_sha256"] == sha256_of(manifest_file)
    assert check_evidence(results, CASE) == []
    manifest = Manifest.model_validate(json.loads(manifest_file.read_text()))
    of_first = {one.kind for one in manifest.files if one.criterion == 1}
    assert of_first >= {"witness", "picture", "pair", "har", "trace", "facts", "snapshot"}
    assert json.loads((results / "lock.json").read_text())["evidence"] == "full"
    assert (results / "evidence" / CASE / "start-desktop.jpg").stat().st_nlink > 1

    other = run_cdb([*verb, "--evidence", "minimal"])
    assert other.returncode == 2 and "evidence" in other.stderr
    replayed = run_cdb(["replay", results, CASE, "1", "--json"])
    assert replayed.returncode == 0 and json.loads(replayed.stdout)["notes"] == []
