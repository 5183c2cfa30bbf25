"""The package mirror: the one thing that an install may reach, GET only, logged and cached.

`Mirror` runs it as a process of its own that listens on a unix socket in a folder which is mounted into
containers; there `forward.py` makes it http://127.0.0.1:PORT/. The npm registry always, and on a second
socket a Python package index where that is wanted. By hand:

    python -m sandboxes.mirror --socket /tmp/m/npm.sock --cache ~/.cache/cdb/npm --log mirror.jsonl
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.cache import cache_folder
from bench.errors import InfraError
from sandboxes import own_process
from sandboxes.sandbox import Mount
from sandboxes.socket_folder import socket_folder

if TYPE_CHECKING:
    from aiohttp import web

MOUNTED_AT = "/mirror"
SOCKET = "npm.sock"
PYPI_SOCKET = "pypi.sock"
LONGEST_WHEEL_S = 1800.0
ERRORS = "stderr.log"
STOP_S = 5.0
FRESH_S = 3600.0


class MirrorEntry(BaseModel):
    """One answer of the mirror, as its log has it; every field is explained in docs/records.md."""

    model_config = ConfigDict(extra="forbid")

    time: float
    registry: Literal["npm", "pypi"] = "npm"
    client: str
    method: str
    kind: str
    """npm: `package`, `version`, `tarball`, `ping`; pypi: `project`, `file`, `metadata`; both: `refused`."""
    package: str
    item: str
    """Version or file asked for; for `refused` the reason."""
    path: str
    status: int
    cache: str
    """`hit`, `miss`, `stale` (kept, and the registry is away) or `-`."""
    size_bytes: int = Field(alias="bytes")
    marker: str
    """Empty for the registry's own answer, else `missing`, `outage` or `refused`."""
    note: str
    ms: float


