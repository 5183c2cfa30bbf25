"""From inside a real container: the model is reached through the trial's socket, and nothing of the key is there."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.model_server import ModelServer
from gateway_calls import KEY, Agent

from sandboxes.engine import engine
from sandboxes.sandbox import Exec

pytestmark = pytest.mark.docker

ASK = """
import json, os, sys, time, urllib.error, urllib.request

def ask(stream):
    body = json.dumps({"model": "m", "max_tokens": 9, "stream": stream, "messages": []}).encode()
    headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true", body, headers)
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return f"status {error.code}"
        except (urllib.error.URLError, OSError) as error:
            reason = str(error)
            time.sleep(0.1)
    return f"not reached: {reason}"

print(json.dumps([ask(stream) for stream in json.loads(sys.argv[1])]))
"""
LOOK = """
import json, os, pathlib
found = [dict(os.environ)]
for place in ("/proc", "/gateway", "/home/agent", "/tmp", "/workspace"):
    for root, folders, names in os.walk(place):
        folders[:] = [f for f in folders if root != "/proc" or f.isdigit()]
        for name in names:
            if place != "/proc" or name in ("environ", "cmdline", "mountinfo"):
                try:
                    found.append(pathlib.Path(root, name).read_bytes()[:100_000].decode("latin-1"))
                except OSError:
                    pass
print(json.dumps(found))
"""


def test_c46_a_contained_agent_asks_its_model_and_finds_no_key(
    play: Callable[..., ModelServer],
    open_trial: Callable[..., Agent],
    make_box: Callable[..., object],
    run: Callable[..., tuple[Exec, str, str]],
    tmp_path: Path,
) -> None:
    server = play(usage={"input": 10, "output": 5})
    agent = open_trial()
    trial = agent.trial
    box = make_box(mounts=(trial.mount,), env=trial.env("anthropic"))
    box.spawn(trial.forward_argv, cwd="/", log="/tmp/gateway.log")
    ended, out, err = run(box, "python3", "-c", ASK, "[false, true]")
    assert ended.ok, err
    whole, streamed = json.loads(out)
    assert json.loads(whole)["usage"]["output_tokens"] == 5
    assert streamed.endswith('{"type": "message_stop"}\n\n')
    assert [call.stream for call in agent.calls()] == [False, True]
    assert {dict(request["headers"])["x-api-key"] for request in server.requests()} == {KEY}

    ended, seen, err = run(box, "python3", "-c", LOOK)
    assert ended.ok, err
    inspected = json.dumps(engine().api.inspect_container(box.id))
    for form in (KEY, base64.b64encode(KEY.encode()).decode(), server.address):
        assert form not in seen and form not in inspected
    assert trial.token in seen

    trial.close()
    began = time.monotonic()
    ended, out, err = run(box, "python3", "-c", ASK.replace("range(100)", "range(2)"), "[true]")
    assert "not reached" in out and time.monotonic() - began < 10
    assert len(server.requests()) == 2
