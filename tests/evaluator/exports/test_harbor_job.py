"""What a Harbor job left becomes submissions; a hostile one gets nothing read but its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_run import SECRET, JudgedRun

from bench.errors import DataError, UsageError
from bench.submission import check_seal, read_manifest, who_made
from evaluator.exports.harbor_job import import_job
from evaluator.prepare import prepare

MakeTrial = Callable[..., Path]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs/2026-11-30"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text('{"n_total_trials": 2}')
    return folder


@pytest.fixture
def trial(job: Path) -> MakeTrial:
    """Writes a trial as Harbor 0.26 does; `manifest`: what was collected, None for no manifest."""

    def make(name: str, case: str = "clock", manifest: Any = "ok", **record: Any) -> Path:
        folder = job / name
        tree = folder / "artifacts/workspace"
        tree.mkdir(parents=True)
        (tree / "index.html").write_text(f"<h1>after</h1>{name}")
        entry = {
            "source": "/workspace",
            "destination": "artifacts/workspace",
            "type": "directory",
            "status": manifest,
        }
        if manifest is not None:
            listed = manifest if isinstance(manifest, list) else [entry]
            (folder / "artifacts/manifest.json").write_text(json.dumps(listed))
        told = {
            "task_name": f"co-design-bench/{case}", "trial_name": name,
            "agent_info": {"name": "claude-code", "version": "1", "model_info": {"name": "opus", "provider": "anthropic"}},
            "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 40, "n_output_tokens": 7, "cost_usd": 0.5},
            "agent_execution": {"started_at": "2026-11-30T10:00:00Z", "finished_at": "2026-11-30T10:02:05Z"},
        }  # fmt: skip
        (folder / "result.json").write_text(json.dumps({**told, **record}))
        return folder

    return make


def test_trials_become_sealed_submissions_with_who_made_them(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path
) -> None:
    trial("clock__a")
    trial("list__a", "list")
    trial("clock__b")
    found = import_job(job, judged.dataset, tmp_path / "out")
    first = tmp_path / "out/claude-code__anthropic-opus__1"
    assert [(one.case, one.entry) for one in found] == [
        ("clock", first.name), ("clock", "claude-code__anthropic-opus__2"), ("list", first.name),
    ]  # fmt: skip
    assert who_made(first)["model"] == "anthropic/opus" and who_made(first)["harness"] == "harbor"
    seal = read_manifest(first, "clock")
    assert seal and (seal.outcome, seal.duration_s) == ("made elsewhere", 125.0)
    assert seal.usage == {"tokens": {"input": 60, "cache_read": 40, "output": 7}, "cost_usd": 0.5}
    assert seal.changes == ["removed: _annotations/shot.png", "changed: index.html"]
    check_seal(first, seal)
    cases = prepare(judged.dataset, first, tmp_path / "evaluation")
    assert cases.entry == {
        "agent": "claude-code", "model": "anthropic/opus", "harness": "harbor", "attempt": 1, "reportable": True,
        "notes": f"Harbor job {job.name}",
    }  # fmt: skip
    assert [case.case for case in cases.cases if case.submission] == ["clock", "list"]


def test_c56_a_tree_is_taken_over_by_the_rules_of_a_snapshot(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path
) -> None:
    tree = trial("clock__a") / "artifacts/workspace"
    (tmp_path / "outside").write_text("a secret of this machine")
    (tree / "steal").symlink_to(tmp_path / "outside")
    (tree / "up").symlink_to("../../result.json")
    (tree / "own").symlink_to("/workspace/index.html")
    os.mkfifo(tree / "pipe")
    (tree / "node_modules/x").mkdir(parents=True)
    (tree / "node_modules/x/i.js").write_text("1")
    (one,) = import_job(job, judged.dataset, tmp_path / "out")
    place = tmp_path / "out" / one.entry
    assert sorted(path.name for path in (place / "clock").iterdir()) == ["index.html", "own"]
    assert os.readlink(place / "clock/own") == "index.html"
    seal = read_manifest(place, "clock")
    assert seal and {node.path for node in seal.refused} == {"steal", "up", "pipe"}
    assert [node.path for node in seal.left_out] == ["node_modules"]


@pytest.mark.parametrize("place", ["artifacts/../../..", "/../../etc", "artifacts/..", "..", "artifacts"])
def test_a_manifest_that_names_a_place_outside_is_refused(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path, place: str
) -> None:
    entry = {"source": "/workspace", "destination": place, "type": "directory", "status": "ok"}
    trial("clock__a", manifest=[entry])
    with pytest.raises(DataError, match="out of the artifacts"):
        import_job(job, judged.dataset, tmp_path / "out")


@pytest.mark.parametrize("what", ["artifacts", "artifacts/workspace"])
def test_a_link_for_a_folder_is_not_followed(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path, what: str
) -> None:
    folder = trial("clock__a", manifest=None)
    (folder / what).rename(tmp_path / "moved")
    (folder / what).symlink_to(tmp_path / "moved")
    (one,) = import_job(job, judged.dataset, tmp_path / "out")
    assert (one.digest, one.reason) == (None, f"{what} is a link")


def test_records_that_are_links_huge_or_no_json_are_refused_by_name(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = trial("clock__a") / "result.json"
    record.write_text("{")
    with pytest.raises(DataError, match=r"clock__a/result\.json is not strict JSON"):
        import_job(job, judged.dataset, tmp_path / "out")
    (tmp_path / "elsewhere").write_text("{}")
    record.unlink()
    record.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"clock__a/result\.json is no plain file"):
        import_job(job, judged.dataset, tmp_path / "out")
    record.unlink()
    record.write_text("{}  ")
    monkeypatch.setattr("evaluator.exports.harbor_job._MOST_JSON_BYTES", 3)
    with pytest.raises(DataError, match="more than any record"):
        import_job(job, judged.dataset, tmp_path / "out")


def test_what_left_no_submission_is_told_with_its_reason_and_never_made_up(
    job: Path,
    trial: MakeTrial,
    judged: JudgedRun,
    tmp_path: Path,
    run_cdb: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    trial("clock__a", manifest="failed")
    trial("list__a", "list", manifest=[])
    trial("other__a", "other/../evil")
    for path in (trial("shop__a", "shop") / "artifacts/workspace").iterdir():
        path.unlink()
    found = {one.trial: one for one in import_job(job, judged.dataset, tmp_path / "out")}
    assert {name: one.reason for name, one in found.items()} == {
        "clock__a": "/workspace was not collected (directory, failed)",
        "list__a": "its artifacts hold no /workspace",
        "other__a": "its task 'co-design-bench/other/../evil' is none of this dataset",
        "shop__a": "what it left is empty",
    }
    ended = run_cdb(["import", "harbor", job, "--dataset", judged.dataset, "--out", tmp_path / "again"])
    assert ended.returncode == 3 and "no submission: clock__a (clock): /workspace was not collected" in ended.stdout


def test_an_exception_of_harbors_is_kept_with_the_submission(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path
) -> None:
    trial("clock__a", exception_info={"exception_type": "AgentTimeoutError", "exception_message": f"key {SECRET}"})
    (one,) = import_job(job, judged.dataset, tmp_path / "out")
    seal = read_manifest(tmp_path / "out" / one.entry, "clock")
    assert seal and (seal.reason, seal.flags) == ("AgentTimeoutError: key [redacted]", ["harbor_exception"])


def test_names_of_agents_are_safe_as_folders_and_odd_values_do_no_harm(
    job: Path, trial: MakeTrial, judged: JudgedRun, tmp_path: Path
) -> None:
    trial(
        "clock__a",
        agent_info={"name": "../../evil", "model_info": {"name": "a/b"}},
        agent_result=[1],
        agent_execution="x",
    )
    (one,) = import_job(job, judged.dataset, tmp_path / "out")
    assert one.entry == "evil__a-b__1" and one.digest
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["evil__a-b__1", "import.json"]


def test_the_wrong_folders_are_named(job: Path, judged: JudgedRun, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no trial of Harbor's"):
        import_job(job, judged.dataset, tmp_path / "out")
    with pytest.raises(UsageError, match="is no folder"):
        import_job(job / "nothing", judged.dataset, tmp_path / "out")
    with pytest.raises(UsageError, match="is not empty"):
        import_job(job, judged.dataset, job)
