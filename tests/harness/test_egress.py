"""`--egress frozen` and `open` from inside real containers: what tools of every kind get, and what the records say."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_cdn import Cdn, running
from fakes.model_server import ModelServer, run, say

from bench.cache import cache_folder
from bench.errors import UsageError
from bench.frozen_store import FrozenEntry, FrozenIndex, keep_blob, open_store, write_index
from bench.journal import read_journal
from bench.submission import read_manifest
from bench.task import open_dataset
from bench.tree import file_sha256
from harness.agents.catalogue import find_agent
from harness.models import Conditions, open_egress
from harness.run import SolveSettings, SolveSummary, solve
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.egress.certificates import AUTHORITY, CERTIFICATE, KEY, make_certificates
from sandboxes.egress.client import Egress, TrialEgress
from sandboxes.engine import engine
from sandboxes.images import image_tag
from sandboxes.owner import this_process
from sandboxes.packs.recipe import RECIPES
from sandboxes.packs.store import find_pack

pytestmark = pytest.mark.docker
REPOSITORY = Path(__file__).parent.parent.parent
USERS_PACKS = cache_folder("agents")
Cdb = Callable[..., "subprocess.CompletedProcess[str]"]
SCRIPT = "export const answer = 42\n"


@pytest.fixture
def packs(own_cache: None) -> None:
    shown = Path(os.environ["CDB_CACHE"]) / "agents"
    if not shown.exists():
        shown.symlink_to(USERS_PACKS, target_is_directory=True)


def entry(folder: Path, url: str, body: str, kind: str = "text/javascript", final: str = "") -> FrozenEntry:
    content = body.encode()
    headers = {"content-type": kind, "access-control-allow-origin": "<origin>"}
    return FrozenEntry(
        url=url, final_url=final or url, status=200, headers=headers, sha256=keep_blob(folder, content),
        bytes=len(content), type=kind,
    )  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    entries = [
        entry(folder, "http://plain.example/a.txt", "plain text", "text/plain"),
        entry(folder, "https://cdn.example/lib.js", SCRIPT),
        entry(folder, "https://cdn.example/lib", "moved here", final="https://other.example/v2/lib.js"),
        entry(folder, "https://cdn.example:8443/p.html", "<p>shown</p>", "text/html"),
        entry(folder, "https://cdn.example/page.html", "<p id=a>shown</p>", "text/html"),
    ]
    write_index(folder, FrozenIndex(schema="cdb.frozen/1", entries=entries))
    return folder


@pytest.fixture
def solve_under(
    tmp_path: Path, make_dataset: Callable[..., Path]
) -> Callable[..., tuple[SolveSummary, dict[str, Any]]]:
    """Solves with a bash script under conditions; the summary, and each case's trial record."""

    def solved(
        script: str,
        conditions: Conditions,
        cases: tuple[str, ...] = ("one",),
        *,
        names: dict[str, str] | None = None,
        timeout_s: float = 120,
    ) -> tuple[SolveSummary, dict[str, Any]]:
        agent = tmp_path / "scripted.yaml"
        agent.write_text(yaml.safe_dump({"kind": "command", "name": "scripted", "argv": ["bash", "-c", script]}))
        dataset = open_dataset(make_dataset({case: {"index.html": f"<h1>{case}</h1>"} for case in cases}))
        conditions.check()
        image = image_tag("solver")
        policy = conditions.policy
        if names and policy:
            made: Any = Egress(policy.model_copy(update={"names": names}), image=image, run="test-egress")
        else:
            made = open_egress(conditions, image=image, run="test-egress")
        with made as egress:
            settings = SolveSettings(
                out=tmp_path / "runs", image=image, timeout_s=timeout_s, conditions=conditions, egress=egress
            )
            summary = solve(dataset, find_agent(str(agent)), settings, DockerSandbox, lambda _line: None)
        records = read_journal(summary.entry / "journal.jsonl").records
        return summary, {record["case"]: record for record in records if record["type"] == "trial"}

    return solved


