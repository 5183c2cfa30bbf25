"""The proxy process over its socket: what goes through, what does not, and what is written of it. No container."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_cdn import Cdn, running

from bench.errors import UsageError
from sandboxes.egress.client import Egress, TrialEgress
from sandboxes.egress.policy import DATASET_HOSTS, EgressPolicy, host_name, is_blocked
from sandboxes.egress.records import EgressSums

Start = Callable[..., TrialEgress]


@pytest.fixture
def cdn() -> Iterator[Cdn]:
    with running(Cdn("cdn.test")) as served:
        served.add("/hello.txt", "text/plain", "hello")
        yield served


@pytest.fixture
def start(tmp_path: Path, cdn: Cdn) -> Iterator[Start]:
    """Starts a proxy of mode `open` to which `cdn.test` is the fake CDN, allowed by its port alone."""
    with ExitStack() as stack:

        def run(folder: str = "trial", **changes: Any) -> TrialEgress:
            names = {"cdn.test": "127.0.0.1", "mirror.cdn.test": "127.0.0.1", "inside.test": "10.0.0.7"}
            told = {"mode": "open", "allowed": (("127.0.0.1", cdn.port),), "names": names, **changes}
            place = tmp_path / folder
            place.mkdir()
            egress = stack.enter_context(Egress(EgressPolicy.model_validate(told), image="none", run="test"))
            return stack.enter_context(egress.open(place))

        yield run


def say(trial: TrialEgress, raw: bytes, deadline_s: float = 10.0) -> bytes:
    """Everything that comes back until the proxy ends the connection."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(deadline_s)
        line.connect(str(trial.socket))
        line.sendall(raw)
        got = b""
        while piece := line.recv(65536):
            got += piece
        return got


