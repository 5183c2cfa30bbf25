"""Serves one folder over HTTP inside an application container, as a good static host would.

Run there by the container's own python3 with nothing but the standard library:

    python3 -I static_server.py --root /workspace --port 8080 [--base /app/] [--index app/home.html] [--spa]
                                [--fallback 200.html] [--log /tmp/access.jsonl]

`http.server` alone will not do: it has no ranges (media cannot seek), follows links out of its root and
lists directories. Here: ranges, an explicit MIME map, nothing cached, no listing, no way out of the root,
names in any alphabet. With --spa a *navigation* to a path without file extension gets index.html; a
missing asset stays a 404, so that it can be seen. Prints {"ready": true, "port": N} once it listens.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import stat
import sys
import threading
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote, unquote_to_bytes

MAX_LOG_BYTES = 8 * 1024 * 1024
SNIFF_BYTES = 64 * 1024
IDLE_S = 75.0

MIME = {
    "3gp": "video/3gpp", "aac": "audio/aac", "apng": "image/apng", "avi": "video/x-msvideo",
    "avif": "image/avif", "bmp": "image/bmp", "cjs": "text/javascript", "css": "text/css",
    "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eot": "application/vnd.ms-fontobject", "flac": "audio/flac", "geojson": "application/geo+json",
    "gif": "image/gif", "glb": "model/gltf-binary", "gltf": "model/gltf+json", "gz": "application/gzip",
    "heic": "image/heic", "heif": "image/heif", "htm": "text/html", "html": "text/html",
    "ico": "image/x-icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "js": "text/javascript", "json": "application/json", "jsonld": "application/ld+json",
    "jxl": "image/jxl", "m3u8": "application/vnd.apple.mpegurl", "m4a": "audio/mp4", "m4v": "video/mp4",
    "map": "application/json", "md": "text/markdown", "mid": "audio/midi", "midi": "audio/midi",
    "mjs": "text/javascript", "mkv": "video/x-matroska", "mov": "video/quicktime", "mp3": "audio/mpeg",
    "mp4": "video/mp4", "mpd": "application/dash+xml", "mpeg": "video/mpeg", "oga": "audio/ogg",
    "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf",
    "pdf": "application/pdf", "png": "image/png", "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rtf": "application/rtf", "srt": "application/x-subrip", "svg": "image/svg+xml",
    "svgz": "image/svg+xml", "tif": "image/tiff", "tiff": "image/tiff", "toml": "application/toml",
    "ts": "video/mp2t", "tsv": "text/tab-separated-values", "ttf": "font/ttf", "txt": "text/plain",
    "vtt": "text/vtt", "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm",
    "webm": "video/webm", "webmanifest": "application/manifest+json", "webp": "image/webp",
    "woff": "font/woff", "woff2": "font/woff2", "xhtml": "application/xhtml+xml",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml",
    "zip": "application/zip",
}  # fmt: skip
OTHER_FILES = frozenset({
    "7z", "asp", "aspx", "bat", "bin", "br", "dat", "data", "db", "exe", "jar", "jsp", "jsx", "less",
    "lock", "log", "php", "psd", "py", "rar", "rb", "sass", "scss", "sh", "sqlite", "styl", "svelte",
    "swf", "tar", "tgz", "tsx", "vue", "wma", "wmv",
})  # fmt: skip
"""Extensions beside MIME's that name a file, never a client-side route."""
CHARSET_IN_FILE = re.compile(rb"""<meta[^>]{1,200}charset|<\?xml[^>]{1,100}encoding""", re.IGNORECASE)
RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


@dataclass(frozen=True)
class Site:
    """What is served: a real folder, the decoded path it is mounted at (begins and ends with `/`), the
    application's page below the root, whether deep links are answered, and by which page."""

    root: Path
    base: str
    index: str
    spa: bool
    fallback: str


@dataclass(frozen=True)
class Found:
    """A file to send, the status to send it with, and whether it stands in for another path."""

    path: Path
    status: HTTPStatus = HTTPStatus.OK
    fallback: bool = False


@dataclass(frozen=True)
class Span:
    """The bytes of a file to send: offset, count, and whether that is a part (206)."""

    start: int
    count: int
    part: bool


def extension(name: str) -> str:
    """The lower-case file extension when it is one that files have; empty for `v1.2` or `jane.doe`."""
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    return suffix if suffix in MIME or suffix in OTHER_FILES else ""


def content_type(path: Path, head: bytes) -> str:
    """MIME type of `path`; text that is UTF-8 and names no charset of its own gets `charset=utf-8`.

    A charset in the header would overrule the one in a page's own `<meta>`, so that one is left alone.
    """
    kind = MIME.get(path.suffix[1:].lower(), "application/octet-stream")
    textual = kind.startswith("text/") or kind in {"application/json", "application/xml", "image/svg+xml"}
    if not textual or CHARSET_IN_FILE.search(head[:1024]):
        return kind
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end < len(head) or len(head) < SNIFF_BYTES:
            return kind
    return f"{kind}; charset=utf-8"