def logged(summary: SolveSummary, case: str = "one") -> list[dict[str, Any]]:
    lines = (summary.entry / f"trials/{case}/1/egress.jsonl").read_text().splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda line: line["at"])


FROZEN_SCRIPT = r"""
curl -sS http://plain.example/a.txt > curl-http.txt
curl -sS https://cdn.example/lib.js > curl-https.js
curl -sSL https://cdn.example/lib > curl-moved.js
curl -sS -r 0-5 -o part.txt -w '%{http_code}' https://cdn.example/lib.js > part.status
node -e 'fetch("https://cdn.example/lib.js").then(r => r.text()).then(t => process.stdout.write(t))' > node.js 2> node.err
python3 -c 'import urllib.request as u; print(u.urlopen("https://cdn.example/lib.js").read().decode(), end="")' > py.txt
git ls-remote https://cdn.example/x.git > git.out 2>&1; echo $? > git.status
curl -sS -o /dev/null -w '%{http_code}' -X POST -d x=1 https://cdn.example/lib.js > post.status
curl -sS -o /dev/null -w '%{http_code}' https://cdn.example/other.js > unknown.status
curl -sS -o /dev/null -w '%{http_connect}' https://huggingface.co/datasets/x > dataset.status 2> /dev/null
curl -sS -o /dev/null -w '%{http_connect}' https://nowhere.example/ > nowhere.status 2> /dev/null
curl -sS -o /dev/null -w '%{http_code}' http://169.254.169.254/latest > metadata.status
curl -sS --noproxy '*' -m 5 http://1.1.1.1/ > direct.txt 2>&1; echo $? > direct.status
python3 -m http.server 3000 --bind 127.0.0.1 > /dev/null 2>&1 & sleep 1
curl -sS http://127.0.0.1:3000/index.html > own.html; kill %1
"""


def test_c16_recorded_resources_reach_every_tool_and_nothing_else_does(
    solve_under: Callable[..., Any], store: Path
) -> None:
    summary, trials = solve_under(FROZEN_SCRIPT, Conditions("frozen", frozen=store))
    assert summary.outcomes == {"one": "ok"}
    made = summary.submissions / "one"
    read = {path.name: path.read_text().strip() for path in made.iterdir()}
    assert read["curl-http.txt"] == "plain text"
    assert read["curl-https.js"] == read["node.js"] == read["py.txt"] == SCRIPT.strip(), read["node.err"]
    assert read["curl-moved.js"] == "moved here"
    assert (read["part.txt"], read["part.status"]) == ("export", "206")
    assert [read[f"{name}.status"] for name in ("post", "unknown", "dataset", "nowhere", "metadata")] == ["403"] * 5
    assert read["git.status"] != "0" and "403" in read["git.out"]
    assert read["direct.status"] == "7"
    assert read["own.html"] == "<h1>one</h1>"
    lines = logged(summary)
    outcomes = [(line["outcome"], line["method"], line["host"]) for line in lines]
    assert outcomes.count(("answered", "GET", "cdn.example")) == 5
    assert ("refused", "POST", "cdn.example") in outcomes
    assert ("blocked", "CONNECT", "huggingface.co") in outcomes
    assert ("refused", "CONNECT", "nowhere.example") in outcomes
    assert not [line for line in lines if line["host"] == "127.0.0.1"]
    assert trials["one"]["flags"] == ["asked_for_the_dataset"]
    assert read_manifest(summary.submissions, "one").flags == ["asked_for_the_dataset"]
    egress = trials["one"]["egress"]
    assert egress["hosts"][0] | {"sent_bytes": 0, "received_bytes": 0} == {
        "host": "huggingface.co", "answered": 0, "refused": 0, "blocked": 1, "failed": 0,
        "sent_bytes": 0, "received_bytes": 0,
    }  # fmt: skip
    assert (egress["answered"], egress["blocked"], egress["mode"]) == (7, 1, "frozen")
    lock = json.loads((summary.entry / "lock.json").read_text())["conditions"]
    assert (lock["egress"], lock["frozen"]) == ("frozen", open_store(store).digest)
    assert "huggingface.co" in lock["blocked"]


