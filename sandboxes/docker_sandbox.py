"""The Docker back end of the `Sandbox` protocol."""

from __future__ import annotations

import io
import logging
import secrets
import tarfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, NotFound

from bench.errors import InfraError
from sandboxes import exec_stream
from sandboxes.engine import engine
from sandboxes.hardening import UID, USER, creation
from sandboxes.oom import oom_kills
from sandboxes.sandbox import MIB, WORKSPACE, Exec, SandboxSpec, TreePolicy, TreeReport
from sandboxes.transient import retrying
from sandboxes.tree_in import tar_stream
from sandboxes.tree_out import copy_out
from sandboxes.tree_sockets import with_sockets

log = logging.getLogger(__name__)

_ARCHIVE_CHUNK_BYTES = 262_144
_CONFLICT = 409
_SIGKILLED = 128 + 9
_DEATH_S = 0.5
_SPAWN = 'log=$1; shift; exec "$@" >"$log" 2>&1 </dev/null'
"""Run by sh with the log and the command as arguments; nothing is put into this text."""


_open: set[DockerSandbox] = set()
_stopping = threading.Event()
_open_lock = threading.Lock()  # guards _open: sandboxes open and close in their own threads


def kill_open_sandboxes() -> None:
    """Kill every container this process has open, so that whoever waits for one gets on: for a run that must stop.

    A container that is only just being made is refused at its start; so is every later one.
    """
    _stopping.set()
    with _open_lock:
        opened = list(_open)
    for sandbox in opened:
        sandbox.kill()


