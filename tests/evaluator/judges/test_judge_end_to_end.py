"""`cdb judge` with scripted models, as a user runs it: containers, browser, HTTP protocol, journal, replay."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import ModelServer, tool

from bench.journal import of_type, read_journal
from bench.release import extract, open_release
from evaluator.sample_release import make_sample_release
from evaluator.try_witness import prepare

RunCdb = Callable[..., "subprocess.CompletedProcess[str]"]
REPOSITORY = Path(__file__).parents[3]
CASE = "plant-shop"
TRUTH = REPOSITORY / "evaluator/sample/cases" / CASE


def environment(server: ModelServer) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": f"{server.address}/v1", "OPENAI_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "sk-ant-test",
    }  # fmt: skip


def script() -> dict[str, Any]:
    """A judge that looks, tries and claims with the recorded witnesses; a refuter that upholds."""
    rubric = json.loads((TRUTH / "rubric.json").read_text())["rubrics"]
    recorded = json.loads((TRUTH / "witnesses.json").read_text())["witnesses"]
    looks = [tool("list_files"), tool("open_page"), tool("screenshot"), tool("page_log", what="console")]
    uphold = {"outcome": "uphold", "reason": "It stands."}
    scenarios: dict[str, Any] = {
        "refuter": {"turns": [
            [tool("verdict", refutations=[{"sub": "a", **uphold}])],
            [tool("verdict", refutations=[{"sub": sub, **uphold} for sub in ("a", "b")])],
        ]},
    }  # fmt: skip
    for index, entry in enumerate(rubric, 1):
        claims = [
            {"sub": one["sub"], "holds": True, "witness": one["witness"], "reason": "Seen.", "evidence": ["E2"]}
            for one in recorded
            if one["criterion_index"] == index
        ]
        scenarios[f"criterion {index}"] = {
            "match": entry["criterion"][:60], "turns": [looks, [tool("verdict", claims=claims)]],
            "usage": {"input": 400, "output": 100, "cache_read": 9000},
        }  # fmt: skip
    return {"scenarios": scenarios}


@dataclass
class Judged:
    folder: Path
    records: list[dict[str, Any]]
    requests: list[dict[str, Any]]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, run_cdb: RunCdb) -> Iterator[Judged]:
    folder = tmp_path_factory.mktemp("judged")
    extract(open_release(make_sample_release(folder / "release")), folder / "work")
    submissions = folder / "runs/secret-agent__secret-model__1/submissions"
    sources = REPOSITORY / "harness/sample/cases" / CASE
    made = prepare(sources / "project", folder / "gold", sources / "edits/gold.patch")
    project = folder / "work/evaluation-inputs/cases" / CASE / "project"
    shutil.copytree(project, submissions / CASE)
    shutil.copytree(made, submissions / CASE, dirs_exist_ok=True)
    (submissions / CASE / "CLAUDE.md").write_text("secret-agent was here")
    (submissions / "entry.json").write_text(json.dumps({"agent": "secret-agent", "model": "secret-model"}))
    with ModelServer(script(), record=folder / "seen") as server:
        inputs = ["--dataset", folder / "work/evaluation-inputs", "--submissions", submissions]
        ended = run_cdb(["prepare", *inputs, "--only", CASE, "--out", folder / "evaluation"])
        assert ended.returncode == 0, ended.stderr
        verb = [
            "judge", "--cases", folder / "evaluation/cases.json", "--out", folder / "results",
            "--model", "anthropic/judge", "--refuter-model", "openai/refuter", "--json",
        ]  # fmt: skip
        ended = run_cdb(verb, env=environment(server), deadline_s=280)
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["unscored"] == 0, "something else was written to standard output"
        requests = server.requests()
        for request in requests:
            request["body"] = (folder / f"seen/{request['n']:04d}.body").read_text()
        again = run_cdb(verb, env=environment(server), deadline_s=280)
        assert again.returncode == 0, again.stderr
        assert len(server.requests()) == len(requests), "a finished judging asked a model again"
    yield Judged(folder, list(of_type(read_journal(folder / "results/journal.jsonl").records, "criterion")), requests)


def end_to_end(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test that needs containers and a browser."""
    for mark in (pytest.mark.docker, pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)):
        test = mark(test)
    return test