def get(trial: TrialEgress, url: str, more: str = "") -> bytes:
    return say(trial, f"GET {url} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())


def ended(trial: TrialEgress) -> tuple[EgressSums, list[dict[str, Any]]]:
    """Sums and lines; lines are written as asks end, and sorted here as they began."""
    trial.close()
    lines = (trial.folder / "egress.jsonl").read_text().splitlines()
    return trial.sums(), sorted((json.loads(line) for line in lines), key=lambda line: line["at"])


def test_an_allowed_host_is_reached_and_logged(start: Start, cdn: Cdn) -> None:
    trial = start()
    answer = get(trial, f"{cdn.address}/hello.txt", "Proxy-Authorization: x\r\nX-Mine: 1\r\n")
    assert answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"\r\n\r\nhello")
    assert cdn.headers[0]["host"] == f"cdn.test:{cdn.port}" and cdn.headers[0]["x-mine"] == "1"
    assert "proxy-authorization" not in cdn.headers[0]
    sums, lines = ended(trial)
    assert (sums.answered, sums.refused, sums.blocked, sums.failed) == (1, 0, 0, 0)
    assert [(line["host"], line["outcome"], line["status"]) for line in lines] == [("cdn.test", "answered", 200)]
    assert lines[0]["url"] == f"{cdn.address}/hello.txt"
    assert lines[0]["received_bytes"] == sums.hosts[0].received_bytes == len(answer)


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("127.0.0.1:22", "private, local or reserved"),
        ("localhost:2375", "private, local or reserved"),
        ("inside.test:443", "private, local or reserved"),
        ("169.254.169.254:80", "private, local or reserved"),
        ("168.63.129.16:80", "metadata"),
        ("[::1]:443", "private, local or reserved"),
        ("[::ffff:169.254.169.254]:80", "private, local or reserved"),
        ("0x7f.1:80", "private, local or reserved"),
        ("2130706433:80", "private, local or reserved"),
        ("1.1.1.1:443", "ask by name"),
        ("nobody.invalid:443", "not resolved"),
    ],
)
def test_what_is_near_is_never_reached(start: Start, cdn: Cdn, host: str, why: str) -> None:
    trial = start()
    tunnel = say(trial, f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
    plain = get(trial, f"http://{host}/latest/meta-data")
    expected = (b"502", "failed") if why == "not resolved" else (b"403", "refused")
    assert tunnel.split()[1] == plain.split()[1] == expected[0]
    _, lines = ended(trial)
    assert [line["outcome"] for line in lines] == [expected[1]] * 2
    assert all(why in line["reason"] for line in lines)
    assert not cdn.asked


def test_the_allowance_is_for_one_port_only(start: Start) -> None:
    trial = start()
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert b"403" in get(trial, f"http://cdn.test:{other.getsockname()[1]}/")
    assert ended(trial)[0].refused == 1


def test_c16_the_datasets_hosts_are_blocked_with_all_below_them(start: Start, cdn: Cdn) -> None:
    trial = start(blocked=(*DATASET_HOSTS, "mirror.cdn.test"))
    for host in ("huggingface.co", "cdn-lfs.HuggingFace.co.", "raw.githubusercontent.com", "mirror.cdn.test"):
        assert b"x-cdb-egress: blocked" in say(trial, f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())
    assert b"403" in get(trial, f"http://mirror.cdn.test:{cdn.port}/hello.txt")
    assert b"200" in get(trial, f"{cdn.address}/hello.txt")
    sums, lines = ended(trial)
    assert (sums.blocked, sums.answered) == (5, 1)
    assert {line["host"] for line in lines if line["outcome"] == "blocked"} == {
        "huggingface.co", "cdn-lfs.huggingface.co", "raw.githubusercontent.com", "mirror.cdn.test",
    }  # fmt: skip
    assert len(cdn.asked) == 1


def greet(trial: TrialEgress, target: str, name: str) -> bytes:
    """Open a tunnel to `target` and send a real TLS greeting for `name`; what came back in the tunnel."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return say(trial, f"CONNECT {target} HTTP/1.1\r\n\r\n".encode() + out.read())


def test_c16_a_tunnel_to_one_host_cannot_greet_another(start: Start, cdn: Cdn) -> None:
    trial = start()
    allowed = f"cdn.test:{cdn.port}"
    established = b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert greet(trial, allowed, "github.com") == established
    assert greet(trial, allowed, "other.test") == established
    assert say(trial, f"CONNECT {allowed} HTTP/1.1\r\n\r\nGET /hello.txt HTTP/1.1\r\n\r\n".encode()) == established
    assert len(greet(trial, allowed, "cdn.test")) > len(established)  # the web server's answer to a greeting
    sums, lines = ended(trial)
    assert [line["outcome"] for line in lines] == ["blocked", "refused", "refused", "answered"]
    assert sums.blocked == 1 and "github.com" in lines[0]["reason"]
    assert not cdn.asked


def test_a_second_request_on_one_connection_is_not_passed_on(start: Start, cdn: Cdn) -> None:
    trial = start()
    second = b"GET /second HTTP/1.1\r\nHost: github.com\r\n\r\n"
    first = f"GET {cdn.address}/hello.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode()
    assert say(trial, first + second).count(b"HTTP/1.1") == 1
    assert cdn.asked == ["/hello.txt"]


def test_a_body_goes_through_in_both_forms(start: Start, cdn: Cdn) -> None:
    """The far side is a socket, so that what arrived can be read byte by byte."""
    got: list[bytes] = []

    def serve(far: socket.socket) -> None:
        for _ in range(2):
            line, _ = far.accept()
            with line:
                whole = b""
                while not whole.endswith(b"END\r\n0\r\n\r\n") and not whole.endswith(b"lengthEND"):
                    whole += line.recv(65536)
                got.append(whole)
                line.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as far:
        port = far.getsockname()[1]
        trial = start(allowed=(("127.0.0.1", port),))
        thread = threading.Thread(target=serve, args=(far,))
        thread.start()
        head = f"POST http://cdn.test:{port}/up HTTP/1.1\r\nHost: x\r\n"
        assert b"201" in say(trial, f"{head}Content-Length: 9\r\n\r\nlengthEND".encode())
        assert b"201" in say(trial, f"{head}Transfer-Encoding: chunked\r\n\r\n8\r\nchunkEND\r\n0\r\n\r\n".encode())
        thread.join()
    assert got[0].endswith(b"\r\n\r\nlengthEND")
    assert got[1].endswith(b"\r\n\r\n8\r\nchunkEND\r\n0\r\n\r\n")
    _, lines = ended(trial)
    assert [(line["method"], line["sent_bytes"], line["status"]) for line in lines] == [
        ("POST", 9, 201),
        ("POST", 8, 201),
    ]


def test_garbage_is_refused_and_logged(start: Start) -> None:
    trial = start()
    for raw in (b"\x16\x03\x01 tls?\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET ftp://a/ HTTP/1.1\r\n\r\n",
                b"CONNECT nowhere HTTP/1.1\r\n\r\n", b"GET https://a.test/ HTTP/1.1\r\n\r\n",
                b"GET http://a\x00b/ HTTP/1.1\r\n\r\n", b"GET http://" + b"a." * 2000 + b"b/ HTTP/1.1\r\n\r\n",
                b"GET http://a%00b/ HTTP/1.1\r\n\r\n", b"CONNECT [::1:80 HTTP/1.1\r\n\r\n",
                b"GET http://u:p@a.test/ HTTP/1.1\r\n\r\n", b"GET http://a.test:99999/ HTTP/1.1\r\n\r\n"):  # fmt: skip
        assert b"403" in say(trial, raw), raw
    assert ended(trial)[0].refused == 11
    assert (trial.folder / "egress-errors.txt").read_bytes() == b""


def test_slow_callers_are_ended_and_do_not_keep_others_out(start: Start, cdn: Cdn) -> None:
    trial = start(head_s=1.0)
    began = time.monotonic()
    with ExitStack() as stack:
        slow = []
        for _ in range(50):
            line = stack.enter_context(socket.socket(socket.AF_UNIX))
            line.connect(str(trial.socket))
            line.sendall(b"GET http://cdn")
            slow.append(line)
        assert b"200" in get(trial, f"{cdn.address}/hello.txt")
        for line in slow:
            line.settimeout(10)
            while line.recv(4096):
                pass
    assert time.monotonic() - began < 8
    sums, _ = ended(trial)
    assert (sums.failed, sums.answered) == (50, 1)


def test_a_flood_is_dropped_and_counted_and_the_proxy_goes_on(start: Start, cdn: Cdn) -> None:
    trial = start(connections=20, lines=30)
    with ExitStack() as stack:
        for _ in range(60):
            line = stack.enter_context(socket.socket(socket.AF_UNIX))
            line.connect(str(trial.socket))
            line.sendall(b"GET ")
    until = time.monotonic() + 10
    while b"200" not in (answer := _maybe(trial, cdn)) and time.monotonic() < until:
        time.sleep(0.05)
    assert b"200" in answer
    for number in range(40):
        get(trial, f"http://h{number}.github.com/")
    sums, lines = ended(trial)
    assert sums.connections_dropped >= 20
    assert len(lines) == 30 and sums.lines_left_out == sums.answered + sums.refused + sums.blocked + sums.failed - 30
    assert sums.blocked == 40


def _maybe(trial: TrialEgress, cdn: Cdn) -> bytes:
    try:
        return get(trial, f"{cdn.address}/hello.txt")
    except OSError:
        return b""


def test_a_connection_on_which_nothing_moves_is_closed(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        trial = start(allowed=(("127.0.0.1", port),), idle_s=1.0)
        began = time.monotonic()
        answer = get(trial, f"http://cdn.test:{port}/")
    assert b"502" in answer and time.monotonic() - began < 8
    assert "nothing moved" in ended(trial)[1][0]["reason"]


def test_the_proxy_ends_with_the_trial_and_logs_what_was_under_way(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        trial = start(allowed=(("127.0.0.1", port),))
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(trial.socket))
            line.sendall(f"GET http://cdn.test:{port}/ HTTP/1.1\r\n\r\n".encode())
            silent.accept()
            began = time.monotonic()
            trial.close()
            line.settimeout(5)
            assert line.recv(4096) == b""
    assert time.monotonic() - began < 5
    with pytest.raises(ProcessLookupError):
        os.kill(trial.pid, 0)
    assert not trial.socket.exists()
    _, lines = ended(trial)
    assert [line["reason"] for line in lines] == ["the trial ended"]


def test_two_trials_have_two_logs(start: Start, cdn: Cdn) -> None:
    first, second = start("first"), start("second")
    get(first, f"{cdn.address}/hello.txt")
    get(second, f"{cdn.address}/hello.txt?b")
    get(second, "http://github.com/")
    assert [line["url"] for line in ended(first)[1]] == [f"{cdn.address}/hello.txt"]
    assert [line["outcome"] for line in ended(second)[1]] == ["answered", "blocked"]


def test_the_proxy_ends_when_its_parent_is_gone(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(EgressPolicy(mode="open").model_dump_json())
    at = tmp_path / "s"
    argv = [sys.executable, "-m", "sandboxes.egress", "--policy", policy, "--socket", at, "--folder", tmp_path]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert b"ready" in process.stdout.readline()
        process.stdin.close()
        assert process.wait(10) == 0
    assert (tmp_path / "egress.json").is_file()


def test_the_proxy_is_given_no_key_of_the_operator(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    trial = start()
    assert b"sk-secret" not in Path(f"/proc/{trial.pid}/environ").read_bytes()


def test_hosts_are_compared_as_names() -> None:
    assert host_name(" Bücher.Example. ") == "xn--bcher-kva.example"
    assert is_blocked("a.github.com", DATASET_HOSTS) and not is_blocked("notgithub.com", DATASET_HOSTS)
    for wrong in ("https://a.test/x", "*.a.test", "10.0.0.1", "", "a b"):
        with pytest.raises(UsageError, match="no host name"):
            host_name(wrong)
