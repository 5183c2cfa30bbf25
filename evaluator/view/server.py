"""A small server for one site, on the loopback address only.

Whoever asks must know the token in the address, and must have asked for this host by its name: a page elsewhere that
points its own name at 127.0.0.1 is refused. Only files that the site lists are served, looked up by name and never
made into a path from what was asked, so nothing beside them can be reached and nothing is listed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

TYPES = {
    ".html": "text/html; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".json": "application/json",
    ".csv": "text/csv; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg",
    ".gif": "image/gif", ".webp": "image/webp", ".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".aac": "audio/aac",
    ".wav": "audio/wav", ".ogg": "audio/ogg", ".oga": "audio/ogg", ".opus": "audio/ogg", ".flac": "audio/flac",
    ".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm",
    ".pdf": "application/pdf",
}  # fmt: skip
PAGE_POLICY = "frame-ancestors 'none'"
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
"""Of anything that is no page of ours: opened by itself, it may do nothing."""
_RANGE = re.compile(r"^bytes=(\d*)-(\d*)$")
CHUNK = 64 * 1024

Files = Callable[[], dict[str, Path]]
"""Name below the site's root → file. Asked for every request, since a run goes on."""


class Server(ThreadingHTTPServer):
    """`address` is what to open."""

    daemon_threads = True

    def __init__(self, files: Files, home: str, *, port: int = 0, token: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.files, self.home = files, home
        self.token = token or secrets.token_urlsafe(24)
        self.port: int = self.server_address[1]
        self.hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        self.address = f"http://127.0.0.1:{self.port}/{self.token}/"


def serve(files: Files, home: str, *, port: int = 0) -> Server:
    """A server that is bound and not yet running; `serve_forever` runs it. `home` is the name of the first page.

    Raises OSError when the port is taken.
    """
    return Server(files, home, port=port)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "cdb", ""
    timeout = 30
    asked: ClassVar[tuple[str, ...]] = ("GET", "HEAD")

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors are a line of text, and say nothing of what was asked."""
        self._refuse(code if code != HTTPStatus.NOT_IMPLEMENTED else HTTPStatus.METHOD_NOT_ALLOWED)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: addresses hold the token."""

    def _answer(self, *, body: bool) -> None:
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
        _, _, rest = urlsplit(self.path).path.partition("/")
        token, slash, name = rest.partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()) or not slash:
            return self._refuse(HTTPStatus.NOT_FOUND)
        path = self.server.files().get(unquote(name) or self.server.home)
        if path is None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        try:
            self._send(path, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except OSError:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _send(self, path: Path, body: bool) -> None:
        with path.open("rb") as stream:
            size = path.stat().st_size
            page = path.suffix == ".html"
            tag = f'"{hashlib.sha256(stream.read()).hexdigest()[:24] if page else f"{path.name}-{size}"}"'
            if self.headers.get("If-None-Match") == tag:
                return self._head(HTTPStatus.NOT_MODIFIED, path, {"ETag": tag})
            first, last = self._part(size)
            headers = {"ETag": tag, "Accept-Ranges": "bytes", "Content-Length": str(last - first + 1)}
            code = HTTPStatus.OK
            if first > last or first >= max(size, 1):
                headers |= {"Content-Range": f"bytes */{size}", "Content-Length": "0"}
                return self._head(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, path, headers)
            if (first, last) != (0, size - 1):
                code, headers["Content-Range"] = HTTPStatus.PARTIAL_CONTENT, f"bytes {first}-{last}/{size}"
            self._head(code, path, headers)
            stream.seek(first)
            left = last - first + 1 if body else 0
            while left > 0 and (chunk := stream.read(min(CHUNK, left))):
                self.wfile.write(chunk)
                left -= len(chunk)

    def _part(self, size: int) -> tuple[int, int]:
        """(first, last) byte that are asked for: one range, or everything."""
        found = _RANGE.match(self.headers.get("Range", ""))
        if not found or (not found[1] and not found[2]) or size == 0:
            return (0, size - 1) if size else (0, 0)
        if not found[1]:
            return max(0, size - int(found[2])), size - 1
        return int(found[1]), min(int(found[2]), size - 1) if found[2] else size - 1

    def _head(self, code: HTTPStatus, path: Path, headers: dict[str, str]) -> None:
        self.send_response(code)
        policy = PAGE_POLICY if path.suffix == ".html" else FILE_POLICY
        standing = {
            "Content-Type": TYPES.get(path.suffix, "application/octet-stream"), "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
            "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
        }  # fmt: skip
        for name, value in (standing | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def _refuse(self, code: int) -> None:
        text = f"{int(code)} {HTTPStatus(code).phrase}\n".encode()
        self.close_connection = True
        self.send_response(code)
        for name, value in (
            ("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(text))),
            ("X-Content-Type-Options", "nosniff"), ("Connection", "close"),
        ):  # fmt: skip
            self.send_header(name, value)
        if code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", ", ".join(self.asked))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)
