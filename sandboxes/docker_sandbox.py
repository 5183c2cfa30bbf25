"""The Docker back end of the `Sandbox` protocol."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, NotFound

from bench.errors import InfraError
from sandboxes import cgroup, exec_stream, limits_hit
from sandboxes.archive_file import ARCHIVE_CHUNK_BYTES, file_tail
from sandboxes.engine import engine
from sandboxes.hardening import UID, USER, creation, records_names
from sandboxes.limits_hit import LimitHit
from sandboxes.name_sink import names_in
from sandboxes.owner import KEPT
from sandboxes.sandbox import MIB, WORKSPACE, Exec, SandboxSpec, TreePolicy, TreeReport
from sandboxes.transient import again
from sandboxes.tree_in import tar_stream
from sandboxes.tree_out import copy_out
from sandboxes.tree_sockets import with_sockets

log = logging.getLogger(__name__)

_CONFLICT = 409
_SIGKILLED = 128 + 9
_DEATH_S = 0.5
_FREEZING_S = 10.0
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
        try:
            sandbox.kill()
        except InfraError as error:  # the others must be killed all the same
            log.warning("%s; it is reaped later", error)


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
        self._kept = False
        self._volumes: dict[str, Path] = {}

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
                again(lambda: self._client.api.start(self.id))
            if _stopping.is_set():
                raise InfraError("the run is being stopped, so no container is started any more")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._kept and not _stopping.is_set():
            self._leave_behind()
        else:
            self._remove()

    @property
    def _client(self) -> docker.DockerClient:
        return engine()

    def _create(self) -> str:
        """Creates the container once, however often the answer is lost: the name is the idempotency key."""
        wanted = creation(self.spec, self.name)

        def create() -> str:
            try:
                return wanted.create(self._client.api)
            except APIError as error:
                if error.response is None or error.response.status_code != _CONFLICT:
                    raise
                return str(self._client.api.inspect_container(self.name)["Id"])

        return again(create)

    def _remove(self) -> None:
        """Kills and removes by name, so that a container whose creation was never answered goes too.

        A failure is logged, not raised: it must not hide what ended the block, and the container's owner
        label lets it be reaped later.
        """
        with _open_lock:
            _open.discard(self)
        try:
            again(lambda: self._client.api.remove_container(self.name, force=True, v=True))
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
        stop: Callable[[], bool] | None = None,
    ) -> Exec:
        began = time.monotonic()
        before = cgroup.counts(self.id)
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
                stop=stop,
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
        limits = self._limits_hit(before, state, ended.exit_code, (stderr, stdout))
        struck = any(hit.kind == "memory" and not hit.told for hit in limits)
        return Exec(
            exit_code=ended.exit_code if alive else None,
            duration_s=time.monotonic() - began,
            timed_out=ended.timed_out,
            oom_killed=struck,
            broken=not alive and not struck,
            limits=limits,
            stdout=stdout,
            stderr=stderr,
        )

    def _limits_hit(
        self, before: cgroup.Counts, state: dict[str, Any], exit_code: int | None, outputs: Sequence[Path | None]
    ) -> tuple[LimitHit, ...]:
        counted = limits_hit.counted(before, cgroup.counts(self.id), flagged_oom=bool(state["OOMKilled"]))
        hits = (*counted, *limits_hit.full(self._volumes))
        return hits or (limits_hit.told(*outputs) if exit_code else ())

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
                chunks, _ = again(lambda: self._client.api.get_archive(self.id, path, ARCHIVE_CHUNK_BYTES))
            except NotFound:
                raise FileNotFoundError(path) from None
            return file_tail(chunks, path, max_bytes)

    def names_asked(self) -> tuple[str, ...]:
        if not records_names(self.spec):
            return ()
        with _engine_errors(f"read the names asked for in {self.name}"):
            told = again(lambda: self._client.api.logs(self.id, stdout=True, stderr=False))
        return names_in(told)

    def put_tree(self, source: Path, target: str = WORKSPACE, *, without: frozenset[str] = frozenset()) -> None:
        with _engine_errors(f"copy {source} into {self.name}:{target}"):
            again(lambda: self._client.api.put_archive(self.id, target, tar_stream(source, UID, without=without)))

    def get_tree(self, source: str, target: Path, policy: TreePolicy) -> TreeReport:
        if not self._is_running():
            raise InfraError(f"container {self.name} has died, and its workspace with it; there is nothing to copy")
        with _engine_errors(f"copy {source} out of {self.name}"):
            # a copy that breaks off takes its target along, so it can be made again
            report = again(lambda: self._copy_out(source, target, policy))
        if not policy.list_sockets:
            return report
        return with_sockets(report, self._client, self.id, source, policy, self._volumes.get(source))

    def _copy_out(self, source: str, target: Path, policy: TreePolicy) -> TreeReport:
        """Ends every stream it opened: while one is open, the engine lets nothing else happen to the container."""
        with ExitStack() as opened:
            return copy_out(lambda: opened.enter_context(closing(self._archive(source))), target, policy, root=source)

    def _archive(self, source: str) -> Generator[bytes, None, None]:
        try:
            chunks, _ = self._client.api.get_archive(self.id, source, chunk_size=ARCHIVE_CHUNK_BYTES)
        except NotFound:
            raise FileNotFoundError(source) from None
        try:
            yield from chunks
        finally:
            chunks.close()

    def freeze(self) -> None:
        """Pauses the container; kills it where it cannot be paused (it must not run on in any case).

        A container full of busy processes is often not all still within the moment the engine gives it
        (measured with a fork bomb under a processor limit), so it is asked again for a while.
        """
        if self._frozen:
            return
        until = time.monotonic() + _FREEZING_S
        while not self._frozen:
            try:
                again(lambda: self._client.api.pause(self.id))
                self._frozen = True
            except APIError as error:
                told = str(error.explanation)
                if time.monotonic() < until and "unable to freeze" in told:
                    continue
                if "already paused" not in told:
                    log.warning("container %s cannot be paused and is killed: %s", self.name, told)
                    self.kill()
                self._frozen = True
            except requests.RequestException as error:
                raise InfraError(f"the engine was lost when {self.name} was to be frozen: {error}") from error

    def keep(self) -> None:
        self._kept = True

    def _leave_behind(self) -> None:
        """Renames the frozen container, which is how reaping knows it is wanted."""
        with _open_lock:
            _open.discard(self)
        self.freeze()
        kept = f"{KEPT}{self.spec.case}-{self.name[-8:]}"
        with _engine_errors(f"keep {self.name}"):
            self._client.api.rename(self.id, kept)
        log.warning(
            "kept %s: `docker unpause %s`, then `docker exec -it -u %s %s bash`; `cdb clean --kept` removes it",
            kept, kept, USER, kept,
        )  # fmt: skip

    def kill(self) -> None:
        try:
            self._client.api.kill(self._id or self.name, signal="SIGKILL")
        except APIError as error:
            if error.response is None or error.response.status_code not in (404, _CONFLICT):
                raise InfraError(f"cannot kill {self.name}: {error.explanation}") from error
        except requests.RequestException as error:
            raise InfraError(f"the engine was lost when {self.name} was to be killed: {error}") from error

    def _state(self) -> dict[str, Any]:
        with _engine_errors(f"look at {self.name}"):
            try:
                told = again(lambda: self._client.api.inspect_container(self.id))
            except NotFound:
                raise InfraError(
                    f"container {self.name} was removed by somebody else; run the same command again"
                ) from None
        self._volumes = {m["Destination"]: Path(m["Source"]) for m in told["Mounts"] if m["Type"] == "volume"}
        return dict(told["State"])

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