def parse_range(header: str | None, size: int) -> Span | None:
    """The span a Range header asks of a file of `size` bytes; None when it cannot be satisfied (416).

    No header, several ranges or a form that is not understood mean the whole file, as RFC 9110 allows.
    """
    whole = Span(0, size, False)
    match = RANGE.match((header or "").replace(" ", ""))
    if match is None or match.groups() == ("", ""):
        return whole
    first, last = match.groups()
    if not first:
        count = min(int(last), size)
        return Span(size - count, count, True) if count else None
    start = int(first)
    if last and int(last) < start:
        return whole
    if start >= size:
        return None
    end = min(int(last), size - 1) if last else size - 1
    return Span(start, end - start + 1, True)


def segments_of(target: str) -> list[str] | None:
    """The decoded path segments of a request target; None for one that tries to leave or cannot be a name."""
    if not target.startswith("/"):
        match = re.match(r"https?://[^/?#]*(.*)", target, re.IGNORECASE)
        target = match[1] if match and match[1].startswith("/") else "/"
    parts = [os.fsdecode(unquote_to_bytes(part)) for part in target.partition("?")[0].split("/")[1:]]
    if any(part in {"..", "."} or "/" in part or "\0" in part for part in parts):
        return None
    return parts


class AccessLog:
    """JSON lines, one per answer, until MAX_LOG_BYTES: a page that polls for hours must not fill the disk."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("ab") if path else None
        self._left = MAX_LOG_BYTES
        self._lock = threading.Lock()  # keeps lines whole; handlers write from their own threads

    def write(self, entry: dict[str, object]) -> None:
        if self._file is None:
            return
        line = json.dumps(entry, ensure_ascii=True).encode() + b"\n"
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(line)
            self._file.write(line if self._left > 0 else b'{"log":"full"}\n')
            self._file.flush()


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD from the server's `Site`."""

    protocol_version = "HTTP/1.1"
    server_version = "cdb-static"
    sys_version = ""
    timeout = IDLE_S
    disable_nagle_algorithm = True
    """Headers and body are two writes: held back, the second waits up to 40 ms for the first one's receipt."""
    server: StaticServer

    def do_GET(self) -> None:
        began = time.monotonic()
        self._sent: tuple[int, int, bool] = (0, 0, False)
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True  # the browser went away, as media elements do all the time
        finally:
            status, count, fallback = self._sent
            self.server.access_log.write({
                "time": round(time.time(), 3), "method": self.command, "path": self.path[:2000],
                "status": status, "bytes": count, "range": self.headers.get("Range"),
                "fallback": fallback, "ms": round((time.monotonic() - began) * 1000, 1),
            })  # fmt: skip

    do_HEAD = do_GET

    def _refuse(self) -> None:
        began = time.time()
        self.close_connection = True  # a body may follow that nobody will read
        self._plain(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD", "Connection": "close"})
        self.server.access_log.write(
            {"time": round(began, 3), "method": self.command, "path": self.path[:2000], "status": 405}
        )

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse

    def _answer(self) -> None:
        site = self.server.site
        parts = segments_of(self.path)
        base = [part for part in site.base.split("/") if part]
        if parts is None:
            self._plain(HTTPStatus.NOT_FOUND)
        elif parts[: len(base)] != base or len(parts) == len(base):
            at_door = not any(parts) or parts == base
            self._redirect(quote(site.base)) if at_door and base else self._plain(HTTPStatus.NOT_FOUND)
        else:
            self._send_path(site, parts[len(base) :])

    def _send_path(self, site: Site, parts: list[str]) -> None:
        named = [part for part in parts if part]
        inside = _spelled(site.root, named)
        if parts[-1] and os.path.isdir(inside) and _file_within(site, inside / "index.html"):  # noqa: PTH112
            # os.path.isdir: Path.is_dir raises on a name that is too long.
            query = "".join(self.path.partition("?")[1:])
            self._redirect(quote(os.fsencode(site.base + "/".join(named))) + "/" + query)
            return
        found = find(site, parts, navigation=self._is_navigation())
        if found is None:
            self._plain(HTTPStatus.NOT_FOUND)
        else:
            self._send_file(found)

    def _is_navigation(self) -> bool:
        mode = self.headers.get("Sec-Fetch-Mode")
        return mode == "navigate" if mode else "text/html" in self.headers.get("Accept", "")

    def _send_file(self, found: Found) -> None:
        try:
            descriptor = os.open(found.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self._plain(HTTPStatus.FORBIDDEN)
            return
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            head = file.read(SNIFF_BYTES)
            # Without validators an If-Range never matches: the whole file is the right answer.
            asked = self.headers.get("Range") if found.status == HTTPStatus.OK else None
            span = parse_range(None if self.headers.get("If-Range") else asked, size)
            if span is None:
                self._plain(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, {"Content-Range": f"bytes */{size}"})
                return
            self._send_span(found, file, span, size, content_type(found.path, head))

    def _send_span(self, found: Found, file: BinaryIO, span: Span, size: int, kind: str) -> None:
        status = HTTPStatus.PARTIAL_CONTENT if span.part else found.status
        self._sent = (status, 0, found.fallback)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(span.count))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Cache-Control", "no-store")
        if found.path.suffix.lower() == ".svgz":
            self.send_header("Content-Encoding", "gzip")
        if span.part:
            self.send_header("Content-Range", f"bytes {span.start}-{span.start + span.count - 1}/{size}")
        self.end_headers()
        if self.command != "HEAD" and span.count:
            count = self.connection.sendfile(file, span.start, span.count)
            self._sent = (status, count, found.fallback)

    def _redirect(self, location: str) -> None:
        self._plain(HTTPStatus.FOUND, {"Location": location})

    def _plain(self, status: HTTPStatus, headers: dict[str, str] | None = None) -> None:
        body = f"{status.value} {status.phrase}\n".encode()
        self._sent = (status, len(body), False)
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr: the access log has it all."""


def _file_within(site: Site, path: Path) -> Path | None:
    """The real path when `path` is a regular file that lies, links resolved, inside the root."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except (OSError, ValueError):
        return None
    return real if stat.S_ISREG(mode) and real.is_relative_to(site.root) else None


def _spelled(root: Path, names: Sequence[str]) -> Path:
    """The path that `names` mean, each as it is spelled on disk: a page says `é` in one character, an archive that
    was made on macOS has it in two, and both mean one file."""
    path = root
    for name in names:
        there = path / name
        if not name.isascii() and not os.path.lexists(there):  # lexists: it does not raise for a long name
            there = _same_under_nfc(path, name) or there
        path = there
    return path


def _same_under_nfc(folder: Path, name: str) -> Path | None:
    wanted = unicodedata.normalize("NFC", name)
    try:
        found = [each for each in folder.iterdir() if unicodedata.normalize("NFC", each.name) == wanted]
    except OSError:
        return None
    return found[0] if len(found) == 1 else None


def find(site: Site, parts: Sequence[str], *, navigation: bool) -> Found | None:
    """The file that answers the path `parts` (decoded; a last empty part means a directory was asked).

    Tried in order: the file itself or the directory's index; `NAME.html` for `NAME`, as static exports
    expect; for navigations without file extension the fallback page (only with `spa`); the site's
    own 404.html for other navigations.
    """
    path = _spelled(site.root, [part for part in parts if part])
    if parts[-1]:
        tries = [path] if extension(parts[-1]) else [path, path.with_name(path.name + ".html")]
    else:
        own = site.root / site.index
        tries = [path / "index.html", path / "index.htm", *([own] if own.parent == path else [])]
    for candidate in tries:
        real = _file_within(site, candidate)
        if real:
            return Found(real)
    if not navigation:
        return None
    if site.spa and not extension(parts[-1]):
        real = _file_within(site, site.root / site.fallback)
        return Found(real, fallback=True) if real else None
    real = _file_within(site, site.root / "404.html")
    return Found(real, HTTPStatus.NOT_FOUND, fallback=True) if real else None


class StaticServer(ThreadingHTTPServer):
    """One thread per connection, on 127.0.0.1 only. Port 0 picks a free one."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, site: Site, port: int, log: Path | None = None) -> None:
        self.site = site
        self.access_log = AccessLog(log)
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A broken request is the client's affair; anything else is worth a traceback in the spawn log."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def make_site(
    root: Path, base: str = "/", index: str = "index.html", spa: bool = False, fallback: str | None = None
) -> Site:
    """A `Site` with its root resolved; `base` is a URL path, encoded or not; `fallback` is `index` when not given.

    Raises NotADirectoryError.
    """
    real = Path(os.path.realpath(root))
    if not real.is_dir():
        raise NotADirectoryError(f"{root} is no folder that can be served")
    parts = [part for part in unquote(base).split("/") if part]
    return Site(real, "/" + "".join(f"{part}/" for part in parts), index, spa, fallback or index)


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description="Serve one folder over HTTP on 127.0.0.1.")
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--base", default="/")
    parser.add_argument("--index", default="index.html")
    parser.add_argument("--spa", action="store_true")
    parser.add_argument("--fallback", help="the page that deep links get, below the root; the index when not given")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args(argv)
    site = make_site(options.root, options.base, options.index, options.spa, options.fallback)
    with StaticServer(site, options.port, options.log) as server:
        print(json.dumps({"ready": True, "port": server.server_port}), flush=True)
        server.serve_forever(poll_interval=60)


if __name__ == "__main__":
    main()
