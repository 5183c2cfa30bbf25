"""Inspect logs: what is in them, and that the real inspect_ai opens them, in Python and in its viewer."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judged_run import SECRET, JudgedRun, rewrite_journal

from bench.atomic import write_json
from evaluator.exports.inspect_log import write_logs
from evaluator.exports.inspect_messages import messages_of
from evaluator.exports.tables import write_tables
from evaluator.scoring import score_files

ToolPython = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def logs(judged: JudgedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("logs")
    assert write_logs([judged.results], out) == [out / "editor.eval"]
    return out


def read(log: Path, name: str) -> Any:
    with zipfile.ZipFile(log) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}
        return json.loads(archive.read(name))


def test_a_task_is_a_sample_with_its_verdicts_as_scores(logs: Path) -> None:
    sample = read(logs / "editor.eval", "samples/list_epoch_1.json")
    assert sample["scores"]["criteria"]["value"] == {"criterion 1": "P", "criterion 2": "C"}
    assert [sample["scores"][name]["value"] for name in ("strict", "graded", "full")] == [0.5, 0.75, 0.0]
    told = sample["scores"]["criteria"]["metadata"]["criteria"][0]
    assert told["columns"]["witnessed"] == {"verdict": "PARTIAL", "rule": "core_holds"}
    assert told["sub_requirements"][0]["replays"][0] == "propose on submission: held"
    header = read(logs / "editor.eval", "header.json")
    assert header["eval"]["viewer"] == {"trust_content": False}
    assert list(header["results"]["scores"][0]["metrics"]) == ["witnessed", "card", "judge"]
    assert header["results"]["scores"][0]["metrics"]["witnessed"]["value"] == pytest.approx(1 / 3, abs=1e-4)


def test_ids_are_unique_in_a_log_and_the_bytes_are_the_same_each_time(
    judged: JudgedRun, logs: Path, tmp_path: Path
) -> None:
    summaries = read(logs / "editor.eval", "summaries.json")
    assert len({one["uuid"] for one in summaries}) == 3
    write_logs([judged.results], tmp_path)
    assert (tmp_path / "editor.eval").read_bytes() == (logs / "editor.eval").read_bytes()


def test_what_is_unscored_has_no_score_and_says_why(judged: JudgedRun, tmp_path: Path) -> None:
    shutil.copytree(judged.root, tmp_path / "copy", symlinks=True)
    results = tmp_path / "copy/results/editor"

    def fail(record: dict[str, Any]) -> dict[str, Any]:
        if (record.get("case"), record.get("criterion_index")) != ("clock", 2):
            return record
        return {**record, "verdict": None, "columns": {}, "outcome": "infra_error", "reason": f"no disk {SECRET}"}

    rewrite_journal(results / "journal.jsonl", fail)
    score_files(results / "cases.json", results / "journal.jsonl", results / "scores.json")
    write_logs([results], tmp_path)
    sample = read(tmp_path / "editor.eval", "samples/clock_epoch_1.json")
    assert "strict" not in sample["scores"] and sample["scores"]["criteria"]["value"]["criterion 2"] == "N"
    assert sample["error"]["message"].startswith("infra_error: no disk")
    assert SECRET not in json.dumps(sample)
    write_tables([results], tmp_path, "jsonl")
    assert "no disk [redacted]" in (tmp_path / "criteria.jsonl").read_text()


def test_a_trajectory_becomes_messages_secrets_taken_out(judged: JudgedRun, tmp_path: Path) -> None:
    shutil.copytree(judged.root, tmp_path / "copy", symlinks=True)
    path = tmp_path / "copy/runs/editor__none__1/trials/clock/1/trajectory.json"
    content = json.loads(path.read_text())
    content["steps"][1]["message"] = f"my key is {SECRET}"
    write_json(path, content)
    write_logs([tmp_path / "copy/results/editor"], tmp_path)
    messages = read(tmp_path / "editor.eval", "samples/clock_epoch_1.json")["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert messages[1]["content"] == "my key is [redacted]"
    assert messages[1]["tool_calls"][0]["function"] == messages[2]["function"] == "bash"


def test_pictures_reasoning_and_unknown_sources_are_not_lost() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image", "source": {"path": "media/a.png"}}]
    steps = [
        {"source": "user", "message": parts},
        {"source": "agent", "message": "", "reasoning_content": "hm"},
        {"source": "moderator", "message": "stop"},
    ]
    made = messages_of({"steps": steps})
    assert made[0]["content"] == "see\n[image: media/a.png]"
    assert made[1]["content"][0] == {"type": "reasoning", "reasoning": "hm"}
    assert made[2] == {"role": "user", "content": "[moderator] stop"}


READ = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
log = read_eval_log(sys.argv[1])
one = read_eval_log_sample(sys.argv[1], id="clock", epoch=1)
summaries = read_eval_log_sample_summaries(sys.argv[1])
print(json.dumps({
    "status": log.status, "task": log.eval.task, "samples": [s.id for s in log.samples],
    "strict": log.results.scores[0].metrics["witnessed"].value, "target": list(one.target),
    "criteria": one.scores["criteria"].value, "messages": [m.role for m in one.messages],
    "summaries": [[s.id, s.scores["strict"].value] for s in summaries],
}))
"""


@pytest.mark.slow
def test_the_real_inspect_ai_reads_the_log(logs: Path, tool_python: ToolPython) -> None:
    python = tool_python("inspect", "3.11")
    ended = subprocess.run(
        [python, "-c", READ, logs / "editor.eval"], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout) == {
        "status": "success", "task": "Small", "samples": ["clock", "list", "shop"], "strict": 0.333333,
        "target": ["The heading says “after”.", "The page keeps its footer."],
        "criteria": {"criterion 1": "C", "criterion 2": "I"}, "messages": ["user", "assistant", "tool"],
        "summaries": [["clock", 0.5], ["list", 0.5], ["shop", 0.0]],
    }  # fmt: skip


@pytest.fixture
def viewer(logs: Path, tool_python: ToolPython, tmp_path: Path) -> Iterator[str]:
    """The real `inspect view`, on a free port."""
    inspect = tool_python("inspect", "3.11").parent / "inspect"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (tmp_path / "view.log").open("wb") as said:
        process = subprocess.Popen(
            [inspect, "view", "start", "--log-dir", logs, "--port", str(port)], stdout=said, stderr=said
        )
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("inspect view did not start")


@pytest.mark.slow
@pytest.mark.browser
def test_the_real_inspect_view_shows_log_and_sample(viewer: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=os.environ.get("CDB_CHROMIUM"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{viewer}#/logs/editor.eval")
        for shown in ("Change clock: say “after” – bitte.", "criterion 1", "graded"):
            expect(page.get_by_text(shown).first).to_be_visible(timeout=30_000)
        page.goto(f"{viewer}#/logs/editor.eval/samples/sample/clock/1/")
        expect(page.get_by_text("Sample clock").first).to_be_visible(timeout=30_000)
        expect(page.get_by_text("Done.").first).to_be_visible(timeout=30_000)
        browser.close()
    assert errors == []