def test_chromium_in_the_container_trusts_what_is_recorded(solve_under: Callable[..., Any], store: Path) -> None:
    script = (
        "chromium --headless --no-sandbox --disable-gpu --dump-dom https://cdn.example/page.html > dom.html 2> err"
    )
    summary, _ = solve_under(script, Conditions("frozen", frozen=store))
    assert '<p id="a">shown</p>' in (summary.submissions / "one/dom.html").read_text()


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    with running(Cdn()) as served:
        served.add("/hello.txt", "text/plain", "hello")
        yield served


def test_c16_the_open_network_is_logged_and_what_is_near_or_the_datasets_is_not_reached(
    solve_under: Callable[..., Any], cdn: Cdn
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as service:
        service.settimeout(0.2)
        near = service.getsockname()[1]
        script = (
            f"curl -sS http://world.test:{cdn.port}/hello.txt > got.txt\n"
            "for url in http://169.254.169.254/latest https://github.com/x https://blocked.test/ "
            f"http://127.0.0.1:{near}/ http://host.docker.internal:{near}/ http://172.17.0.1:{near}/; do\n"
            "curl -sS --noproxy '' -m 20 -o /dev/null -w '%{http_code} %{http_connect}\\n' $url >> status.txt 2>&1\ndone\n"
            f"curl -sS --noproxy '*' -m 5 http://172.17.0.1:{near}/ > direct.txt 2>&1 || echo $? > direct.status"
        )
        conditions = Conditions("open", blocked=("Blocked.test",), allowed=(("127.0.0.1", cdn.port),))
        summary, trials = solve_under(script, conditions, names={"world.test": "127.0.0.1"})
        with pytest.raises(TimeoutError):
            service.accept()
    made = summary.submissions / "one"
    assert (made / "got.txt").read_text() == "hello"
    assert (made / "direct.status").read_text() == "7\n"
    lines = logged(summary)
    assert [(line["host"], line["outcome"]) for line in lines] == [
        ("world.test", "answered"),
        ("169.254.169.254", "refused"),
        ("github.com", "blocked"),
        ("blocked.test", "blocked"),
        ("127.0.0.1", "refused"),
        ("host.docker.internal", "failed"),
        ("172.17.0.1", "refused"),
    ]
    assert trials["one"]["flags"] == ["asked_for_the_dataset"]
    assert [host["host"] for host in trials["one"]["egress"]["hosts"][:2]] == ["github.com", "blocked.test"]
    lock = json.loads((summary.entry / "lock.json").read_text())["conditions"]
    assert lock["egress"] == "open" and lock["allowed"] == [f"127.0.0.1:{cdn.port}"]
    assert {"blocked.test", "github.com"} <= set(lock["blocked"])


def test_a_tunnel_of_the_open_network_is_carried_unopened(solve_under: Callable[..., Any], tmp_path: Path) -> None:
    """The container's curl verifies the far side's own certificate through the tunnel."""
    make_certificates(["world.test"], tmp_path, image=image_tag("solver"), run="test-egress")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / CERTIFICATE, tmp_path / KEY)
    authority = (tmp_path / "trust" / AUTHORITY).read_text()
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.RequestHandlerClass = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
        (tmp_path / "big.bin").write_bytes(b"0123456789" * 300_000)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        at = f"https://world.test:{server.server_port}"
        script = (
            f"cat > /tmp/ca.pem <<'E'\n{authority}\nE\ncurl -sS --cacert /tmp/ca.pem {at}/big.bin | sha256sum > sum.txt\n"
            f"curl -sS {at}/big.bin > distrusted.txt 2>&1; echo $? > distrusted.status"
        )
        conditions = Conditions("open", allowed=(("127.0.0.1", server.server_port),))
        try:
            summary, _ = solve_under(script, conditions, names={"world.test": "127.0.0.1"})
        finally:
            server.shutdown()
            thread.join()
    made = summary.submissions / "one"
    assert (made / "sum.txt").read_text().split()[0] == file_sha256(tmp_path / "big.bin")
    assert (made / "distrusted.status").read_text() == "60\n"
    first = logged(summary)[0]
    assert (first["host"], first["outcome"], first["url"]) == ("world.test", "answered", "")
    assert first["received_bytes"] > 3_000_000 and first["sent_bytes"] > 200


