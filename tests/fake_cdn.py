"""A small web server that plays a CDN: scripted answers by path, and a record of what was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Cdn:
    """`answers`: path with its query → status, headers, body; or a function of the handler that sends all itself."""

    host: str = "127.0.0.1"
    port: int = 0
    answers: dict[str, Answer | Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}"

    def add(self, path: str, content_type: str, body: str | bytes, status: int = 200, **headers: str) -> str:
        told = {"Content-Type": content_type, "Access-Control-Allow-Origin": "*"}
        told |= {name.replace("_", "-"): text for name, text in headers.items()}
        self.answers[path] = (status, told, body.encode() if isinstance(body, str) else body)
        return self.address + path


@contextmanager
def running(cdn: Cdn) -> Iterator[Cdn]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            cdn.asked.append(self.path)
            cdn.headers.append({key.lower(): text for key, text in self.headers.items()})
            plain = self.path.partition("?")[0]  # a query is part of the look-up where an answer has one
            missing: Answer = (404, {"Content-Type": "text/plain"}, b"not here")
            answer = cdn.answers.get(self.path) or cdn.answers.get(plain, missing)
            if callable(answer):
                answer(self)
                return
            status, headers, body = answer
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            cdn.asked.append(f"POST {self.path}")
            self.send_error(405)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        cdn.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield cdn
        finally:
            server.shutdown()
            thread.join()
