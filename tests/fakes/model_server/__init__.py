"""A scripted model server: the real wire protocols, a script instead of a model, and faults on demand.

In tests:

    with ModelServer({"turns": [[run("echo hi > a.txt")], [say("Done.")]]}) as server:
        … server.address …
        server.requests()[0]["body"]
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode


def say(text: str) -> dict[str, Any]:
    """A text part."""
    return {"text": text}


def run(command: str) -> dict[str, Any]:
    """A call of whichever shell tool the agent offers."""
    return {"run": command}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool by its name."""
    return {"tool": name, "input": arguments}


class ModelServer:
    """Owns a server process for the length of a `with`. `address` has no path: `http://127.0.0.1:PORT`."""

    def __init__(self, scenario: dict[str, Any] | None = None, *, record: Path | None = None, key: str = "") -> None:
        self._scenario = scenario
        self._argv = [sys.executable, str(Path(__file__).parent), "--with-parent"]
        self._argv += ["--record", str(record)] if record else []
        self._argv += ["--key", key] if key else []
        self.address = ""

    def __enter__(self) -> ModelServer:
        self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the scripted model server did not start; run it by hand to see why")
        self.address = f"http://127.0.0.1:{json.loads(line)['port']}"
        if self._scenario is not None:
            self.play(self._scenario)
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()

    def play(self, scenario: dict[str, Any]) -> None:
        """Replace the script and forget what arrived."""
        self._ask("/_scenario", "PUT", json.dumps(scenario).encode())

    def open_stage(self, name: str, scenario: dict[str, Any], key: str = "") -> str:
        """Play another script at an address of its own, which is returned."""
        self._ask(f"/_stage/{name}/_scenario?{urlencode({'key': key})}", "PUT", json.dumps(scenario).encode())
        return f"{self.address}/_stage/{name}"

    def requests(self, stage: str = "") -> list[dict[str, Any]]:
        """What arrived, in order: n, at, method, path, headers (list of pairs), body (text), sha256, bytes, ended."""
        path = f"/_stage/{stage}/_requests" if stage else "/_requests"
        found: list[dict[str, Any]] = json.loads(self._ask(path, "GET", None))
        return found

    def _ask(self, path: str, method: str, body: bytes | None) -> bytes:
        request = urllib.request.Request(self.address + path, data=body, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            content: bytes = answer.read()
        return content
