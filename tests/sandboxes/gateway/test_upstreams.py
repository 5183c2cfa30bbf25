"""Upstreams from configuration: addresses, keys, login tokens, the machine's proxy and certificates."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from fakes.model_server import ModelServer
from gateway_calls import CHAT, GEMINI, KEY, MESSAGES, RESPONSES, config, open_agent, policy

from bench.errors import UsageError
from sandboxes.gateway import routes
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import (
    Caps,
    GatewayConfig,
    ModelRule,
    TrialPolicy,
    Upstream,
    default_upstreams,
    load_config,
)
from sandboxes.gateway.upstream import Route

Play = Callable[..., ModelServer]


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://api.anthropic.com", MESSAGES, "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", MESSAGES, "https://api.anthropic.com/v1/messages"),
        (
            "https://proxy.example/anthropic",
            f"{MESSAGES}?beta=true",
            "https://proxy.example/anthropic/v1/messages?beta=true",
        ),
        ("https://api.openai.com/v1", CHAT, "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com", RESPONSES, "https://api.openai.com/v1/responses"),
        ("https://openrouter.ai/api/v1", CHAT, "https://openrouter.ai/api/v1/chat/completions"),
        ("https://chatgpt.com/backend-api/codex", RESPONSES, "https://chatgpt.com/backend-api/codex/responses"),
        ("http://127.0.0.1:4000", CHAT, "http://127.0.0.1:4000/v1/chat/completions"),
        ("https://g.example/v1beta", GEMINI, "https://g.example/v1beta/models/m:generateContent"),
        ("https://g.example/v1beta/openai", CHAT, "https://g.example/v1beta/openai/chat/completions"),
    ],
)
def test_addresses_are_what_the_providers_own_sdk_takes(base: str, path: str, url: str) -> None:
    route = Route("u", Upstream(base_url=base, auth="none"), {})
    assert str(route.url(routes.parse("POST", path), "m")) == url


def test_a_variable_overrides_the_address_and_a_missing_key_is_named() -> None:
    told = default_upstreams({})["anthropic"]
    assert told.address({"ANTHROPIC_BASE_URL": "http://127.0.0.1:1/"}) == "http://127.0.0.1:1"
    with pytest.raises(UsageError, match="anthropic: no key, set ANTHROPIC_API_KEY"):
        Route("anthropic", told, {})
    with pytest.raises(UsageError, match="holds characters"):
        Route("anthropic", told, {"ANTHROPIC_API_KEY": "sk\r\nX: y"})


def test_a_login_token_is_a_bearer_with_its_beta_among_the_agents_own(
    play: Play, model: ModelServer, tmp_path: Path
) -> None:
    server = play()
    environ = {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-login-token", "ANTHROPIC_BASE_URL": model.address}
    told = default_upstreams(environ)["anthropic"]
    os.environ["CLAUDE_CODE_OAUTH_TOKEN"] = environ["CLAUDE_CODE_OAUTH_TOKEN"]
    try:
        told = told.model_copy(update={"base_url": model.address, "base_url_env": ""})
        with Gateway(GatewayConfig(upstreams={"up": told})) as gateway:
            agent = open_agent(gateway, tmp_path / "t")
            agent.ask(MESSAGES, headers={"anthropic-beta": "a-1,oauth-2025-04-20"})
            agent.ask(MESSAGES, headers={"anthropic-beta": "a-1, b-2"})
            agent.ask(MESSAGES)
            agent.close()
    finally:
        del os.environ["CLAUDE_CODE_OAUTH_TOKEN"]
    seen = [{name.lower(): value for name, value in request["headers"]} for request in server.requests()]
    assert [s["anthropic-beta"] for s in seen] == [
        "a-1,oauth-2025-04-20",
        "a-1,b-2,oauth-2025-04-20",
        "oauth-2025-04-20",
    ]
    assert all(s["authorization"] == "Bearer sk-ant-oat01-login-token" and "x-api-key" not in s for s in seen)


def test_a_token_file_is_read_anew_when_its_owner_renews_it(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    file.write_text(json.dumps({"tokens": {"access_token": "first-token"}}))
    route = Route(
        "chatgpt", Upstream(base_url="http://x.example", key_file=file, key_field="tokens.access_token"), {}
    )
    assert route.key() == "first-token"
    file.write_text(json.dumps({"tokens": {"access_token": "second-token"}}))
    os.utime(file, (1, 1))
    assert route.key() == "second-token"
    file.write_text("{}")
    os.utime(file, (2, 2))
    with pytest.raises(UsageError, match=r"auth\.json at tokens\.access_token .*log in again"):
        route.key()


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [("bearer", "authorization", f"Bearer {KEY}"), ("x-goog-api-key", "x-goog-api-key", KEY)],
)
def test_each_kind_of_key_goes_where_it_belongs(
    play: Play, model: ModelServer, tmp_path: Path, auth: str, header: str, value: str
) -> None:
    server = play()
    os.environ["CDB_TEST_KEY"] = KEY
    with Gateway(config(model.address, auth=auth, headers={"X-Extra": "1"})) as gateway:
        agent = open_agent(gateway, tmp_path / "t")
        agent.ask(CHAT)
        agent.close()
    arrived = {name.lower(): told for name, told in server.requests()[0]["headers"]}
    assert arrived[header] == value and arrived["x-extra"] == "1"


def test_mistakes_in_a_policy_are_named_before_anything_starts(gateway: Gateway, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"names the upstream 'nowhere'; configured are: up"):
        gateway.open(policy(models=(ModelRule(asked="m", upstream="nowhere"),)), tmp_path / "t")
    with pytest.raises(ValueError, match="greater than 0"):
        Caps(usd=-1)
    with pytest.raises(ValueError, match="at least 1 item"):
        TrialPolicy(trial="t", models=())


def test_a_configuration_file_is_read_and_its_mistakes_are_named(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "upstreams:\n  mine: {base_url: 'http://127.0.0.1:4000', key_env: MINE, protocols: [openai-chat]}\n"
    )
    told = load_config(file, {})
    assert set(told.upstreams) == {"anthropic", "openai", "gemini", "mine"}
    file.write_text("upstreams: {mine: {base_url: 'ftp://x', key: sk-secret}}")
    with pytest.raises(UsageError, match=r"gateway\.yaml is no gateway configuration"):
        load_config(file, {})
    with pytest.raises(UsageError, match="missing"):
        load_config(tmp_path / "missing.yaml", {})


# ---- proxy and private certificates -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for model.example that signs itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=model.example"]
    argv += ["-addext", "subjectAltName=DNS:model.example", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    return folder


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        told = json.dumps({"model": "m", "usage": {"input_tokens": 5, "output_tokens": 6}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def tls_model(certificate: Path) -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), _Model)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def connect_proxy(tls_model: int) -> Iterator[tuple[int, list[bytes]]]:
    """A proxy that knows where model.example is; nobody else does."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += near.recv(65536)
            asked.append(head)
            far = socket.create_connection(("127.0.0.1", tls_model))
            near.sendall(b"HTTP/1.1 200 ok\r\n\r\n")
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1], asked
    listener.close()


