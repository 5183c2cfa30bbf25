"""The two phases of a build, each in a builder container of its own."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.errors import InfraError
from evaluator.build_environment import QUIET, registry_settings
from evaluator.build_faults import Fault, Seen, judge, plain, useful_end
from evaluator.build_node import NODE_PACKAGE, OLD_NODE, NodeFacts, ask_node, node_range
from evaluator.build_output import Output, find_output
from evaluator.build_remedies import build_remedy
from evaluator.install_remedies import remedy
from evaluator.npm_plan import DEVELOPMENT
from evaluator.npm_tools import LEGACY_OPENSSL
from evaluator.records import Strict
from evaluator.serve import PROGRAMS, TOOLS, TOOLS_PATH, WORKSPACE_TAR, programs
from evaluator.serve_plan import ServePlan
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.mirror import MOUNTED_AT, SOCKET, Mirror, MirrorEntry
from sandboxes.sandbox import GIB, MIB, WORKSPACE, Exec, Limits, Mount, Sandbox, SandboxSpec, TreePolicy, TreeTooLarge

PORT = 4873
CARRIED = "/carried"
PACKED = "/tmp/packed"
STEP_S = 120.0
MERGED = ("sh", "-c", 'exec "$@" 2>&1', "sh")
"""Puts a command's two streams into one, in order; the text is constant, the command its arguments."""
PACK = ("sh", "-c", 'mkdir "$1" && exec tar -C "$3" -cf "$2" .', "sh")
LEGACY_OPENSSL_FROM = 17
"""The first major version of Node that knows the switch."""
LOCK_BYTES = 64 * MIB
NPM_LOCK = "package-lock.json"

PhaseOutcome = Literal["ok", "failed", "timeout", "out_of_memory", "container_lost"]


class PhaseRecord(Strict):
    """One command of a build."""

    phase: Literal["install", "build"]
    command: list[str]
    exit_code: int | None
    duration_s: float
    log: str
    """File name of its output in the build's log folder."""
    outcome: PhaseOutcome = "ok"
    deadline_s: float = 0.0
    """What it had of its phase's time."""


@dataclass(frozen=True)
class BuildLimits:
    """What a build may take. Its workspace and its packed copy count as its memory."""

    install_s: float = 300.0
    build_s: float = 300.0
    container: Limits = field(
        default_factory=lambda: Limits(
            memory_bytes=4 * GIB, pids=1024, workspace_bytes=2 * GIB, home_bytes=1 * GIB, tmp_bytes=2 * GIB
        )
    )


class PhaseFailed(Exception):
    """A phase did not succeed; `tail` is the useful end of its log."""

    def __init__(self, fault: Fault, tail: str) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.tail = tail


