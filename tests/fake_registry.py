"""A small npm registry for tests: serves packages made here, counts requests, and can be out of order."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


def tarball(name: str, version: str, files: dict[str, str] | None = None, **manifest: object) -> bytes:
    """A package as `npm pack` makes one."""
    content = {"package.json": json.dumps({"name": name, "version": version, **manifest})} | (files or {})
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in content.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@dataclass
class Registry:
    """What is served. `answer_with` overrules everything; `asked` lists request paths in order."""

    address: str = ""
    packages: dict[str, dict[str, bytes]] = field(default_factory=dict)
    manifests: dict[tuple[str, str], dict[str, object]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer_with: int | None = None
    etag: str = ""
    tarball_place: str = "-"
    spoil_tarballs: bool = False

    def add(self, name: str, version: str, files: dict[str, str] | None = None, **manifest: object) -> bytes:
        content = tarball(name, version, files, **manifest)
        self.packages.setdefault(name, {})[version] = content
        self.manifests[name, version] = manifest
        return content

    def file(self, name: str, version: str) -> str:
        return f"{name.rpartition('/')[2]}-{version}.tgz"

    def manifest(self, name: str, version: str) -> dict[str, object]:
        content = self.packages[name][version]
        return {
            "name": name,
            "version": version,
            **self.manifests[name, version],
            "dist": {
                "tarball": f"{self.address}/{name}/{self.tarball_place}/{self.file(name, version)}",
                "integrity": "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode(),
                "shasum": hashlib.sha1(content).hexdigest(),
            },
        }

    def respond(self, path: str) -> tuple[int, bytes]:
        parts = unquote(path).strip("/").split("/")
        name = "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]
        rest = parts[2:] if parts[0].startswith("@") else parts[1:]
        versions = self.packages.get(name)
        if versions is None:
            return 404, b'{"error":"not found"}'
        if not rest:
            document = {
                "name": name,
                "dist-tags": {"latest": list(versions)[-1]},
                "versions": {version: self.manifest(name, version) for version in versions},
            }
            return 200, json.dumps(document).encode()
        if len(rest) == 1 and rest[0] in versions:
            return 200, json.dumps(self.manifest(name, rest[0])).encode()
        for version, content in versions.items():
            if rest == [self.tarball_place, self.file(name, version)]:
                return 200, content[:-1] + b"?" if self.spoil_tarballs else content
        return 404, b'{"error":"not found"}'


@contextmanager
def running(registry: Registry) -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.asked.append(self.path)
            registry.headers.append(dict(self.headers.items()))
            status, body = registry.respond(self.path)
            if registry.answer_with is not None:
                status, body = registry.answer_with, b"out of order"
            elif registry.etag and self.headers.get("If-None-Match") == registry.etag:
                status, body = 304, b""
            self.send_response(status)
            if registry.etag:
                self.send_header("ETag", registry.etag)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        registry.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
