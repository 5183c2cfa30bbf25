"""The demo, run once as a user would, and everything it promises."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forging import seal_again
from judged_run import rewrite_journal

from bench.journal import of_type, read_journal
from bench.unpack import unpack
from evaluator.bundle.layout import CAPS, tree_of
from evaluator.records import Replay
from evaluator.witness import load_witness
from sandboxes.reap import leftovers

pytestmark = [pytest.mark.docker, pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
TRUTH = Path(__file__).parent.parent / "evaluator/sample/cases"
RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True)
class Demo:
    folder: Path
    answer: dict[str, Any]

    def records(self, agent: str, kind: str) -> list[dict[str, Any]]:
        return list(of_type(read_journal(self.folder / "results" / agent / "journal.jsonl").records, kind))

    def criteria(self, agent: str) -> dict[tuple[str, int], dict[str, Any]]:
        return {(r["case"], r["criterion_index"]): r for r in self.records(agent, "criterion")}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, run_cdb: RunCdb) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo") / "out"
    # A relative path, as people type it: every step must cope with one.
    ended = run_cdb(["demo", "--out", "out", "--json"], deadline_s=800, cwd=folder.parent)
    assert ended.returncode == 0, ended.stderr[-3000:]
    yield Demo(folder, json.loads(ended.stdout))


def truth(agent: str) -> dict[tuple[str, int], str]:
    files = [json.loads(path.read_text(encoding="utf-8")) for path in TRUTH.glob("*/truth.json")]
    return {(f["case"], int(index)): verdict for f in files for index, verdict in f["truth"][agent].items()}


def test_the_answer_is_one_object_with_report_agents_and_time(demo: Demo) -> None:
    assert set(demo.answer) == {"report", "agents", "wall_s"}
    assert Path(demo.answer["report"]).is_file()
    assert set(demo.answer["agents"]) == {"gold", "partial", "stub"}
    assert all(set(a) == {"strict", "graded", "full", "coverage"} for a in demo.answer["agents"].values())


def test_gold_scores_100_and_partial_strictly_between(demo: Demo) -> None:
    agents = demo.answer["agents"]
    assert (agents["gold"]["strict"], agents["gold"]["graded"], agents["gold"]["full"]) == (100.0, 100.0, 100.0)
    assert all(a["coverage"] == "5/5" for a in agents.values())
    for metric in ("strict", "graded"):
        assert agents["stub"][metric] < agents["partial"][metric] < 100.0
        assert agents["partial"][metric] > 0.0


def test_the_stub_gets_nothing_for_any_change(demo: Demo) -> None:
    changes = [r for r in demo.records("stub", "criterion") if r["kind"] != "preservation"]
    assert len(changes) >= 15
    assert {r["verdict"] for r in changes} == {"FAIL"}


@pytest.mark.parametrize("agent", ["gold", "partial", "stub"])
def test_every_verdict_is_the_true_one(demo: Demo, agent: str) -> None:
    found = {key: record["verdict"] for key, record in demo.criteria(agent).items()}
    wrong = {key: (found.get(key), verdict) for key, verdict in truth(agent).items() if found.get(key) != verdict}
    assert wrong == {}
    assert found.keys() == truth(agent).keys()


def test_some_credit_is_taken_away_by_other_inputs(demo: Demo) -> None:
    rules = {r["columns"]["witnessed"]["rule"] for r in demo.records("stub", "criterion")}
    assert "varied_inputs" in rules


def test_every_credit_stands_on_replays_on_submission_and_start(demo: Demo) -> None:
    for agent in demo.answer["agents"]:
        for record in demo.records(agent, "criterion"):
            for sub in record["sub_requirements"]:
                if not sub["witnessed"]:
                    continue
                held = [r for r in sub["replays"] if r["app"] == "submission" and r["outcome"] == "held"]
                start = [r for r in sub["replays"] if r["purpose"] == "vacuity"]
                assert len(held) >= 2, record
                assert [r["outcome"] for r in start] == ["held" if record["kind"] == "preservation" else "failed"], (
                    record
                )
                assert (demo.folder / "results" / agent / sub["witness"]).is_file()


def test_every_picture_a_record_names_is_there(demo: Demo) -> None:
    for agent in demo.answer["agents"]:
        results = demo.folder / "results" / agent
        for record in demo.records(agent, "criterion"):
            for name in (record["start_frame"], record["submission_frame"]):
                assert name is None or (results / name).stat().st_size > 1000
        for record in demo.records(agent, "case"):
            assert set(record["shots"]) == {f"{a}_{s}" for a in ("start", "submission") for s in ("desktop", "phone")}
            assert all((results / name).is_file() for name in record["shots"].values())


def test_scoring_again_gives_the_same_bytes(demo: Demo, run_cdb: RunCdb, tmp_path: Path) -> None:
    results = demo.folder / "results/partial"
    arguments = [
        "--cases",
        results / "cases.json",
        "--results",
        results / "journal.jsonl",
        "--out",
        tmp_path / "s.json",
    ]
    assert run_cdb(["score", *arguments]).returncode == 0
    assert (tmp_path / "s.json").read_bytes() == (results / "scores.json").read_bytes()


def test_a_credit_replays_and_a_spoiled_application_is_caught(demo: Demo, run_cdb: RunCdb, tmp_path: Path) -> None:
    copy = tmp_path / "moved"
    shutil.copytree(demo.folder, copy, symlinks=True)
    case, index = next(
        key for key, r in demo.criteria("gold").items() if r["kind"] != "preservation" and "plant" in key[0]
    )
    replay = ["replay", copy / "results/gold", case, str(index)]
    again = run_cdb(replay)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "not the evidence that was recorded" not in again.stdout + again.stderr
    (copy / "results/gold/evidence" / case / f"{index:02d}" / "a-propose" / "added.jpg").write_bytes(b"")
    assert "not the evidence that was recorded" in run_cdb(replay).stdout
    submission = copy / "runs/gold__none__1/submissions" / case
    page = submission / "index.html"
    page.write_text(page.read_text().replace("</body>", "<script>document.body.textContent = '';</script></body>"))
    broken_seal = run_cdb(replay)
    assert broken_seal.returncode == 1
    assert "changed: index.html" in broken_seal.stderr
    assert run_cdb(["seal", submission, "--again"]).returncode == 0
    spoiled = run_cdb(replay)
    assert spoiled.returncode == 1
    assert "now: FAIL" in spoiled.stdout
    assert "propose on submission: failed" in spoiled.stdout


def test_a_bundle_of_it_verifies_and_a_forgery_that_fits_falls_by_a_replay(
    demo: Demo, run_cdb: RunCdb, tmp_path: Path
) -> None:
    """Everything rewritten to fit, made-up replays too, is what only a replay shows (docs/exports.md)."""
    bundle, root = tmp_path / "b.tar.gz", demo.folder / "work/evaluation-inputs"
    made = run_cdb(["export", "bundle", demo.folder / "results/stub", "--out", bundle])
    assert made.returncode == 0, made.stderr
    found = run_cdb(["verify", bundle, "--replays", "1", "--dataset", root])
    assert found.returncode == 0, found.stdout + found.stderr
    assert ", 1 replayed: no fault found" in found.stdout
    (forged := tmp_path / "forged").mkdir()
    unpack(bundle, forged, CAPS, tree_of, any_name=True)
    rewrite_journal(forged / "results/stub/journal.jsonl", partial(_all_held, forged / "results/stub"))
    seal_again(forged, "stub", "stub__none__1")
    assert run_cdb(["verify", forged, "--dataset", root]).returncode == 0, "nothing in it contradicts itself"
    fails = run_cdb(["verify", forged, "--dataset", root, "--replays", "1", "--rebuild"])
    assert fails.returncode == 1 and "does not replay: recorded PASS, now " in fails.stdout


def _all_held(results: Path, record: dict[str, Any]) -> dict[str, Any]:
    """A criterion's record in which every witness held where it should, and everything follows from that."""
    subs = record.get("sub_requirements") or []
    if not subs or record["kind"] == "preservation":
        return record
    ran = [("submission", "propose", "held"), ("submission", "repeat", "held"), ("start", "vacuity", "failed")]
    tried = next(sub for sub in subs if sub["witness"])
    for sub in subs:
        if sub["witness"] is None:  # it was not tried, since a core part is lost: it takes that one's witness
            sub |= {"witness": tried["witness"], "witness_sha256": tried["witness_sha256"]}
        varied = load_witness(results / sub["witness"]).vary
        runs = [*ran, *[("submission", "vary", "held")] * len(varied)]
        replays = [Replay(app=app, purpose=why, outcome=how) for app, why, how in runs]  # type: ignore[arg-type]
        sub |= {"replays": [run.model_dump() for run in replays], "lowered_by": ""}
        sub |= {"proposed": True, "card": True, "witnessed": True}
    won = {column: {"verdict": "PASS", "rule": "all_hold"} for column in record["columns"]}
    return {**record, "verdict": "PASS", "columns": won}


def test_the_same_judging_again_repeats_nothing(demo: Demo, run_cdb: RunCdb) -> None:
    before = demo.criteria("stub")
    arguments = ["--cases", demo.folder / "evaluation/stub/cases.json", "--out", demo.folder / "results/stub"]
    assert run_cdb(["judge", *arguments, "--model", "recorded"]).returncode == 0
    assert demo.criteria("stub") == before


def test_nothing_is_left_of_it(demo: Demo) -> None:
    assert [found for found in leftovers() if found.owner.is_dead] == []
