"""One command in a running container: its output streamed to files, its end noticed, its deadline kept.

The engine's stream ends only when the last process holding the command's output closes it, so a
background server would keep it open for ever. The end is therefore what the engine says about the main
process. Its output is then taken for a moment more, and whatever children still write after that is read
and thrown away: an engine whose reader is gone blocks the writer, and takes 20 s to remove the container.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import docker
from docker.errors import APIError

from sandboxes.bounded_output import BoundedOutput
from sandboxes.transient import again

_POLL_S = (0.05, 1.0)
"""First and longest pause between two questions whether the main process still runs."""
_DRAIN_S = 0.3
"""How long output may trail behind the end of the main process."""
_CHUNK_BYTES = 65_536
_EMPTYING_PAUSE_S = 0.02
_STDERR = 2


class Ended(NamedTuple):
    """Exit code of the main process, or None: the deadline passed first (`timed_out`) or it was lost."""

    exit_code: int | None
    timed_out: bool


def run(
    client: docker.DockerClient,
    container: str,
    argv: Sequence[str],
    *,
    user: str,
    deadline_s: float,
    cwd: str,
    env: Mapping[str, str],
    stdin: Path | None,
    stdout: Path | None,
    stderr: Path | None,
    stop: Callable[[], bool] | None = None,
) -> Ended:
    """Runs `argv` and waits for its main process, at most `deadline_s` and until `stop` says so.

    Raises docker's and requests' errors."""
    deadline = time.monotonic() + deadline_s
    made = again(
        lambda: client.api.exec_create(
            container, list(argv), stdin=stdin is not None, user=user, workdir=cwd, environment=dict(env)
        )
    )  # one that was made and never heard of runs nothing
    outputs = (BoundedOutput(stdout), BoundedOutput(stderr))
    source: IO[bytes] | None = stdin.open("rb") if stdin else None
    try:
        hijacked: Any = client.api.exec_start(made["Id"], socket=True)
        stream = _Stream(client, made["Id"], hijacked, outputs, source)
        try:
            return stream.follow(deadline, stop or (lambda: False))
        finally:
            stream.leave()
    except APIError as error:
        if _cannot_execute(error):
            outputs[1].write(f"{error.explanation}\n".encode())
            return Ended(127, timed_out=False)
        raise
    finally:
        for output in outputs:
            output.close()
        if source:
            source.close()


def _cannot_execute(error: APIError) -> bool:
    """The engine answers 400 (older: 500) when the program is not there or may not be executed."""
    text = str(error.explanation)
    return "OCI runtime exec failed" in text and ("executable file not found" in text or "exec:" in text)


def _empty(hijacked: Any, connection: socket.socket) -> None:
    """Reads to the end, at a pace at which a flood costs neither side much."""
    with contextlib.closing(hijacked), contextlib.suppress(OSError):
        connection.settimeout(None)
        while connection.recv(_CHUNK_BYTES):
            time.sleep(_EMPTYING_PAUSE_S)


class _Stream:
    """The hijacked connection of one exec. Frames: kind (1 byte), 3 zero bytes, length (4, big endian), payload."""

    def __init__(
        self,
        client: docker.DockerClient,
        exec_id: str,
        hijacked: Any,
        outputs: tuple[BoundedOutput, BoundedOutput],
        source: IO[bytes] | None,
    ) -> None:
        self._client = client
        self._exec_id = exec_id
        self._outputs = outputs
        self._source = source
        self._socket: socket.socket = getattr(hijacked, "_sock", hijacked)
        self._socket.setblocking(False)
        self._hijacked = hijacked
        self._unsent = b""
        self._header = b""
        self._left_bytes = 0
        self._target = outputs[0]
        self._open = True
        # The response's header may have been read together with the first frames; they lie in its buffer.
        buffer = hijacked._response.raw._fp.fp
        already = buffer.peek() if hasattr(buffer, "peek") else b""
        if already:
            self._take(buffer.read1(len(already)))

    def follow(self, deadline: float, stop: Callable[[], bool]) -> Ended:
        pause_s = _POLL_S[0]
        ask_at = time.monotonic() + pause_s
        while True:
            now = time.monotonic()
            if now >= deadline:
                return Ended(self._exit_code(), timed_out=True) if not self._running() else Ended(None, True)
            if not self._open or now >= ask_at:
                if not self._running():
                    self._drain()
                    return Ended(self._exit_code(), timed_out=False)
                if stop():
                    return Ended(None, timed_out=True)
                pause_s = min(pause_s * 1.5, _POLL_S[1])
                ask_at = time.monotonic() + pause_s
            self._wait(max(0.0, min(ask_at, deadline) - time.monotonic()))

    def leave(self) -> None:
        """Closes the connection, or leaves it to a thread that empties it until the container is gone."""
        if self._open:
            threading.Thread(target=_empty, args=(self._hijacked, self._socket), name="emptying", daemon=True).start()
        else:
            self._hijacked.close()

    def _wait(self, timeout_s: float) -> None:
        """Moves bytes in both directions, once, waiting at most `timeout_s` for the chance."""
        if not self._open:
            time.sleep(min(timeout_s, _POLL_S[0]))
            return
        wants_to_send = [self._socket] if self._source else []
        readable, writable, _ = select.select([self._socket], wants_to_send, [], timeout_s)
        if readable:
            self._receive()
        if writable:
            self._send()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self._open = False

    def _send(self) -> None:
        assert self._source is not None
        self._unsent = self._unsent or self._source.read(_CHUNK_BYTES)
        try:
            if self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
                return
            self._socket.shutdown(socket.SHUT_WR)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass  # the command closed its input or ended; what it printed is still read
        self._source.close()
        self._source = None

    def _take(self, data: bytes) -> None:
        while data:
            if self._left_bytes:
                part, data = data[: self._left_bytes], data[self._left_bytes :]
                self._target.write(part)
                self._left_bytes -= len(part)
                continue
            missing = 8 - len(self._header)
            self._header, data = self._header + data[:missing], data[missing:]
            if len(self._header) == 8:
                kind, self._left_bytes = struct.unpack(">B3xL", self._header)
                self._target = self._outputs[1] if kind == _STDERR else self._outputs[0]
                self._header = b""

    def _drain(self) -> None:
        until = time.monotonic() + _DRAIN_S
        while self._open and (left_s := until - time.monotonic()) > 0:
            readable, _, _ = select.select([self._socket], [], [], min(left_s, _POLL_S[0]))
            if readable:
                self._receive()

    def _running(self) -> bool:
        return bool(self._inspect()["Running"])

    def _exit_code(self) -> int | None:
        code = self._inspect()["ExitCode"]
        return None if code is None else int(code)

    def _inspect(self) -> dict[str, Any]:
        """Asked again when the answer is lost: the command goes on, and an hour's work is not thrown away."""
        return again(lambda: dict(self._client.api.exec_inspect(self._exec_id)))
