"""Calling a trial's socket as an agent does, for tests of the gateway."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sandboxes.gateway.client import Gateway, TrialGateway
from sandboxes.gateway.policy import Caps, GatewayConfig, ModelRule, Price, TrialPolicy, Upstream
from sandboxes.gateway.records import CallRecord, TrialSummary, read_calls

KEY = "sk-real-0123456789-never-seen"
PRICE = Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)
MESSAGES = "/v1/messages"
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
GEMINI = "/v1beta/models/m:generateContent"
GEMINI_STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool

    def json(self) -> Any:
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float = 20) -> None:
        super().__init__("gateway", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def body(path: str, *, stream: bool = False, model: str = "m", **more: Any) -> dict[str, Any]:
    """A small request of the path's protocol."""
    if "v1beta" in path:
        return {"contents": [{"role": "user", "parts": [{"text": "hello"}]}], **more}
    told: dict[str, Any] = {"model": model, "stream": stream, "max_tokens": 100}
    if path == RESPONSES:
        told = {"model": model, "stream": stream, "input": [{"role": "user", "content": "hello"}]}
    else:
        told["messages"] = [{"role": "user", "content": "hello"}]
    return told | more


@dataclass
class Agent:
    """One open trial and the means to ask it."""

    trial: TrialGateway
    folder: Path

    def ask(
        self,
        path: str,
        told: dict[str, Any] | bytes | None = None,
        *,
        method: str = "POST",
        headers: dict[str, str] | None = None,
        token: str | None = None,
        timeout: float = 20,
        stream: bool = False,
    ) -> Answer:
        raw = (
            told
            if isinstance(told, bytes)
            else json.dumps(body(path, stream=stream) if told is None else told).encode()
        )
        sent = {"Content-Type": "application/json", "x-api-key": self.trial.token if token is None else token}
        connection = UnixConnection(self.trial.socket, timeout)
        try:
            connection.request(method, path, raw if method == "POST" else None, sent | (headers or {}))
            response = connection.getresponse()
            try:
                content, cut = response.read(), False
            except http.client.IncompleteRead as error:
                content, cut = error.partial, True
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, content, cut)
        finally:
            connection.close()

    def raw(self, data: bytes, timeout: float = 10) -> bytes:
        """Everything that comes back for these bytes until the gateway ends the connection."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(timeout)
            line.connect(str(self.trial.socket))
            line.sendall(data)
            seen = b""
            try:
                while piece := line.recv(65536):
                    seen += piece
            except (TimeoutError, ConnectionResetError):
                pass
            return seen

    def calls(self, kind: str = "model") -> list[CallRecord]:
        return [call for call in read_calls(self.folder) if call.kind == kind]

    def last(self, *, calls: int = 1) -> CallRecord:
        """The newest model call's record, once there are `calls` of them."""
        wait_for(lambda: len(self.calls()) >= calls)
        return self.calls()[-1]

    def close(self) -> TrialSummary:
        return self.trial.close()


def wait_for(condition: Callable[[], Any], deadline_s: float = 10.0) -> None:
    until = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not come about in time")
        time.sleep(0.01)


def policy(**more: Any) -> TrialPolicy:
    told: dict[str, Any] = {
        "trial": "run/entry/case/1",
        "models": (ModelRule(asked="m", upstream="up", price=PRICE),),
        "caps": Caps(usd=10.0, tokens=10_000_000, requests=400),
    }
    return TrialPolicy(**(told | more))


def config(address: str, **more: Any) -> GatewayConfig:
    told: dict[str, Any] = {"base_url": address, "auth": "x-api-key", "key_env": "CDB_TEST_KEY"}
    return GatewayConfig(upstreams={"up": Upstream(**(told | more))})


def open_agent(gateway: Gateway, folder: Path, **more: Any) -> Agent:
    return Agent(gateway.open(policy(**more), folder), folder)