def test_trials_at_the_same_time_have_logs_of_their_own(solve_under: Callable[..., Any], store: Path) -> None:
    script = "curl -sS http://$(tr -dc a-z < index.html | sed 's/^h//;s/h$//').example/ > /dev/null; sleep 1"
    summary, trials = solve_under(script, Conditions("frozen", frozen=store), ("ant", "bee"))
    for case in ("ant", "bee"):
        assert [line["host"] for line in logged(summary, case)] == [f"{case}.example"]
        assert [host["host"] for host in trials[case]["egress"]["hosts"]] == [f"{case}.example"]


def test_a_flood_and_hanging_callers_do_not_hold_a_trial(solve_under: Callable[..., Any], store: Path) -> None:
    """300 connections that never finish their request, then a flood; the agent leaves all of it running."""
    flood = (
        "import socket, threading, time\n"
        "def call(n):\n"
        "    try:\n"
        "        c = socket.create_connection(('127.0.0.1', 8081)); c.sendall(b'GET http://slow'); held.append(c)\n"
        "    except OSError: pass\n"
        "held = []\n"
        "for n in range(300): call(n)\n"
        "end = time.time() + 600\n"
        "while time.time() < end:\n"
        "    try: c = socket.create_connection(('127.0.0.1', 8081)); c.sendall(b'GET http://h/ HTTP/1.1\\r\\n\\r\\n'); c.close()\n"
        "    except OSError: time.sleep(0.01)\n"
    )
    script = (
        f"cat > /tmp/flood.py <<'E'\n{flood}\nE\n(setsid python3 /tmp/flood.py &) ; sleep 5; echo done > done.txt"
    )
    summary, trials = solve_under(script, Conditions("frozen", frozen=store), timeout_s=60)
    assert summary.outcomes == {"one": "ok"}
    assert (summary.submissions / "one/done.txt").is_file()
    assert trials["one"]["duration_s"] < 40
    assert trials["one"]["egress"]["connections_dropped"] > 100
    assert len(logged(summary)) <= 20_000


