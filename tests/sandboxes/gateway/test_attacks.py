"""What a hostile agent may try at its socket; and C46: no key ever comes near it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.model_server import ModelServer
from gateway_calls import (
    CHAT,
    GEMINI,
    KEY,
    MESSAGES,
    RESPONSES,
    Agent,
    UnixConnection,
    body,
    config,
    open_agent,
    wait_for,
)

from sandboxes.gateway import routes
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import Upstream

Play = Callable[..., ModelServer]
OpenTrial = Callable[..., Agent]

OTHER_PATHS = [
    "/v1/files", "/v1/messages/batches", "/v1/organizations", "/v1/messages/../files", "/v1/messages/..%2ffiles",
    "/v1/messages%2f..%2ffiles", "//v1/messages", "/v1//messages", "/v1/messages/", "/V1/messages", "/v1/messages;x=1",
    "/v1/./messages", "/v1/messages%00", "/v1/messages%3f", "/..%2fv1/messages", "/%2e%2e/v1/files", "/v1/messages\\..\\files",
    "/v1beta/models/m:generateContent/../../files", "/v1beta/models/..%2ffiles:generateContent", "/v1beta/models/a/b:generateContent",
    "/v1beta/files", "/v1beta/cachedContents", "/v1beta/models/m:batchGenerateContent", "/v1beta/models/m:predict",
    "/upload/v1beta/files", "/v1/responses/resp_1", "/v1/responses/resp_1/cancel", "/v1/embeddings", "/v1/completions",
    "/v1/chat/completions/x", "/v1/images/generations", "http://elsewhere.example/v1/messages", "/_requests", "/metrics",
]  # fmt: skip


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_no_spelling_reaches_another_path_of_the_upstream(play: Play, open_trial: OpenTrial, path: str) -> None:
    server = play()
    agent = open_trial()
    raw = json.dumps(body(MESSAGES)).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nx-api-key: {agent.trial.token}\r\nConnection: close\r\n"
    answer = agent.raw(head.encode() + f"Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
    assert answer.split(b" ")[1] in {b"404", b"400"}, answer[:200]
    assert server.requests() == []


@pytest.mark.parametrize(
    "method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "post", "PROPFIND"]
)
def test_other_methods_reach_nothing(play: Play, open_trial: OpenTrial, method: str) -> None:
    server = play()
    agent = open_trial()
    head = f"{method} {MESSAGES} HTTP/1.1\r\nHost: x\r\nx-api-key: {agent.trial.token}\r\nConnection: close\r\n\r\n"
    assert agent.raw(head.encode(), timeout=15).split(b" ")[1] in {b"404", b"400", b"405"}
    assert server.requests() == []


@pytest.mark.parametrize("query", ["a=/../x", "a=b c", "a=\r\nX: y", "q=<x>", "x=\\", "a=b#c", "?"])
def test_a_query_that_no_call_needs_is_refused(query: str) -> None:
    assert routes.parse("POST", f"{MESSAGES}?{query}").kind == "refused"
    assert routes.parse("POST", f"{MESSAGES}?beta=true&x=%41").query == "beta=true&x=%41"


def test_the_token_in_a_query_does_not_go_upstream(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    path = f"/v1beta/models/m:streamGenerateContent?alt=sse&key={agent.trial.token}"
    assert agent.ask(path, body(GEMINI), token="").status == 200
    (seen,) = server.requests()
    assert seen["path"] == "/v1beta/models/m:streamGenerateContent?alt=sse"
    assert agent.trial.token not in json.dumps(seen)
    assert agent.trial.token not in (agent.folder / "gateway.jsonl").read_text()


def test_host_and_steering_headers_lead_nowhere_else(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    odd = {
        "Host": "elsewhere.example", "X-Forwarded-Host": "elsewhere.example", "X-Original-URL": "/v1/files",
        "X-HTTP-Method-Override": "DELETE", "Forwarded": "host=elsewhere.example", "Cookie": "a=b",
        "Proxy-Authorization": "Basic eA==", "Connection": "keep-alive, x-drop-me", "X-Drop-Me": "1",
        "OpenAI-Organization": "org-other", "X-Goog-User-Project": "other", "Accept-Encoding": "br, gzip",
    }  # fmt: skip
    assert agent.ask(MESSAGES, headers=odd).status == 200
    arrived = {name.lower(): value for name, value in server.requests()[0]["headers"]}
    assert arrived["host"] == server.address.removeprefix("http://")
    assert arrived["accept-encoding"] == "identity"
    assert not {
        "x-forwarded-host",
        "x-original-url",
        "x-http-method-override",
        "forwarded",
        "cookie",
        "x-drop-me",
    } & set(arrived)
    assert not {"proxy-authorization", "openai-organization", "x-goog-user-project"} & set(arrived)


# ---- tokens and keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers", [{}, {"x-api-key": "cdb-guess"}, {"Authorization": "Bearer "}, {"Authorization": "Basic x"}]
)
def test_c46_without_the_trials_token_nothing_is_asked(
    play: Play, open_trial: OpenTrial, headers: dict[str, str]
) -> None:
    server = play()
    agent = open_trial()
    for path in (MESSAGES, CHAT, RESPONSES, GEMINI, "/v1/models"):
        told = agent.ask(path, token="", headers=headers, method="GET" if path[-6:] == "models" else "POST")
        assert told.status == 401
    assert server.requests() == []
    assert agent.close().refused == {"token": 5}


def test_c46_another_trials_token_and_the_real_key_are_no_tokens_here(play: Play, open_trial: OpenTrial) -> None:
    play()
    one, other = open_trial(), open_trial()
    assert one.ask(MESSAGES, token=other.trial.token).status == 401
    assert one.ask(MESSAGES, token=KEY).status == 401
    assert one.ask(MESSAGES, token=one.trial.token + "x").status == 401
    assert one.ask(MESSAGES, token=one.trial.token[:-1]).status == 401
    other.close()
    assert one.ask(MESSAGES, token=other.trial.token).status == 401


@pytest.mark.parametrize("name", ["x-api-key", "x-goog-api-key", "Authorization", "api-key"])
def test_c46_the_token_is_taken_where_each_protocol_puts_it_and_never_passed_on(
    play: Play, open_trial: OpenTrial, name: str
) -> None:
    server = play()
    agent = open_trial()
    value = f"Bearer {agent.trial.token}" if name == "Authorization" else agent.trial.token
    assert agent.ask(MESSAGES, token="", headers={name: value}).status == 200
    assert agent.trial.token not in json.dumps(server.requests())


def test_c46_no_record_and_no_answer_holds_the_key(play: Play, open_trial: OpenTrial) -> None:
    play(faults=[{"status": 401, "message": f"Incorrect API key provided: {KEY}"}])
    agent = open_trial()
    answer = agent.ask(MESSAGES)
    assert answer.status == 401 and KEY.encode() not in answer.body
    assert "*" * len(KEY) in answer.body.decode()
    for path in (CHAT, RESPONSES, GEMINI):
        agent.ask(path)
    agent.close()
    forms = [KEY.encode(), base64.b64encode(KEY.encode()), agent.trial.token.encode()]
    for file in agent.folder.rglob("*"):
        if file.is_file():
            assert not [form for form in forms if form in file.read_bytes()], file


@pytest.mark.parametrize("split", [1, 5, 11])
def test_c46_a_key_that_an_upstream_echoes_in_a_stream_is_masked_across_pieces(
    play: Play, open_trial: OpenTrial, split: int
) -> None:
    from fakes.model_server import say

    play(turns=[[say(f"key {KEY} and {KEY[:20]} end")]], events=1, faults=[{"split": split}])
    answer = open_trial().ask(MESSAGES, stream=True)
    assert KEY.encode() not in answer.body
    assert f"key {'*' * len(KEY)} and {KEY[:20]} end" in answer.body.decode()


def test_c46_what_the_container_is_given_holds_no_key(play: Play, open_trial: OpenTrial) -> None:
    agent = open_trial()
    given = [agent.trial.env("anthropic"), agent.trial.env("openai-chat"), agent.trial.env("gemini")]
    files = [path.read_text() for path in agent.trial.mount.source.rglob("*") if path.is_file()]
    assert KEY not in json.dumps(given) and not [text for text in files if KEY in text]
    assert sorted(path.name for path in agent.trial.mount.source.iterdir()) == ["forward.py", "gateway.sock"]
    assert agent.trial.mount.read_only


def test_c46_the_keys_name_is_given_never_its_value(gateway: Gateway) -> None:
    assert gateway.pid is not None
    command = Path(f"/proc/{gateway.pid}/cmdline").read_bytes()
    folder = Path(command.split(b"--control\0")[1].split(b"\0")[0].decode()).parent
    assert KEY.encode() not in command
    assert KEY not in (folder / "config.json").read_text()
    assert (folder.stat().st_mode & 0o777) == 0o700


# ---- bytes that are no request ------------------------------------------------------------------------------


def smuggle(token: str, extra: str, raw: bytes) -> bytes:
    return f"POST {MESSAGES} HTTP/1.1\r\nHost: x\r\nx-api-key: {token}\r\n{extra}\r\n".encode() + raw


@pytest.mark.parametrize(
    "extra",
    [
        "Content-Length: 4\r\nContent-Length: 100\r\n",
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 4\r\n Transfer-Encoding: chunked\r\n",
        "Bad\x00Header: 1\r\n",
        "X: a\nContent-Length: 0\r\n",
    ],
)
def test_requests_with_two_readings_are_refused(play: Play, open_trial: OpenTrial, extra: str) -> None:
    server = play()
    agent = open_trial()
    inner = smuggle(agent.trial.token, "Content-Length: 2\r\n", b"{}")
    answer = agent.raw(smuggle(agent.trial.token, extra, b"0\r\n\r\n" + inner), timeout=2)
    assert b" 200 " not in answer
    assert server.requests() == []
    assert agent.ask(MESSAGES).status == 200


@pytest.mark.parametrize(
    "data",
    [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\0" * 1000, b"SSH-2.0-x\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
     b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
     b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n"],
)  # fmt: skip
def test_bytes_that_are_no_request_end_the_connection_and_nothing_else(
    play: Play, open_trial: OpenTrial, data: bytes
) -> None:
    play()
    agent = open_trial()
    answer = agent.raw(data, timeout=2)
    assert answer == b"" or answer.startswith(b"HTTP/1.")
    assert b" 200 " not in answer[:20]
    assert agent.ask(MESSAGES).status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"null", b'"m"', b'{"model":"m"} x', b'{"model":"other","model":"m"}',
        b'{"model":"m","tools":[{"type":"web_search"}],"tools":[]}', b'\xff{"model":"m"}',
        b'{"model":"other","Model":"m"}', b'{"model":"m","MODEL":"other"}', b'{"model":"m","Tools":[]}', b'{"model":["m"]}',
        b'{"model":"m\x00"}', b'{"model":"\\u006d","model":"x"}', b"\xef\xbb\xbf" + b'{"model":"m"}',
        b'{"model":"m","background":true}', b'{"a":' + b"[" * 100_000, b'{"model":"m","n":' + b"9" * 5000 + b"}",
        b'{"model":"m","x":\'y\'}', b'{"model":"m",}', b'{"model" "m"}', b"{'model':'m'}",
    ],
)  # fmt: skip
def test_bodies_that_are_no_request_or_have_two_readings_are_refused(
    play: Play, open_trial: OpenTrial, raw: bytes
) -> None:
    server = play()
    agent = open_trial()
    assert agent.ask(RESPONSES, raw).status in {400, 404}
    assert server.requests() == []
    assert agent.ask(MESSAGES).status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"m","x":[' + b"[]," * 8_000_000 + b"[]]}",
        b"{" + b",".join(b'"%d":1' % number for number in range(300_000)) + b"}",
        b'{"model":"m","tools":[' + b"{}," * 500_000 + b"{}]}",
    ],
    ids=["lists", "keys", "tools"],
)
def test_a_json_bomb_is_refused_at_once(play: Play, open_trial: OpenTrial, gateway: Gateway, raw: bytes) -> None:
    server = play()
    agent = open_trial()
    began = time.monotonic()
    assert agent.ask(RESPONSES, raw).status == 400
    assert time.monotonic() - began < 5
    assert server.requests() == []
    status = Path(f"/proc/{gateway.pid}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < 600 * 1024


def test_large_requests_at_once_are_bounded(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    lines = []
    for _ in range(5):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(10)
        line.connect(str(agent.trial.socket))
        lines.append(line)
        line.sendall(smuggle(agent.trial.token, "Content-Length: 60000000\r\n", b""))
        with contextlib.suppress(OSError):
            for _ in range(59):
                line.sendall(b" " * 1_000_000)
    wait_for(lambda: agent.trial.summary().refused.get("request"))
    for line in lines:
        line.close()
    wait_for(lambda: agent.trial.summary().in_flight == 0)
    assert agent.ask(MESSAGES).status == 200


def test_an_escaped_key_is_the_same_key(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    assert open_trial().ask(CHAT, b'{"\\u006dodel":"other","messages":[]}').status == 404
    assert server.requests() == []


def test_a_gemini_body_cannot_name_another_model(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    assert agent.ask(GEMINI, body(GEMINI) | {"model": "models/dearest"}).status == 200
    assert "dearest" not in server.requests()[0]["body"]
    assert agent.last().edits == [{"edit": "drop_model", "what": "models/dearest"}]


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "deflate", "br"])
def test_a_compressed_request_is_refused_with_the_reason(play: Play, open_trial: OpenTrial, encoding: str) -> None:
    server = play()
    answer = open_trial().ask(MESSAGES, b"\x1f\x8b", headers={"Content-Encoding": encoding})
    assert answer.status == 415 and "uncompressed" in answer.json()["error"]["message"]
    assert server.requests() == []


def test_a_chunked_request_arrives_as_it_was(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    raw = json.dumps(body(MESSAGES)).encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (raw[:7], raw[7:20], raw[20:])) + b"0\r\n\r\n"
    answer = agent.raw(smuggle(agent.trial.token, "Connection: close\r\nTransfer-Encoding: chunked\r\n", pieces))
    assert b" 200 " in answer[:20]
    assert server.requests()[0]["body"].encode() == raw
    assert "transfer-encoding" not in {name.lower() for name, _ in server.requests()[0]["headers"]}


def test_a_client_that_waits_to_be_told_to_send_is_told(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    raw = json.dumps(body(MESSAGES)).encode()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        line.connect(str(agent.trial.socket))
        head = f"Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len(raw)}\r\n"
        line.sendall(smuggle(agent.trial.token, head, b""))
        assert line.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(raw)
        assert line.recv(100).startswith(b"HTTP/1.1 200 ")


def test_http_1_0_gets_its_stream_and_the_connection_ends(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    raw = json.dumps(body(MESSAGES, stream=True)).encode()
    head = f"POST {MESSAGES} HTTP/1.0\r\nx-api-key: {agent.trial.token}\r\nContent-Length: {len(raw)}\r\n\r\n"
    answer = agent.raw(head.encode() + raw)
    head_back, _, content = answer.partition(b"\r\n\r\n")
    assert b" 200 " in head_back and b"chunked" not in head_back.lower()
    assert content.endswith(b'{"type": "message_stop"}\n\n')


def test_a_kept_connection_serves_many_calls_and_errors_between_them(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    connection = UnixConnection(agent.trial.socket)
    statuses = []
    for told in (body(MESSAGES), body(MESSAGES, model="other"), body(MESSAGES, stream=True), body(MESSAGES)):
        connection.request("POST", MESSAGES, json.dumps(told), {"x-api-key": agent.trial.token})
        response = connection.getresponse()
        response.read()
        statuses.append(response.status)
    connection.close()
    assert statuses == [200, 404, 200, 200] and len(server.requests()) == 3


def test_pipelined_requests_are_answered_in_order(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    one = smuggle(agent.trial.token, "Content-Length: 2\r\n", b"{}")
    raw = json.dumps(body(MESSAGES)).encode()
    two = smuggle(agent.trial.token, f"Connection: close\r\nContent-Length: {len(raw)}\r\n", raw)
    answer = agent.raw(one + two)
    assert answer.index(b" 400 ") < answer.index(b" 200 ")


def test_a_websocket_is_declined_so_that_clients_fall_back(play: Play, open_trial: OpenTrial) -> None:
    server = play()
    agent = open_trial()
    upgrade = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "eA==",
        "Sec-WebSocket-Version": "13",
    }
    assert agent.ask(RESPONSES, method="GET", headers=upgrade).status == 426
    assert agent.ask("/v1/realtime", method="GET", headers=upgrade).status == 426
    assert server.requests() == []
    assert agent.ask(RESPONSES).status == 200


def test_a_client_that_never_finishes_its_request_holds_up_nobody(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    lines = []
    for _ in range(20):
        line = socket.socket(socket.AF_UNIX)
        line.connect(str(agent.trial.socket))
        line.sendall(smuggle(agent.trial.token, "Content-Length: 1000\r\n", b'{"model"'))
        lines.append(line)
    assert agent.ask(MESSAGES).status == 200
    began = time.monotonic()
    agent.close()
    assert time.monotonic() - began < 5
    for line in lines:
        line.close()


def test_a_flood_of_connections_is_dropped_and_others_are_served(play: Play, open_trial: OpenTrial) -> None:
    play()
    flooded, other = open_trial(), open_trial()
    lines = []
    for _ in range(400):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(1)
        try:
            line.connect(str(flooded.trial.socket))
        except (BlockingIOError, TimeoutError):
            line.close()
            continue
        lines.append(line)
    assert other.ask(MESSAGES).status == 200
    for line in lines:
        line.close()
    wait_for(lambda: _served(flooded))


def _served(agent: Agent) -> bool:
    try:
        return agent.ask(MESSAGES).status == 200
    except OSError:
        return False


def test_refused_requests_do_not_fill_the_disk(
    play: Play, open_trial: OpenTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    play()
    agent = open_trial()
    connection = UnixConnection(agent.trial.socket)
    for _ in range(2300):
        connection.request("GET", "/v1/files", headers={"x-api-key": "no"})
        connection.getresponse().read()
    connection.close()
    summary = agent.close()
    assert summary.refused == {"token": 2300}
    assert len((agent.folder / "gateway.jsonl").read_bytes().splitlines()) == 2000


def test_many_made_up_models_do_not_fill_the_summary(play: Play, open_trial: OpenTrial) -> None:
    play()
    agent = open_trial()
    for number in range(150):
        agent.ask(MESSAGES, body(MESSAGES, model=f"made-up-{number}"))
    summary = agent.close()
    assert len(summary.models_asked) == 101 and summary.models_asked["…"] == 50


def test_records_that_cannot_be_written_stop_the_trial_and_say_so(
    play: Play, model: ModelServer, tmp_path: Path
) -> None:
    server = play()
    with Gateway(config(model.address, auth="none")) as gateway:
        agent = open_agent(gateway, tmp_path / "t")
        assert agent.ask(MESSAGES).status == 200
        before = agent.last()
        assert gateway.pid is not None
        limit = (agent.folder / "gateway.jsonl").stat().st_size + 10  # as on a disk that is full
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        assert agent.ask(MESSAGES).status == 200
        wait_for(lambda: agent.trial.summary().fault)
        answer = agent.ask(MESSAGES)
        assert answer.status == 503 and "written down" in answer.json()["error"]["message"]
        assert len(server.requests()) == 2
        assert agent.calls() == [before]
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert "written down" in agent.close().fault


def test_two_trials_race_without_mixing(play: Play, open_trial: OpenTrial) -> None:
    play(usage={"input": 100, "output": 1})
    agents = [open_trial() for _ in range(4)]
    gate = threading.Barrier(16)

    def call(number: int) -> int:
        gate.wait()
        return agents[number % 4].ask(MESSAGES, stream=bool(number & 4)).status

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(call, range(16))) == [200] * 16
    for agent in agents:
        summary = agent.close()
        assert (summary.calls, summary.tokens["input"]) == (4, 400)


def test_redirects_are_not_followed(tmp_path: Path) -> None:
    from http.server import BaseHTTPRequestHandler, HTTPServer

    paths: list[str] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/stolen")
            self.send_header("Set-Cookie", "a=b")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        os.environ["CDB_TEST_KEY"] = KEY
        with Gateway(config(f"http://127.0.0.1:{server.server_port}")) as gateway:
            agent = open_agent(gateway, tmp_path / "t")
            answer = agent.ask(MESSAGES)
            agent.close()
    finally:
        server.shutdown()
        server.server_close()
    assert answer.status == 307 and paths == [MESSAGES] and "set-cookie" not in answer.headers


def test_an_upstream_of_another_protocol_is_not_asked(play: Play, model: ModelServer, tmp_path: Path) -> None:
    server = play()
    told = config(model.address, auth="none", protocols=("anthropic",))
    assert isinstance(told.upstreams["up"], Upstream)
    with Gateway(told) as gateway:
        agent = open_agent(gateway, tmp_path / "t")
        assert agent.ask(CHAT).status == 404
        assert agent.ask(MESSAGES).status == 200
        agent.close()
    assert len(server.requests()) == 1