@dataclass
class Workshop:
    """One build: its plan, its scratch folder on the host, and what has been recorded of it so far."""

    plan: ServePlan
    run: str
    case: str
    mirror: Mirror | None
    scratch: Path
    logs: Path
    limits: BuildLimits
    before: str | None = None
    lock: Path | None = None
    records: list[PhaseRecord] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    node: NodeFacts | None = None

    @property
    def root(self) -> str:
        return WORKSPACE if self.plan.root == "." else f"{WORKSPACE}/{self.plan.root}"

    def install(self, tree: Path) -> Path:
        """Installs into a copy of `tree`; returns the folder with the packed workspace. Raises PhaseFailed."""
        if self.mirror is None:
            raise InfraError(f"{self.case}: its packages must be installed, and no registry mirror is running")
        client = secrets.token_hex(6)
        with self._container([self.mirror.mount()]) as box:
            box.put_tree(tree)
            self._begin_with_lock(box)
            forward = ["python3", "-I", f"{PROGRAMS}/forward.py", "--port", str(PORT)]
            box.spawn([*forward, "--socket", f"{MOUNTED_AT}/{SOCKET}"], cwd="/", log="/tmp/forward.log")
            self.node = self._node(box)
            if self.node.fits is False:
                self._fetch_node(box, client)
            if self.plan.manager:
                self._fetch(box, client, self.plan.manager)
            self._install_with_remedies(box, client, self.plan.install, self.root)
            self._keep_lock(box)
            for folder, command in self.plan.also.items():
                self._install_with_remedies(box, client, command, f"{self.root}/{folder}")
            return self._pack(box, "installed")

    def build(self, tree: Path, installed: Path | None, app: Path) -> ServePlan:
        """Builds and copies the result to the fresh folder `app`; returns the plan as it turned out.

        Raises PhaseFailed.
        """
        plan = self.plan
        with self._container([Mount(installed, CARRIED)] if installed else []) as box:
            if installed:
                self._step(box, ["tar", "-xf", f"{CARRIED}/{WORKSPACE_TAR}", "-C", WORKSPACE])
            else:
                box.put_tree(tree)
            self.node = self.node or self._node(box)
            began = time.time()  # the container has this machine's clock
            if plan.build:
                self._run_build(box)
            if plan.start:
                self._pack(box, app.name).rename(app)
                return plan
            output = find_output(box, plan, began, self.scratch)
            if output is None:
                return self._without_page(box, app)
            return self._take_out(box, output, app)

    def _take_out(self, box: Sandbox, output: Output, app: Path) -> ServePlan:
        """Copies the built pages to `app`; returns the plan with their folder."""
        self.flags += [output.flag] if output.flag else []
        left_out = {"node_modules", TOOLS.rpartition("/")[2]} if output.flag == "page_in_sources" else set()
        policy = TreePolicy(leave_out=frozenset(left_out))
        place = WORKSPACE if output.folder == "." else f"{WORKSPACE}/{output.folder}"
        try:
            box.get_tree(place, app, policy)
        except TreeTooLarge as error:
            raise PhaseFailed(Fault("build_failed", "output_too_large", str(error)), "") from error
        return self.plan.model_copy(update={"output": output.folder})

    def _without_page(self, box: Sandbox, app: Path) -> ServePlan:
        """What is left when a build wrote no page: a script that serves one, else a failure."""
        plan = self.plan
        if not plan.fallback:
            reason = f"the build ended well but wrote no HTML page, neither into {plan.output}/ nor elsewhere"
            log = plain((self.logs / self.records[-1].log).read_bytes())
            raise PhaseFailed(Fault("build_failed", "no_output", reason), useful_end(log))
        self.flags.append("served_by_script")
        self._pack(box, app.name).rename(app)
        env = plan.env if plan.fallback[-1] in {"start", "preview"} else DEVELOPMENT | plan.env
        return plan.model_copy(update={"start": plan.fallback, "output": None, "spa_fallback": False, "env": env})

    @contextmanager
    def _container(self, mounts: Sequence[Mount]) -> Iterator[Sandbox]:
        with programs() as own:
            spec = SandboxSpec(
                role="builder",
                image=image_tag("base"),
                run=self.run,
                case=self.case,
                limits=self.limits.container,
                mounts=[own, *mounts],
                env=QUIET,
            )
            with DockerSandbox(spec) as box:
                yield box

    def _install_with_remedies(self, box: Sandbox, client: str, planned: Sequence[str], folder: str) -> None:
        assert self.mirror is not None
        command = list(planned)
        env = self._registry(client)
        left = self.limits.install_s
        answered = len(self.mirror.entries(client))  # those before were to fetch tools
        while True:
            if command[:2] == ["npm", "install"] and self.before:
                env["npm_config_before"] = self.before
            ended, log = self._run(box, "install", command, env, left, folder)
            answers = self.mirror.entries(client)[answered:]
            if ended.ok:
                return
            answered += len(answers)
            left -= ended.duration_s
            away = any(answer.marker == "outage" for answer in answers)
            hopeless = away or ended.timed_out or ended.oom_killed or left <= 0
            then = None if hopeless else remedy(command, log)
            if then is None:
                raise self._failed("install", command, ended, log, answers)
            command = then.command
            self.flags.append(then.flag)

    def _registry(self, client: str) -> dict[str, str]:
        return registry_settings(f"http://127.0.0.1:{PORT}/~{client}/")

    def _fetch(self, box: Sandbox, client: str, package: str) -> None:
        """Installs a tool that the application needs for its own installation. Raises PhaseFailed."""
        assert self.mirror is not None
        command = ["npm", "install", "--prefix", TOOLS, package]
        ended, log = self._run(box, "install", command, self._registry(client), self.limits.install_s)
        if not ended.ok:
            raise self._failed("install", command, ended, log, self.mirror.entries(client))

    def _fetch_node(self, box: Sandbox, client: str) -> None:
        """The Node that is asked for, with an npm that runs on it; the builder's own where there is no such Node."""
        try:
            self._fetch(box, client, f"{NODE_PACKAGE}@{node_range(self.plan.node)}")
        except PhaseFailed as failed:
            if failed.fault.outcome == "infra_error":
                raise
            return
        self.node = self._node(box)
        self.flags.append("node_fetched")
        if (
            self.node.major < LEGACY_OPENSSL_FROM
            and self.plan.env.get("NODE_OPTIONS") == LEGACY_OPENSSL["NODE_OPTIONS"]
        ):
            env = {name: value for name, value in self.plan.env.items() if name != "NODE_OPTIONS"}
            self.plan = self.plan.model_copy(update={"env": env})
        npm = next((npm for below, npm in OLD_NODE if self.node.major < below), None)
        if npm:
            self._fetch(box, client, npm)

    def _run_build(self, box: Sandbox) -> None:
        command, env, left = list(self.plan.build), dict(self.plan.env), self.limits.build_s
        while True:
            ended, log = self._run(box, "build", command, env, left)
            if ended.ok:
                return
            left -= ended.duration_s
            then = None if ended.timed_out or ended.oom_killed or left <= 0 else build_remedy(command, env, log)
            if then is None:
                raise self._failed("build", command, ended, log, ())
            command, env = then.command, then.env
            self.flags.append(then.flag)

    def _run(
        self,
        box: Sandbox,
        phase: Literal["install", "build"],
        command: list[str],
        env: dict[str, str],
        deadline_s: float,
        folder: str | None = None,
    ) -> tuple[Exec, str]:
        """Runs one command in `folder` (the plan's root), its output kept as a log. Returns it without escapes."""
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{len(self.records) + 1}-{phase}.log"
        env = {"PATH": TOOLS_PATH} | env
        ended = box.exec([*MERGED, *command], deadline_s=deadline_s, cwd=folder or self.root, env=env, stdout=log)
        self.records.append(
            PhaseRecord(
                phase=phase,
                command=command,
                exit_code=ended.exit_code,
                duration_s=round(ended.duration_s, 3),
                log=log.name,
                outcome=_outcome(ended),
                deadline_s=round(deadline_s, 1),
            )
        )
        return ended, plain(log.read_bytes())

    def _failed(
        self,
        phase: Literal["install", "build"],
        command: list[str],
        ended: Exec,
        log: str,
        answers: Sequence[MirrorEntry],
    ) -> PhaseFailed:
        deadline_s = self.limits.install_s if phase == "install" else self.limits.build_s
        memory_bytes = self.limits.container.memory_bytes
        fault = judge(Seen(phase, command, ended, log, deadline_s, memory_bytes, answers))
        if fault.outcome == "build_failed" and self.node and self.node.fits is False:
            asks = f"it asks for Node {self.plan.node}, the builder has {self.node.version}"
            fault = Fault("build_failed", "env_unsupported", f"{asks}; {fault.reason}")
        return PhaseFailed(fault, useful_end(log))

    def _step(self, box: Sandbox, command: list[str]) -> None:
        """A command of ours; when it fails the limits are too small, which is the application's size."""
        output = self.scratch / "step.log"
        ended = box.exec([*MERGED, *command], deadline_s=STEP_S, cwd=WORKSPACE, stdout=output)
        if not ended.ok:
            raise self._failed("build", command, ended, plain(output.read_bytes()), ())

    def _pack(self, box: Sandbox, name: str) -> Path:
        self._step(box, [*PACK, PACKED, f"{PACKED}/{WORKSPACE_TAR}", WORKSPACE])
        packed = self.scratch / name
        box.get_tree(PACKED, packed, TreePolicy(max_file_bytes=2 * GIB, max_bytes=2 * GIB))
        return packed

    def _keep_lock(self, box: Sandbox) -> None:
        """Where npm resolved versions itself, what it came to is kept: beside the logs, and with what was built."""
        if self.records[-1].command[1] == "install" and self.plan.package_manager == "npm":
            try:
                lock = box.read_file(f"{self.root}/{NPM_LOCK}", max_bytes=LOCK_BYTES)
            except FileNotFoundError:
                return
            for folder in (self.logs, self.scratch):
                (folder / NPM_LOCK).write_bytes(lock)

    def _begin_with_lock(self, box: Sandbox) -> None:
        """Gives a tree without a lock the one it is to begin with, so that npm resolves only what that lacks."""
        if self.plan.lock or self.plan.package_manager != "npm" or not (self.lock and self.lock.is_file()):
            return
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            shutil.copyfile(self.lock, Path(folder) / NPM_LOCK)
            box.put_tree(Path(folder), self.root)
        self.flags.append("lock_of_start")

    def _node(self, box: Sandbox) -> NodeFacts:
        return ask_node(box, self.plan.node, self.scratch, TOOLS_PATH)


def _outcome(ended: Exec) -> PhaseOutcome:
    if ended.ok:
        return "ok"
    if ended.broken:
        return "container_lost"
    return "timeout" if ended.timed_out else "out_of_memory" if ended.oom_killed else "failed"
