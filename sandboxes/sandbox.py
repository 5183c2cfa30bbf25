"""The seam between what we run and where it runs: a small protocol that every back end fulfils.

A `Sandbox` owns exactly one container and whatever volumes were made for it; leaving the `with` block
kills and removes them. It does not own directories that were mounted into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from bench.tree import Entry
from sandboxes.limits_hit import LimitHit

MIB = 1024 * 1024
GIB = 1024 * MIB

Role = Literal["solver", "builder", "app", "browser", "canary", "relay"]
"""What a container is for; it becomes the label `cdb.role` and picks the seccomp profile."""

WORKSPACE = "/workspace"
"""Where the application lies in every container; writable, owned by the container's user."""
TMP = "/tmp"
HOME = "/home/agent"
"""The container user's home: writable, outside the workspace."""


_SIGKILLED = 128 + 9


@dataclass(frozen=True)
class Limits:
    """What one container may take from the machine."""

    memory_bytes: int = 4 * GIB
    cpus: float = 2.0
    pids: int = 512
    workspace_bytes: int = 2 * GIB
    home_bytes: int = 512 * MIB
    tmp_bytes: int = 512 * MIB
    shm_bytes: int = 256 * MIB
    inodes: int = 400_000
    """Files, directories and links, in each of workspace, home and /tmp; one costs about 1 KiB of memory."""


@dataclass(frozen=True)
class Mount:
    """A host directory of ours shown inside the container. Read-only unless it holds a socket directory."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class SandboxSpec:
    """Everything that decides how a container is made."""

    role: Role
    image: str
    run: str
    """Run the container belongs to: label `cdb.run`."""
    case: str = ""
    attempt: int = 1
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    network_of: str | None = None
    """Id of the container whose network namespace is shared; None means no network at all."""
    network: str | None = None
    """A network to join instead: only the fallback's own (sandboxes/relay.py) and, for its relay, the engine's."""


@dataclass(frozen=True)
class Exec:
    """How one command ended.

    `exit_code` is None when the deadline passed (`timed_out`: the container is frozen) or the container
    died under it (`broken`, or `oom_killed` when the kernel's memory killer did it). Output lies in the
    two files, bounded: head, tail, and a line that counts what was dropped between. `limits` names each
    limit that was reached while it ran, however it ended.
    """

    exit_code: int | None
    duration_s: float
    timed_out: bool = False
    oom_killed: bool = False
    broken: bool = False
    limits: tuple[LimitHit, ...] = ()
    stdout: Path | None = None
    stderr: Path | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def wrecked(self) -> str:
        """How the command made its own container useless, or nothing: it killed itself with all others, or /tmp is
        full, where most programs then fail in odd ways."""
        if self.exit_code == _SIGKILLED and not self.oom_killed:
            return "its main process was killed from inside (SIGKILL)"
        return "; ".join(str(hit) for hit in self.limits if hit.place == TMP)


@dataclass(frozen=True)
class Refused:
    """A tree member that was not copied as it was, and why. `path` is as it came, undecodable bytes as surrogates."""

    path: str
    reason: str


@dataclass(frozen=True)
class LeftOutPart:
    """A part of a tree that was left out by policy: how many members that are no folders, of how many bytes."""

    path: str
    reason: str
    files: int
    bytes: int


@dataclass(frozen=True)
class TreeReport:
    """What came out of a container, each list in path order.

    `entries` is the canonical list (bench.tree) of what was written, hashed on the way; `bytes` counts its files'
    content. `altered`: members that were kept in another form (a setuid bit taken off, an absolute link made
    relative).
    """

    files: int
    bytes: int
    entries: tuple[Entry, ...] = ()
    left_out: tuple[LeftOutPart, ...] = ()
    refused: tuple[Refused, ...] = ()
    altered: tuple[Refused, ...] = ()


@dataclass(frozen=True)
class TreePolicy:
    """Caps for copying a tree out of a container, and the names that are left out (and recorded)."""

    max_bytes: int = 2 * GIB
    max_file_bytes: int = 1 * GIB
    max_files: int = 100_000
    max_path_bytes: int = 1024
    max_depth: int = 64
    leave_out: frozenset[str] = frozenset()
    """Directory names left out wherever they stand (for example `node_modules`)."""
    keep: frozenset[str] = frozenset()
    """Relative POSIX paths kept although they bear or lie under a name of `leave_out`: the start had them, or
    something that is kept refers to them. Names below them are judged anew."""
    never: frozenset[str] = frozenset()
    """Names left out whatever bears them, a file or link too, and whatever `keep` says (`.git`)."""
    list_sockets: bool = False
    """Name sockets among what was refused, which costs a back end whose archives lack them a second look."""


class TreeTooLarge(Exception):
    """The tree passed a cap of its `TreePolicy`; the message names the cap and the member."""


class Sandbox(Protocol):
    """One disposable container. Every wait inside has an outer deadline; nothing here blocks for ever."""

    @property
    def id(self) -> str: ...

    def __enter__(self) -> Sandbox: ...

    def __exit__(self, *exc: object) -> None:
        """Kill and remove the container and its volumes, whatever state it is in."""

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
        """Run `argv` to its end. Returns when the main process exits, though children may still hold its
        output open. At the deadline the whole container is frozen, not killed: what lies in its tmpfs
        volumes can still be copied out, and nothing in it runs any more. stdin is the file or nothing (EOF).
        `stop` is asked about once a second; True ends the run as the deadline does."""

    def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str = WORKSPACE,
        env: Mapping[str, str] | None = None,
        log: str = "/tmp/spawn.log",
    ) -> None:
        """Start `argv` in the background inside the container, output to `log` inside it.

        Returns before the command has begun: `log` may not be there yet."""

    def read_file(self, path: str, *, max_bytes: int = 1 * MIB) -> bytes:
        """The last `max_bytes` of a file inside the container, through the archive API.

        Raises FileNotFoundError."""

    def names_asked(self) -> tuple[str, ...]:
        """Names that were looked up inside, in order, each once: every look-up fails. Works on a frozen container."""

    def put_tree(self, source: Path, target: str = WORKSPACE, *, without: frozenset[str] = frozenset()) -> None:
        """Copy the content of host directory `source` into directory `target`, owned by the container's user,
        but for whatever bears one of the names `without`.

        Streams; links are kept as links."""

    def get_tree(self, source: str, target: Path, policy: TreePolicy) -> TreeReport:
        """Copy directory `source` out into the fresh host directory `target`, member by member under `policy`.

        Works on a frozen container and when nothing inside can be executed any more. Raises TreeTooLarge."""

    def freeze(self) -> None:
        """Stop every process in the container where it is, so that nothing can change under a copy."""

    def keep(self) -> None:
        """On leaving the block, leave the container frozen and in place; it is removed by `cdb clean --kept`."""

    def kill(self) -> None:
        """SIGKILL everything. Volumes on tmpfs are gone after this: copy trees out first."""