@pytest.mark.parametrize("trusted", [True, False])
def test_the_machines_proxy_and_certificates_are_used(
    certificate: Path,
    connect_proxy: tuple[int, list[bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusted: bool,
) -> None:
    port, asked = connect_proxy
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:pass-word@127.0.0.1:{port}")
    monkeypatch.setenv("CDB_TEST_KEY", KEY)
    if trusted:
        monkeypatch.setenv("CDB_CA_BUNDLE", str(certificate / "cert.pem"))
    with Gateway(config("https://model.example")) as gateway:
        agent = open_agent(gateway, tmp_path / "t")
        answer = agent.ask(MESSAGES)
        agent.close()
    assert asked[0].startswith(b"CONNECT model.example:443 ")
    assert base64.b64encode(b"user:pass-word") in asked[0] and KEY.encode() not in asked[0]
    if trusted:
        assert answer.status == 200 and agent.calls()[0].usage == {"input": 5, "output": 6}
    else:
        assert answer.status == 502 and agent.calls()[0].ended == "upstream_error"
        assert "CERTIFICATE" in agent.calls()[0].note.upper()
    records = (agent.folder / "gateway.jsonl").read_bytes()
    assert b"pass-word" not in records and KEY.encode() not in records


def test_no_proxy_is_respected(
    play: Play, model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play()
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Gateway(config(model.address, auth="none")) as gateway:
        agent = open_agent(gateway, tmp_path / "t")
        assert agent.ask(MESSAGES).status == 200
        agent.close()


def test_the_documents_configuration_is_one(tmp_path: Path) -> None:
    import re

    text = (Path(__file__).parents[3] / "docs/gateway.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "gateway.yaml"
    file.write_text(example)
    told = load_config(file, {})
    assert {"house", "proxy", "login"} < set(told.upstreams) and told.prices["house-model"].output == 1.6


def test_one_trial_by_hand_as_the_documents_say(play: Play, model: ModelServer, tmp_path: Path) -> None:
    import signal
    import sys
    import urllib.request

    play()
    # A shell's background job ignores SIGINT, and so would what we start.
    hearing = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    hearing += "runpy.run_module('sandboxes.gateway', run_name='__main__')"
    argv = [sys.executable, "-c", hearing, "--try", "claude-sonnet-4-5", "--upstream", "anthropic"]
    argv += ["--folder", str(tmp_path / "seen"), "--port", "0"]
    env = os.environ | {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": model.address, "NO_PROXY": "127.0.0.1"}
    process = subprocess.Popen(argv, env=env, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        raw = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 5, "messages": []}).encode()
        request = urllib.request.Request(told["base_url"] + MESSAGES, raw, {"x-api-key": told["token"]})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()
    assert json.loads((tmp_path / "seen/gateway.json").read_text())["calls"] == 1
