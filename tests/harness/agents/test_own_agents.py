"""Any command line as an agent, with and without a model: what it is given, and how its end is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_trials import KEY, MODEL, Play, Seen, played, script
from fakes.model_server import say

from harness.agents.agent import Agent
from harness.agents.catalogue import find_agent

pytestmark = pytest.mark.docker
ASK = """
import json, os, urllib.request
told = {"model": os.environ["ASKED"], "messages": [{"role": "user", "content": open("/home/agent/request.md").read()}]}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(told).encode(),
    {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"})
said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
open("said.txt", "w").write(said)
"""


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[..., Agent]:
    def make(argv: list[str], **settings: Any) -> Agent:
        told = {"kind": "command", "name": "mine", "argv": argv, **settings}
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump(told))
        return find_agent(str(tmp_path / "mine.yaml"), MODEL if "protocol" in settings else None)

    return make


def test_c144_a_script_of_ones_own_reaches_the_model_through_two_variables(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    agent = scripted(["python3", "-c", ASK], protocol="openai-chat", env={"ASKED": "{model}"})
    seen = trial(agent, {"turns": [[say("Hello from the model.")]]})
    assert seen.result.outcome == "ok", seen.result.reason
    assert (seen.tree / "said.txt").read_text() == "Hello from the model."
    assert seen.result.account["models_asked"] == {MODEL: 1}
    assert "blind" in seen.result.flags  # C50: the task shows pictures and none went over the wire


def test_c46_nothing_an_agent_can_see_works_elsewhere(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    look = (
        "env > env.txt; cat /proc/[0-9]*/environ > all.txt 2>/dev/null; cat /proc/mounts > mounts.txt; find / -xdev -name '*.sock' > socks.txt 2>/dev/null; "
        + 'python3 -c "$ASK"; tail -c +1 /gateway/* > files.txt 2>/dev/null; true'
    )
    agent = scripted(["bash", "-c", look], protocol="openai-chat", env={"ASK": ASK, "ASKED": MODEL})
    seen = trial(agent, {"turns": [[say("ok")]]})
    assert seen.result.outcome == "ok", seen.result.reason
    for path in seen.folder.parent.parent.parent.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert KEY.encode() not in path.read_bytes(), path
    token = dict(line.split("=", 1) for line in (seen.tree / "env.txt").read_text().splitlines() if "=" in line)
    assert token["OPENAI_API_KEY"].startswith("cdb-")
    headers = [dict(map(tuple, request["headers"])) for request in seen.requests]
    assert all(token["OPENAI_API_KEY"] not in json.dumps(one) for one in headers)


def test_c130_keys_are_taken_out_of_what_people_read_and_never_out_of_the_work(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    other = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 4
    say_it = f"echo 'export const key = \"{other}\"' > app.js; echo {other}; echo {KEY} >&2; mkdir -p ~/logs; echo {KEY} > ~/logs/own.txt; echo ASIAPACIFIC sk-learn-for-people"
    seen = trial(scripted(["bash", "-c", say_it], logs=["logs"]), {})
    assert seen.result.outcome == "ok"
    read = [seen.folder / name for name in ("stdout.log", "stderr.log", "agent/logs/own.txt")]
    assert not [path for path in read if other in path.read_text() or KEY in path.read_text()]
    assert "[redacted]" in read[0].read_text()
    assert "ASIAPACIFIC sk-learn-for-people" in read[0].read_text()
    assert other in (seen.tree / "app.js").read_text()


def test_c32_a_command_that_reads_its_input_first_gets_its_end_at_once(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    seen = trial(scripted(["bash", "-c", "cat > input.txt; echo done > done.txt"]), {})
    assert seen.result.outcome == "ok"
    assert seen.result.duration_s < 60
    assert (seen.tree / "input.txt").read_bytes() == b""


def test_c34_a_prompt_on_standard_input_arrives_byte_for_byte(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    request = "é" * 200_000
    seen = trial(scripted(["bash", "-c", "cat > input.txt"], stdin="prompt"), {}, request=request)
    assert seen.result.outcome == "ok"
    assert (seen.tree / "input.txt").read_bytes() == (seen.folder / "request.md").read_bytes()


def test_c33_an_agent_that_refuses_to_start_is_no_score(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    refusal = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
    agent = scripted(["bash", "-c", f"echo '{refusal}' >&2; exit 1"], protocol="openai-chat")
    seen = trial(agent, {})
    assert seen.result.outcome == "setup_error"
    assert refusal in seen.result.reason
    assert seen.manifest is None


def test_a_model_that_the_trial_does_not_allow_is_named(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    agent = scripted(["python3", "-c", ASK], protocol="openai-chat", env={"ASKED": "another-model"})
    seen = trial(agent, {})
    assert seen.result.outcome == "setup_error"
    assert "another-model" in seen.result.reason
    assert "other_model_asked" in seen.result.flags
    assert seen.requests == []


def test_work_done_without_one_call_to_the_model_is_judged_and_flagged(
    trial: Callable[..., Seen], scripted: Callable[..., Agent]
) -> None:
    seen = trial(scripted(["bash", "-c", "echo hello > hello.txt"], protocol="openai-chat"), {})
    assert seen.result.outcome == "ok"
    assert "no_model_call" in seen.result.flags


def _another_protocol(name: str) -> Play:
    return Play(find_agent(name, MODEL), {"turns": script("reference", "echo hello > hello.txt")})


@pytest.mark.parametrize("name", ["reference-anthropic", "reference-gemini"])
@played(_another_protocol)
def test_the_reference_agent_speaks_other_protocols_too(seen: Seen, name: str) -> None:
    assert seen.result.outcome == "ok", seen.result.reason
    assert seen.manifest and seen.manifest.changes == ["added: hello.txt"]
    assert seen.result.account["media"]["image"] >= 2
    assert {call.protocol for call in seen.calls} == {name.removeprefix("reference-")}