class DockerSandbox:
    """One container of this process's engine. Created and started on entering, removed on leaving.

    The engine is first asked for on entering. A sandbox belongs to the thread that uses it; `kill` may be
    called from any other. Raises InfraError whenever the engine fails; what happens to the commands
    inside is told by `Exec`.
    """

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec
        self.name = f"cdb-{spec.role}-{secrets.token_hex(8)}"
        self._id: str | None = None
        self._frozen = False

    @property
    def id(self) -> str:
        if self._id is None:
            raise InfraError(f"sandbox {self.name} has not been started; use it as a context manager")
        return self._id

    def __enter__(self) -> DockerSandbox:
        with _open_lock:
            _open.add(self)
        try:
            with _engine_errors(f"start a {self.spec.role} container from {self.spec.image}"):
                self._id = self._create()
                for attempt in retrying():
                    with attempt:
                        self._client.api.start(self._id)
            if _stopping.is_set():
                raise InfraError("the run is being stopped, so no container is started any more")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._remove()

    @property
    def _client(self) -> docker.DockerClient:
        return engine()

    def _create(self) -> str:
        """Creates the container once, however often the answer is lost: the name is the idempotency key."""
        arguments = creation(self.spec, self.name)
        host_config = self._client.api.create_host_config(**arguments.host)
        for attempt in retrying():
            with attempt:
                try:
                    made = self._client.api.create_container(host_config=host_config, **arguments.container)
                    return str(made["Id"])
                except APIError as error:
                    if error.response is None or error.response.status_code != _CONFLICT:
                        raise
                    return str(self._client.api.inspect_container(self.name)["Id"])
        raise AssertionError("unreachable: retrying() raises after its last try")

    def _remove(self) -> None:
        """Kills and removes by name, so that a container whose creation was never answered goes too.

        A failure is logged, not raised: it must not hide what ended the block, and the container's owner
        label lets it be reaped later.
        """
        with _open_lock:
            _open.discard(self)
        try:
            for attempt in retrying():
                with attempt:
                    self._client.api.remove_container(self.name, force=True, v=True)
        except NotFound:
            pass
        except (APIError, requests.RequestException, InfraError) as error:
            log.warning("container %s could not be removed now, it is reaped later: %s", self.name, error)

    def exec(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,
        cwd: str = WORKSPACE,
        env: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        stdout: Path | None = None,
        stderr: Path | None = None,
    ) -> Exec:
        began = time.monotonic()
        kills_before = oom_kills(self.id)
        try:
            ended = exec_stream.run(
                self._client,
                self.id,
                argv,
                user=USER,
                deadline_s=deadline_s,
                cwd=cwd,
                env=env or {},
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
            )
        except APIError as error:
            if self._is_running():
                raise InfraError(f"cannot run {argv[0]!r} in {self.name}: {error.explanation}") from error
            ended = exec_stream.Ended(None, timed_out=False)
        except requests.RequestException as error:
            raise InfraError(f"the engine was lost while {argv[0]!r} ran in {self.name}: {error}") from error
        if ended.timed_out and ended.exit_code is None:
            self.freeze()
        state = self._state_after(ended)
        alive = bool(state["Running"])
        kills = oom_kills(self.id)
        struck = bool(state["OOMKilled"]) or (kills or 0) > (kills_before or 0)
        return Exec(
            exit_code=ended.exit_code if alive else None,
            duration_s=time.monotonic() - began,
            timed_out=ended.timed_out,
            oom_killed=struck,
            broken=not alive and not struck,
            stdout=stdout,
            stderr=stderr,
        )

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = WORKSPACE,
        env: Mapping[str, str] | None = None,
        log: str = "/tmp/spawn.log",
    ) -> None:
        with _engine_errors(f"start {argv[0]!r} in the background of {self.name}"):
            made = self._client.api.exec_create(
                self.id,
                ["sh", "-c", _SPAWN, "sh", log, *argv],
                user=USER,
                workdir=cwd,
                environment=dict(env or {}),
                stdout=False,
                stderr=False,
            )
            self._client.api.exec_start(made["Id"], detach=True)

    def read_file(self, path: str, *, max_bytes: int = 1 * MIB) -> bytes:
        with _engine_errors(f"read {path} in {self.name}"):
            try:
                chunks, _ = self._client.api.get_archive(self.id, path, chunk_size=_ARCHIVE_CHUNK_BYTES)
            except NotFound:
                raise FileNotFoundError(path) from None
            with tarfile.open(fileobj=_Readable(chunks), mode="r|") as tar:
                member = tar.next()
                content = tar.extractfile(member) if member and member.isreg() else None
                if content is None:
                    raise FileNotFoundError(f"{path} is no regular file")
                return _tail(content, max_bytes)

    def put_tree(self, source: Path, target: str = WORKSPACE, *, without: frozenset[str] = frozenset()) -> None:
        with _engine_errors(f"copy {source} into {self.name}:{target}"):
            self._client.api.put_archive(self.id, target, tar_stream(source, UID, without=without))

    def get_tree(self, source: str, target: Path, policy: TreePolicy) -> TreeReport:
        if not self._is_running():
            raise InfraError(f"container {self.name} has died, and its workspace with it; there is nothing to copy")
        with _engine_errors(f"copy {source} out of {self.name}"):
            report = copy_out(lambda: self._archive(source), target, policy, root=source)
        return with_sockets(report, self._client, self.id, source, policy) if policy.list_sockets else report

    def _archive(self, source: str) -> Iterator[bytes]:
        try:
            chunks, _ = self._client.api.get_archive(self.id, source, chunk_size=_ARCHIVE_CHUNK_BYTES)
        except NotFound:
            raise FileNotFoundError(source) from None
        try:
            yield from chunks
        finally:
            chunks.close()

    def freeze(self) -> None:
        """Pauses the container; kills it where it cannot be paused (it must not run on in any case)."""
        if self._frozen:
            return
        try:
            self._client.api.pause(self.id)
        except APIError as error:
            log.warning("container %s cannot be paused and is killed: %s", self.name, error.explanation)
            self.kill()
        except requests.RequestException as error:
            raise InfraError(f"the engine was lost when {self.name} was to be frozen: {error}") from error
        self._frozen = True

    def kill(self) -> None:
        try:
            self._client.api.kill(self._id or self.name, signal="SIGKILL")
        except APIError as error:
            if error.response is None or error.response.status_code not in (404, _CONFLICT):
                raise InfraError(f"cannot kill {self.name}: {error.explanation}") from error

    def _state(self) -> dict[str, Any]:
        with _engine_errors(f"look at {self.name}"):
            try:
                return dict(self._client.api.inspect_container(self.id)["State"])
            except NotFound:
                raise InfraError(
                    f"container {self.name} was removed by somebody else; run the same command again"
                ) from None

    def _state_after(self, ended: exec_stream.Ended) -> dict[str, Any]:
        """The container's state. A command that was killed may have died with the whole container, whose
        end the engine learns a moment later."""
        state = self._state()
        until = time.monotonic() + _DEATH_S
        while ended.exit_code == _SIGKILLED and state["Running"] and time.monotonic() < until:
            time.sleep(_DEATH_S / 10)
            state = self._state()
        return state

    def _is_running(self) -> bool:
        return bool(self._state()["Running"])


@contextmanager
def _engine_errors(doing: str) -> Iterator[None]:
    """Turns the engine's failures into an InfraError that says what was being done."""
    try:
        yield
    except APIError as error:
        raise InfraError(f"the engine could not {doing}: {error.explanation or error}") from error
    except requests.RequestException as error:
        raise InfraError(f"the engine did not answer when asked to {doing}: {error}") from error


class _Readable(io.RawIOBase):
    """Chunks as a file that can only be read forward."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (chunk := next(self._chunks, b"")):
            self._rest += chunk
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def _tail(content: Any, max_bytes: int) -> bytes:
    kept: deque[bytes] = deque()
    size = 0
    while chunk := content.read(_ARCHIVE_CHUNK_BYTES):
        kept.append(chunk)
        size += len(chunk)
        while size - len(kept[0]) >= max_bytes:
            size -= len(kept.popleft())
    return b"".join(kept)[-max_bytes:]