class Mirror:
    """Owns the mirror's process and its socket folder, from the first `mount` to the end of the `with`.

    An evaluation of static applications therefore starts none. Usable from several threads.

    Args:
        cache: where documents and tarballs are kept; the user's shared cache when not given.
        log: file of JSON lines to append to; a temporary one when not given.
        upstream: the registry's address; the machine's own npm configuration when not given.
        pypi: answer for Python packages too, on a socket of their own.
        pypi_upstream: the index's address (of its simple pages); the machine's own pip configuration when not given.
        fresh_s: how old a package document may be before the registry is asked again.
    """

    def __init__(
        self,
        *,
        cache: Path | None = None,
        log: Path | None = None,
        upstream: str | None = None,
        pypi: bool = False,
        pypi_upstream: str | None = None,
        fresh_s: float = FRESH_S,
    ) -> None:
        self._cache = cache or cache_folder("npm")
        self._pypi_cache = (cache / "pypi" if cache else cache_folder("pypi")) if pypi else None
        self._pypi_upstream = pypi_upstream
        self._upstream = upstream
        self._fresh_s = fresh_s
        self._log = log
        self._folder: Path | None = None
        self._held = contextlib.ExitStack()
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()  # the first caller starts the process, the others wait for it

    def __enter__(self) -> Mirror:
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            process, self._process, self._folder = self._process, None, None
        if process:
            own_process.stop(process, STOP_S)
        self._held.close()

    def mount(self) -> Mount:
        """The socket's folder, to be mounted into a builder, read-only: connecting needs no more.

        Starts the process when it does not run. Raises InfraError when it does not come up.
        """
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._process = None  # it died; the cache is on disk, so another one goes on
            if self._folder is None:
                self._folder = self._held.enter_context(socket_folder("npm"))
            if self._process is None:
                self._process = self._start(self._folder)
            return Mount(self._folder, MOUNTED_AT, read_only=True)

    def check(self) -> None:
        """Raises InfraError when the process was started and has ended by itself."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                said = own_process.last_words(self._folder.parent / ERRORS) if self._folder else ""
                raise InfraError(f"the package mirror ended before its time ({self._process.returncode}): {said}")

    def entries(self, client: str | None = None) -> list[MirrorEntry]:
        """What was answered to `client` (None: to all) so far, oldest first."""
        if self._log is None or not self._log.is_file():
            return []
        found = []
        with self._log.open("rb") as lines:
            for line in lines:
                if client is None or f'"client": "{client}"'.encode() in line:
                    try:
                        found.append(MirrorEntry.model_validate_json(line))
                    except ValidationError:
                        continue  # a line that is being written this moment
        return found

    def _start(self, folder: Path) -> subprocess.Popen[str]:
        socket = folder / SOCKET
        socket.unlink(missing_ok=True)
        own = folder.parent  # beside the folder that containers see
        if self._log is None:
            self._log = own / "mirror.jsonl"
        options = ["--socket", str(socket), "--cache", str(self._cache), "--log", str(self._log)]
        options += ["--fresh-s", str(self._fresh_s), "--with-parent"]
        options += ["--upstream", self._upstream] if self._upstream else []
        if self._pypi_cache:
            (folder / PYPI_SOCKET).unlink(missing_ok=True)
            options += ["--pypi-socket", str(folder / PYPI_SOCKET), "--pypi-cache", str(self._pypi_cache)]
            options += ["--pypi-upstream", self._pypi_upstream] if self._pypi_upstream else []
        errors = own / ERRORS
        return own_process.start("the package mirror", "sandboxes.mirror", options, errors=errors, stop_s=STOP_S)


def _await_end_of_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(0, 1024):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has ended by itself
        loop.call_soon_threadsafe(stop.set)


async def _serve(options: argparse.Namespace) -> None:
    from aiohttp import web

    from sandboxes.mirror_answer import Log
    from sandboxes.mirror_app import MirrorApp
    from sandboxes.mirror_store import Store
    from sandboxes.mirror_upstream import Upstream, settings

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.with_parent:
        threading.Thread(target=_await_end_of_stdin, args=(loop, stop), daemon=True).start()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    async with contextlib.AsyncExitStack() as held:
        log = held.enter_context(options.log.open("ab"))
        upstream = Upstream(settings(options.upstream))
        held.push_async_callback(upstream.close)
        store = Store(options.cache, upstream.address)
        app = MirrorApp(upstream, store, Log(log, "npm"), fresh_s=options.fresh_s).application()
        await _listen(web.AppRunner(app, access_log=None, shutdown_timeout=1.0), options.socket, held)
        if options.pypi_socket:
            app = await _pypi(options, log, held)
            await _listen(web.AppRunner(app, access_log=None, shutdown_timeout=1.0), options.pypi_socket, held)
        print(json.dumps({"ready": True, "socket": str(options.socket)}), flush=True)
        await stop.wait()


async def _pypi(options: argparse.Namespace, log: BinaryIO, held: contextlib.AsyncExitStack) -> web.Application:
    from sandboxes.mirror_answer import Log
    from sandboxes.mirror_store import Store
    from sandboxes.mirror_upstream import Upstream
    from sandboxes.pypi_app import PypiApp
    from sandboxes.pypi_settings import settings

    upstream = Upstream(settings(options.pypi_upstream), algorithms=("sha256",), longest_s=LONGEST_WHEEL_S)
    held.push_async_callback(upstream.close)
    store = Store(options.pypi_cache, upstream.address, "sha256")
    return PypiApp(upstream, store, Log(log, "pypi"), fresh_s=options.fresh_s).application()


async def _listen(runner: web.AppRunner, socket: Path, held: contextlib.AsyncExitStack) -> None:
    from aiohttp import web

    await runner.setup()
    held.push_async_callback(runner.cleanup)
    await web.UnixSite(runner, str(socket)).start()
    socket.chmod(0o666)  # the container's user connects; the folder keeps others out


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, or with --with-parent until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m sandboxes.mirror", description="GET-only package mirror.")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--upstream", help="the registry's address; else the machine's npm configuration")
    parser.add_argument("--pypi-socket", type=Path, help="answer for Python packages too, on this socket")
    parser.add_argument("--pypi-cache", type=Path)
    parser.add_argument("--pypi-upstream", help="the index's address; else the machine's pip configuration")
    parser.add_argument("--fresh-s", type=float, default=FRESH_S)
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    try:
        asyncio.run(_serve(parser.parse_args(argv)))
    except InfraError as error:
        print(f"mirror: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
