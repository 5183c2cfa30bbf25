"""Our tools, served over MCP on a unix socket: JSON-RPC 2.0, one message a line, as MCP's stdio transport has it.

A call is not answered here. It becomes an event that whoever holds the conversation takes and answers, in its own
thread, since the browser's tools belong to that thread.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, NamedTuple

from evaluator.judges.model.chat import ToolSpec

SERVER = "judge"
"""The server's name; the command line calls our tools `mcp__judge__NAME`."""
PROTOCOL = "2025-06-18"
MOST_LINE_BYTES = 4 * 1024 * 1024
_NO_METHOD, _BAD_JSON = -32601, -32700


class ToolRequest(NamedTuple):
    """A call of one of our tools. `arguments` is JSON text; `id` is ours, unique in a conversation."""

    id: str
    name: str
    arguments: str


class _Waiting(NamedTuple):
    line: _Line
    rpc_id: Any


class _Line:
    """One connection of the command line. The lock keeps messages of two threads apart."""

    def __init__(self, connection: socket.socket) -> None:
        self.reader: BinaryIO = connection.makefile("rb")
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """A command line that is gone needs no answer any more."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


class ToolServer:
    """Listens on `path`; calls go to `events` as ToolRequest. Owns its thread until `close`."""

    def __init__(self, path: Path, tools: Sequence[ToolSpec], events: SimpleQueue[Any]) -> None:
        self._tools = [{"name": t.name, "description": t.description, "inputSchema": t.parameters} for t in tools]
        self._events = events
        self._calls = 0
        self._waiting: dict[str, _Waiting] = {}
        self._lock = threading.Lock()  # protects the two above: a line has a thread of its own
        self._lines: list[_Line] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o666)  # the container's user is not ours; the folder lets nobody else through
        self._socket.listen(4)
        threading.Thread(target=self._accept, name="mcp", daemon=True).start()

    def answer(self, call: str, content: list[dict[str, Any]], *, error: bool = False) -> None:
        """Answer one call with MCP content blocks. Raises KeyError for a call that is not waiting."""
        with self._lock:
            waiting = self._waiting.pop(call)
        waiting.line.send({"id": waiting.rpc_id, "result": {"content": content, "isError": error}})

    def close(self) -> None:
        self._socket.close()
        for line in self._lines:
            line.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # closed
            line = _Line(connection)
            self._lines.append(line)
            threading.Thread(target=self._read, args=(line,), name="mcp line", daemon=True).start()

    def _read(self, line: _Line) -> None:
        try:
            while text := line.reader.readline(MOST_LINE_BYTES):
                self._take(line, text)
        except (OSError, ValueError):
            return  # the line was closed under the reader

    def _take(self, line: _Line, text: bytes) -> None:
        try:
            message = json.loads(text)
            method = message.get("method")
        except (ValueError, AttributeError):
            line.send({"id": None, "error": {"code": _BAD_JSON, "message": "no JSON-RPC message"}})
            return
        if "id" not in message or method is None:
            return  # a notification, or an answer to something we never ask
        if method == "tools/call":
            self._call(line, message)
            return
        result = self._result(method, message.get("params") or {})
        if result is None:
            line.send({"id": message["id"], "error": {"code": _NO_METHOD, "message": f"no method {method!r}"}})
        else:
            line.send({"id": message["id"], "result": result})

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            return {
                "protocolVersion": params.get("protocolVersion", PROTOCOL),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": SERVER, "version": "1"},
            }
        return {"tools/list": {"tools": self._tools}, "ping": {}}.get(method)

    def _call(self, line: _Line, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        with self._lock:
            self._calls += 1
            call = f"mcp_{self._calls}"
            self._waiting[call] = _Waiting(line, message["id"])
        arguments = json.dumps(params.get("arguments") or {}, ensure_ascii=False)
        self._events.put(ToolRequest(call, str(params.get("name", "")), arguments))
