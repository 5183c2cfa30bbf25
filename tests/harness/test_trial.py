"""Trials with scripted agents in real containers: whatever an agent does, its work is kept and named rightly."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.journal import read_journal
from bench.submission import SubmissionManifest, check_seal, read_manifest
from bench.task import open_dataset
from harness.agents.catalogue import find_agent
from harness.run import SolveSettings, SolveSummary, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.engine import engine
from sandboxes.images import image_tag
from sandboxes.owner import this_process
from sandboxes.reap import leftovers

pytestmark = pytest.mark.docker
APP = {"index.html": "<h1>Hi</h1>\n", "assets/song.mp3": "sound", ".gitignore": "assets/*.mp3\n*.log\n"}


@pytest.fixture
def solve_with(
    tmp_path: Path, make_dataset: Callable[..., Path]
) -> Callable[..., tuple[SolveSummary, dict[str, Any]]]:
    """Solves one-file tasks with a bash script as the agent; gives the summary and each case's manifest."""

    def run(
        script: str,
        cases: dict[str, dict[str, str]] | None = None,
        *,
        timeout_s: float = 60,
        name: str = "scripted",
        request: str = "Please change it.",
        keep_failed: bool = False,
    ) -> tuple[SolveSummary, dict[str, SubmissionManifest | None]]:
        agent = tmp_path / f"{name}.yaml"
        agent.write_text(yaml.safe_dump({"kind": "command", "name": name, "argv": ["bash", "-c", script]}))
        dataset = open_dataset(make_dataset(cases or {"one": APP}, request=request, root=f"data-{name}"))
        settings = SolveSettings(
            out=tmp_path / "runs", image=image_tag("solver"), timeout_s=timeout_s, keep_failed=keep_failed
        )
        summary = solve(dataset, find_agent(str(agent)), settings, DockerSandbox, lambda _line: None)
        manifests = {case: read_manifest(summary.submissions, case) for case in summary.outcomes}
        for manifest in manifests.values():
            if manifest:
                check_seal(summary.submissions, manifest)
        return summary, manifests

    return run


def test_an_edit_ends_up_in_the_sealed_submission_with_its_patch(solve_with: Callable[..., Any]) -> None:
    summary, manifests = solve_with("echo '<h1>Hello</h1>' > index.html")
    assert summary.outcomes == {"one": "ok"}
    assert (summary.submissions / "one/index.html").read_text() == "<h1>Hello</h1>\n"
    assert manifests["one"].changes == ["changed: index.html"]
    patch = (summary.entry / "trials/one/1/changes.patch").read_text()
    assert "-<h1>Hi</h1>" in patch
    assert "+<h1>Hello</h1>" in patch


def test_c13_the_request_reaches_the_agent_byte_for_byte(solve_with: Callable[..., Any]) -> None:
    request = '"; touch /tmp/pwn; $(id) `x` {{k}} {0} %s 中文 \n'
    summary, _ = solve_with("cat /home/agent/request.md > seen.md; ls /tmp > tmp.txt", request=request)
    seen = (summary.submissions / "one/seen.md").read_bytes()
    assert seen.startswith(request.encode())
    assert "pwn" not in (summary.submissions / "one/tmp.txt").read_text()


def test_c20_an_agent_that_ignores_its_end_is_stopped_and_its_work_kept(solve_with: Callable[..., Any]) -> None:
    script = "trap '' TERM; echo half > half.txt; (setsid bash -c 'while :; do date >> ticks; sleep 0.2; done' &); sleep 600"
    summary, manifests = solve_with(script, timeout_s=8)
    assert summary.outcomes == {"one": "agent_timeout"}
    assert "added: half.txt" in manifests["one"].changes


def test_c22_a_server_left_running_does_not_hold_the_trial(solve_with: Callable[..., Any]) -> None:
    summary, manifests = solve_with("(yes >&1 &) ; nohup sleep 600 & echo done > done.txt")
    assert summary.outcomes == {"one": "ok"}
    assert manifests["one"].duration_s < 60


def test_an_agent_that_fails_is_still_snapshotted(solve_with: Callable[..., Any]) -> None:
    summary, manifests = solve_with("echo half > half.txt; exit 7")
    assert summary.outcomes == {"one": "agent_error"}
    assert (manifests["one"].reason, manifests["one"].changed_files) == ("exit code 7", 1)


def test_c18_an_application_with_history_shows_one_baseline_commit(
    solve_with: Callable[..., Any], tmp_path: Path, make_dataset: Callable[..., Path]
) -> None:
    project = make_dataset({"one": APP}, root="data-history") / "cases/one/project"
    identity = ["-c", "user.name=x", "-c", "user.email=x@y"]
    for args in (
        ["init", "-q"],
        ["add", "-Af"],
        [*identity, "commit", "-qm", "start"],
        ["checkout", "-qb", "answer"],
    ):
        subprocess.run(["git", *args], cwd=project, check=True)
    (project / "index.html").write_text("the answer")
    subprocess.run(["git", *identity, "commit", "-qam", "answer"], cwd=project, check=True)
    subprocess.run(["git", "checkout", "-q", "-"], cwd=project, check=True)
    summary, manifests = solve_with(
        "git log --all --oneline > log.txt; git fsck --lost-found > lost.txt 2>/dev/null; git grep -c answer $(git rev-list --all) >> log.txt",
        name="history",
    )
    assert len((summary.submissions / "one/log.txt").read_text().splitlines()) == 1
    assert (summary.submissions / "one/lost.txt").read_text() == ""
    assert not any(".git" in change for change in manifests["one"].changes)