@end_to_end
def test_a_model_judges_an_application_in_its_containers(judged: Judged) -> None:
    verdicts = {r["criterion_index"]: [r["columns"][c]["verdict"] for c in r["columns"]] for r in judged.records}
    assert verdicts == {index: ["PASS", "PASS", "PASS"] for index in (1, 2, 3, 4)}
    usage = judged.records[0]["usage"]
    assert (usage["judge"]["calls"], usage["judge"]["cached_tokens"], usage["refuter"]["calls"]) == (2, 18_000, 1)
    assert usage["judge"]["pictures"] >= 4
    evidence = judged.folder / "results/evidence" / CASE / "01/judge"
    assert (evidence / "E3.jpg").stat().st_size > 5_000
    lock = json.loads((judged.folder / "results/lock.json").read_text())
    assert (lock["judge"]["model"], lock["refuter"]["model"]) == ("anthropic/judge", "openai/refuter")
    assert lock["judge"]["prompts_sha256"] != lock["refuter"]["prompts_sha256"]


@end_to_end
def test_no_name_of_agent_model_or_run_is_in_anything_a_model_was_sent(judged: Judged) -> None:
    assert len(judged.requests) > 10
    for request in judged.requests:
        for name in ("secret-agent", "secret-model", "CLAUDE.md", str(judged.folder), "submissions/", "sha256:"):
            assert name not in request["body"], name


@end_to_end
def test_most_of_what_later_criteria_send_is_the_shared_prefix(judged: Judged) -> None:
    calls = [json.loads(r["body"]) for r in judged.requests if r["path"].startswith("/v1/messages")]
    firsts = [c for c in calls if len(c["messages"]) == 1 and "cache_control" in json.dumps(c["messages"])]
    assert len(firsts) == 4
    prefixes = {json.dumps([c["system"], c["tools"], c["messages"][0]["content"][:-1]]) for c in firsts}
    assert len(prefixes) == 1
    shared = tokens(json.loads(prefixes.pop()))
    later = [c for c in calls if c["messages"][0]["content"][-1] != firsts[0]["messages"][0]["content"][-1]]
    later = [c for c in later if "cache_control" in json.dumps(c["messages"])]
    share = sum(shared for _ in later) / sum(tokens([c["system"], c["tools"], c["messages"]]) for c in later)
    print(f"shared prefix: {share:.1%} of the input tokens of criteria 2 to 4, {shared} tokens each")
    assert share >= 0.8