def test_a_proxy_that_dies_is_the_machines_fault(
    solve_under: Callable[..., Any], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = TrialEgress.__init__

    def start_and_kill(self: TrialEgress, *args: Any) -> None:
        started(self, *args)
        self._process.kill()
        self._process.wait()

    monkeypatch.setattr(TrialEgress, "__init__", start_and_kill)
    summary, trials = solve_under("true", Conditions("frozen", frozen=store))
    assert summary.outcomes == {"one": "infra_error"}
    assert "proxy ended before its time" in trials["one"]["reason"]
    assert not list(summary.submissions.glob("one*"))


def test_nothing_is_left_behind_and_nothing_more_is_mounted_without_egress(
    solve_under: Callable[..., Any],
) -> None:
    script = "env | grep -ic '_proxy=' > proxies.txt; ls -d /egress* > mounts.txt 2>&1; true"
    summary, trials = solve_under(script, Conditions())
    assert (summary.submissions / "one/proxies.txt").read_text() == "0\n"
    assert "No such file" in (summary.submissions / "one/mounts.txt").read_text()
    assert "egress" not in trials["one"]
    assert not (summary.entry / "trials/one/1/egress.jsonl").exists()
    assert not engine().containers.list(
        ignore_removed=True, all=True, filters={"label": f"cdb.owner={this_process()}"}
    )


def test_the_command_line_takes_a_store_and_records_it(
    run_cdb: Cdb, tmp_path: Path, make_dataset: Callable[..., Path], store: Path
) -> None:
    agent = tmp_path / "a.yaml"
    argv = ["bash", "-c", "curl -sS https://cdn.example/lib.js > lib.js"]
    agent.write_text(yaml.safe_dump({"kind": "command", "name": "curl", "argv": argv}))
    data = make_dataset({"one": {"index.html": "<h1>Hi</h1>"}})
    args = ["solve", "--dataset", data, "--agent", agent, "--out", tmp_path / "run", "--json", "--egress", "frozen"]
    done = run_cdb([*args, "--frozen", store, "--block", "evil.example"])
    assert done.returncode == 0, done.stderr
    made = Path(json.loads(done.stdout)["submissions"])
    assert (made / "one/lib.js").read_text() == SCRIPT
    other = run_cdb([*args, "--frozen", store])
    assert other.returncode == 2 and "evil.example" in other.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--egress", "frozen"], "--frozen STORE"),
        (["--frozen", "{store}"], "means nothing without it"),
        (["--egress", "frozen", "--frozen", "{store}/blobs"], "no store of frozen resources"),
        (["--block", "a.example"], "means nothing under --egress none"),
        (["--egress", "open", "--block", "https://a.example/x"], "no host name"),
        (["--egress", "frozen", "--frozen", "{store}", "--allow-private", "10.0.0.1:80"], "without --egress open"),
        (["--egress", "open", "--allow-private", "10.0.0.1"], "no ADDRESS:PORT"),
    ],
)
def test_conditions_that_do_not_go_together_are_refused_before_anything_starts(
    run_cdb: Cdb, tmp_path: Path, make_dataset: Callable[..., Path], store: Path, more: list[str], said: str
) -> None:
    data = make_dataset({"one": {"index.html": "<h1>Hi</h1>"}})
    args = ["solve", "--dataset", data, "--agent", "noop", "--out", tmp_path / "run"]
    done = run_cdb([*args, *(text.format(store=store) for text in more)])
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    write_index(folder, FrozenIndex(schema="cdb.frozen/1", entries=[entry(folder, "https://a.example/x", "text")]))
    next(path for path in folder.glob("blobs/*/*")).write_text("other")
    with pytest.raises(Exception, match="missing or damaged"):
        Conditions("frozen", frozen=folder).check()
    with pytest.raises(UsageError, match="choose one of none, frozen, open"):
        Conditions("opne").check()


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "mini-swe-agent"])
def test_an_agents_model_calls_do_not_go_through_its_proxy(
    run_cdb: Cdb, tmp_path: Path, packs: None, store: Path, name: str
) -> None:
    """Real command lines: the gateway is reached past the proxy, the agent's own tools through it."""
    assert find_pack(RECIPES[name]), f"{name} is not installed: cdb agents install {name}"
    protocol = find_agent(name, "model-1").protocol
    end = run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT") if name == "mini-swe-agent" else say("Done.")
    scenario = {"turns": [[run("curl -sS https://cdn.example/lib.js > lib.js")], [end]]}
    with ModelServer(scenario, key="the-real-key") as server:
        upstream = {"base_url": server.address, "protocols": [protocol], "key_env": "FAKE_KEY"}
        (tmp_path / "gateway.yaml").write_text(yaml.safe_dump({"upstreams": {"fake": upstream}}))
        args = ["solve", "--dataset", REPOSITORY / "harness/sample", "--agent", name, "--model", "model-1", "--json"]
        args += ["--gateway", tmp_path / "gateway.yaml", "--upstream", "fake", "--out", tmp_path / "run"]
        args += ["--only", "task-board", "--egress", "frozen", "--frozen", store]
        done = run_cdb(args, env={"FAKE_KEY": "the-real-key"})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outcomes"] == {"task-board": "ok"}
    assert (Path(told["submissions"]) / "task-board/lib.js").read_text() == SCRIPT
    lines = (Path(told["entry"]) / "trials/task-board/1/egress.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    assert ("cdn.example", "answered") in {(line["host"], line["outcome"]) for line in asked}
    assert not [line for line in asked if line["host"] in ("127.0.0.1", "localhost")]