def test_c19_one_trial_leaves_nothing_for_the_next(solve_with: Callable[..., Any]) -> None:
    script = "ls -A /tmp /home/agent /var/tmp 2>/dev/null | grep -c mark > found.txt; touch /tmp/mark /home/agent/mark; touch ../mark"
    summary, _ = solve_with(script, {"one": APP, "two": APP, "three": APP})
    found = [(summary.submissions / case / "found.txt").read_text().strip() for case in ("one", "two", "three")]
    assert found == ["0", "0", "0"]


def test_a_finished_run_is_not_done_again_and_another_identity_is_refused(
    solve_with: Callable[..., Any], tmp_path: Path
) -> None:
    summary, _ = solve_with("true")
    before = read_journal(summary.entry / "journal.jsonl").records
    solve_with("true")
    trials = [r for r in read_journal(summary.entry / "journal.jsonl").records if r["type"] == "trial"]
    assert trials == [r for r in before if r["type"] == "trial"]
    with pytest.raises(Exception, match=r"agent\.argv: was .* now"):
        solve_with("false")


def test_the_manifest_is_plain_json_with_every_file(solve_with: Callable[..., Any]) -> None:
    summary, _ = solve_with("true")
    content = json.loads((summary.submissions / "one.manifest.json").read_text())
    assert {entry["path"] for entry in content["files"]} == set(APP)


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        ("echo kept > kept; head -c 1G /dev/zero > ~/big", "resource_limit", "disk: /home/agent is full"),
        ("echo kept > kept; fallocate -l 50G big", "resource_limit", "disk: it ended with the words"),
        ("echo kept > kept; python3 -c 'x = bytearray(10 << 30)'", "resource_limit", "memory: 1 processes killed"),
    ],
)
def test_c23_a_limit_the_agent_ran_into_is_the_outcome(
    solve_with: Callable[..., Any], script: str, outcome: str, reason: str
) -> None:
    summary, manifests = solve_with(script)
    assert summary.outcomes == {"one": outcome}
    assert manifests["one"].reason.startswith(reason)
    assert "added: kept" in manifests["one"].changes


@pytest.mark.parametrize("script", ["kill -9 -1", "head -c 1G /dev/zero > /tmp/big; true", "rm -rf /bin /usr/bin"])
def test_c24_an_agent_that_attacks_its_own_sandbox_never_ends_ok_and_its_work_is_kept(
    solve_with: Callable[..., Any], script: str
) -> None:
    summary, manifests = solve_with(f"echo kept > kept; {script}")
    broken = "agent_error" if script.startswith("rm") else "sandbox_broken"  # the root is read-only: nothing breaks
    assert summary.outcomes == {"one": broken}
    assert manifests["one"].changes == ["added: kept"]
    assert manifests["one"].duration_s < 30


def test_c16_names_the_agent_asked_for_are_in_the_journal(solve_with: Callable[..., Any]) -> None:
    script = (
        "until grep -q 0100007F:0035 /proc/net/udp; do sleep 0.1; done; "
        "curl -sm 5 https://huggingface.co/datasets; git clone -q https://github.com/a/b 2>/dev/null; true"
    )
    summary, _ = solve_with(script)
    trial = next(r for r in read_journal(summary.entry / "journal.jsonl").records if r["type"] == "trial")
    assert trial["names_asked"] == ["huggingface.co", "github.com"]
    assert (summary.entry / trial["logs"] / "names-asked.txt").read_text() == "huggingface.co\ngithub.com\n"


def test_the_container_of_a_failed_trial_is_kept_on_request_only(
    solve_with: Callable[..., Any],
) -> None:
    def kept() -> list[str]:
        return [found.name for found in leftovers() if found.is_kept and found.name.startswith("cdb-kept-keep-")]

    solve_with("exit 3", {"keep-no": APP}, name="drops")
    solve_with("true", {"keep-ok": APP}, name="fine", keep_failed=True)
    assert kept() == []
    solve_with("exit 3", {"keep-it": APP}, name="keeps", keep_failed=True)
    assert [name.rsplit("-", 1)[0] for name in kept()] == ["cdb-kept-keep-it"]
    for name in kept():
        engine().api.remove_container(name, force=True, v=True)


def test_c21_a_silent_agent_is_stopped_at_its_limit_and_nothing_of_it_remains(solve_with: Callable[..., Any]) -> None:
    summary, manifests = solve_with("exec sleep 600", {"silent": APP}, timeout_s=3)
    assert summary.outcomes == {"silent": "agent_timeout"}
    assert 3 <= manifests["silent"].duration_s < 60  # it would be 600
    assert [found for found in leftovers() if found.owner == this_process()] == []


def test_c27_trials_however_they_end_leave_no_container_volume_network_or_image(
    solve_with: Callable[..., Any], tmp_path: Path
) -> None:
    def dangling() -> int:
        return len(engine().images.list(filters={"dangling": True}))

    before = dangling()
    script = 'case "$(cat case)" in ok) exit 0;; crash) exit 9;; esac; sleep 60'
    cases = {name: {**APP, "case": name} for name in ("ok", "crash", "slow")}
    summary, _ = solve_with(script, cases, timeout_s=15, name="mixed")
    assert summary.outcomes == {"ok": "ok", "crash": "agent_error", "slow": "agent_timeout"}
    mine = [found for found in leftovers() if found.owner == this_process()]
    assert mine == []
    assert dangling() <= before
