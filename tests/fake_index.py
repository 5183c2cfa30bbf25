"""A small Python package index for tests: pages in either form, files elsewhere or at hand, faults on demand."""

from __future__ import annotations

import hashlib
import html
import io
import json
import ssl
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

JSON = "application/vnd.pypi.simple.v1+json"


def wheel(name: str, version: str, source: str = "") -> bytes:
    """A wheel that pip installs: one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source or f"version = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


def source_archive(name: str, version: str, files: dict[str, str]) -> bytes:
    """A source distribution: `files` below its one folder."""
    told = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", **files}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in told.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@dataclass
class Index:
    """What is served. `answer_with` overrules everything; `asked` lists what was requested, in order."""

    address: str = ""
    speaks_json: bool = True
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """project → file → content"""
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer_with: int | None = None
    page: bytes | None = None
    spoil: bool = False
    elsewhere: str = ""
    """Address files are listed at instead of this server's own."""

    def add(self, name: str, version: str, source: str = "") -> bytes:
        content = wheel(name, version, source)
        self.files.setdefault(name, {})[f"{name}-{version}-py3-none-any.whl"] = content
        return content

    def respond(self, path: str, accept: str) -> tuple[int, str, bytes]:
        parts = unquote(path).strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.files:
            if self.page is not None:
                return 200, "text/html", self.page
            return self._page(parts[1], JSON in accept and self.speaks_json)
        if parts[0] == "packages" and len(parts) == 3:
            file = parts[2].removesuffix(".metadata")
            content = self.files.get(parts[1], {}).get(file)
            if content is not None:
                found = metadata(file) if parts[2].endswith(".metadata") else content
                return 200, "application/octet-stream", found[:-1] + b"?" if self.spoil else found
        return 404, "text/plain", b"not found"

    def _page(self, name: str, as_json: bool) -> tuple[int, str, bytes]:
        base = (self.elsewhere or self.address) + "/packages"
        if as_json:
            files = [
                {
                    "filename": file,
                    "url": f"{base}/{name}/{file}",
                    "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                    "requires-python": ">=3.8",
                    "core-metadata": {"sha256": hashlib.sha256(metadata(file)).hexdigest()},
                    "upload-time": "2026-01-01T00:00:00Z",
                }
                for file, content in self.files[name].items()
            ]
            told = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": files}
            return 200, JSON, json.dumps(told).encode()
        links = "".join(
            f'<a href="../../packages/{name}/{file}#sha256={hashlib.sha256(content).hexdigest()}"'
            f' data-requires-python="{html.escape(">=3.8")}" data-yanked="too &quot;old&quot;">{file}</a>'
            for file, content in self.files[name].items()
        )
        return 200, "text/html; charset=utf-8", f"<html><body><h1>{name}</h1>{links}</body></html>".encode()


def metadata(file: str) -> bytes:
    name, version, *_ = file.split("-")
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()


@contextmanager
def serving(index: Index, certificate: Path | None = None) -> Iterator[Index]:
    """`certificate`: a PEM file with key and certificate for 127.0.0.1; the index then speaks https."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            index.asked.append(self.path)
            index.headers.append(dict(self.headers.items()))
            path = self.path.removeprefix("http://index.test")  # as a proxy is asked
            status, kind, body = index.respond(path, self.headers.get("Accept", ""))
            if index.answer_with is not None:
                status, body = index.answer_with, b"out of order"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        index.address = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()