def tokens(content: Any) -> int:
    """A count as providers do it: four characters of text a token; a picture by its area (1280 x 800: 1,365)."""
    if isinstance(content, dict):
        if content.get("type") in ("image", "image_url"):
            return 1_365
        return sum(tokens(value) + len(key) // 4 for key, value in content.items())
    if isinstance(content, list):
        return sum(tokens(one) for one in content)
    return len(str(content)) // 4 + 1


@end_to_end
def test_a_model_s_verdict_replays_without_a_key(judged: Judged, run_cdb: RunCdb) -> None:
    ended = run_cdb(["replay", judged.folder / "results", CASE, "3"])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the verdict holds" in ended.stdout


@pytest.fixture
def tiny(make_dataset: Callable[..., Path], tmp_path: Path, run_cdb: RunCdb) -> list[Any]:
    """`cdb judge` up to its model, on a case with one static page."""
    root = make_dataset({"one": {"index.html": "<p>a</p>"}})
    (root / "cases/one/rubric.json").write_text('["It says b."]')
    (tmp_path / "submissions/one").mkdir(parents=True)
    (tmp_path / "submissions/one/index.html").write_text("<p>b</p>")
    inputs = ["--dataset", root, "--submissions", tmp_path / "submissions", "--out", tmp_path / "evaluation"]
    ended = run_cdb(["prepare", *inputs])
    assert ended.returncode == 0, ended.stderr
    return ["judge", "--cases", tmp_path / "evaluation/cases.json", "--out", tmp_path / "results", "--model"]


def test_c137_a_misspelt_judge_costs_nothing_and_leaves_nothing_behind(
    tiny: list[Any], run_cdb: RunCdb, model_server: ModelServer, tmp_path: Path
) -> None:
    for name, said in [("op su", "PROVIDER/MODEL"), ("antropic/opus", "did you mean anthropic/opus")]:
        ended = run_cdb([*tiny, name], env=environment(model_server))
        assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr
    missing = [{"at": 0, "times": -1, "status": 404, "message": "no such model"}]
    model_server.play({"turns": [], "faults": missing})
    ended = run_cdb([*tiny, "openai/gpt-4.1-minni"], env=environment(model_server))
    assert ended.returncode == 2
    assert "nothing was judged" in ended.stderr
    assert "gpt-4.1-mini" in ended.stderr
    assert len(model_server.requests()) == 1
    assert not (tmp_path / "results/lock.json").exists()


@end_to_end
def test_c99_nothing_delivered_gets_nothing_from_a_judge_that_passes_everything(
    make_dataset: Callable[..., Path], run_cdb: RunCdb, tmp_path: Path
) -> None:
    page = "<title>Shop</title><h1>Shop</h1><p id=total>12</p>"
    root = make_dataset({name: {"index.html": page} for name in ("blank", "missing", "unchanged")})
    for name in ("blank", "missing", "unchanged"):
        (root / f"cases/{name}/rubric.json").write_text(json.dumps([f"The {name} shop says 13."]))
    for name, content in (("blank", "<!doctype html><title>Shop</title>"), ("unchanged", page)):
        (tmp_path / "submissions" / name).mkdir(parents=True)
        (tmp_path / "submissions" / name / "index.html").write_text(content)
    inputs = ["--dataset", root, "--submissions", tmp_path / "submissions", "--out", tmp_path / "evaluation"]
    assert run_cdb(["prepare", *inputs]).returncode == 0
    shown = {"schema": "cdb.witness/1", "steps": [{"expect": "url", "contains": "/"}]}
    claims = [{"sub": "a", "holds": True, "witness": shown, "reason": "PASS"}]
    uphold = [{"sub": "a", "outcome": "uphold", "reason": "fine"}]
    scenarios = {
        "judge": {"turns": [[tool("verdict", claims=claims)]]},
        "refuter": {"turns": [[tool("verdict", refutations=uphold)]]},
    }
    with ModelServer({"scenarios": scenarios}) as server:
        ended = run_cdb(
            ["judge", "--cases", tmp_path / "evaluation/cases.json", "--out", tmp_path / "results",
             "--model", "openai/judge", "--refuter-model", "openai/refuter"],
            env=environment(server), deadline_s=280,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        bodies = [json.loads(r["body"]) for r in server.requests() if r["method"] == "POST"]
    records = {r["case"]: r for r in of_type(read_journal(tmp_path / "results/journal.jsonl").records, "criterion")}
    rules = {case: (r["verdict"], r["columns"]["witnessed"]["rule"]) for case, r in records.items()}
    assert rules == {"blank": ("FAIL", "vacuous"), "missing": ("FAIL", "missing"), "unchanged": ("FAIL", "unchanged")}
    asked = [body for body in bodies if "says 13" in json.dumps(body)]
    assert [body["model"] for body in asked] == ["judge"], "a model was asked where there is nothing to judge"


def test_c139_a_dry_run_builds_calls_and_writes_nothing(
    tiny: list[Any], run_cdb: RunCdb, model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.play({"turns": []})
    ended = run_cdb([*tiny, "anthropic/claude-sonnet-4-5", "--dry-run"], env=environment(model_server))
    assert ended.returncode == 0, ended.stderr
    assert "1 criteria of 1 cases" in ended.stdout
    assert "USD" in ended.stdout
    assert model_server.requests() == []
    assert not (tmp_path / "results").exists()
