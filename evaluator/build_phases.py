"""The two phases of a build, each in a builder container of its own."""

from __future__ import annotations

import json
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
from evaluator.build_faults import Fault, Seen, judge, plain, useful_end
from evaluator.install_remedies import remedy
from evaluator.npm_plan import LEGACY_OPENSSL
from evaluator.records import Strict
from evaluator.serve import PROGRAMS, WORKSPACE_TAR, programs
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
LOCK_BYTES = 64 * MIB
NPM_LOCK = "package-lock.json"

QUIET = {
    "BROWSER": "none",
    "NO_COLOR": "1",
    "FORCE_COLOR": "0",
    "NEXT_TELEMETRY_DISABLED": "1",
    "ASTRO_TELEMETRY_DISABLED": "1",
    "NG_CLI_ANALYTICS": "false",
    "DISABLE_OPENCOLLECTIVE": "1",
    "HUSKY": "0",
    "PUPPETEER_SKIP_DOWNLOAD": "1",
    "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    "CYPRESS_INSTALL_BINARY": "0",
    "ELECTRON_SKIP_BINARY_DOWNLOAD": "1",
}
"""No downloads that a page does not need, no telemetry, no colours. CI stays unset: with it create-react-app
turns every warning into a failure."""
NPM = {
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_progress": "false",
    "npm_config_update_notifier": "false",
    "npm_config_fetch_retries": "0",  # the mirror tries again by itself
    "npm_config_fetch_timeout": "200000",
    "npm_config_omit_lockfile_registry_resolved": "true",
    "npm_config_replace_registry_host": "always",  # locks name the registry of whoever wrote them
}


class PhaseRecord(Strict):
    """One command of a build."""

    phase: Literal["install", "build"]
    command: list[str]
    exit_code: int | None
    duration_s: float
    log: str
    """File name of its output in the build's log folder."""


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


class NodeFacts(Strict):
    """Node in the builder image, and whether it is what the application asks for (None: it asks nothing)."""

    version: str
    fits: bool | None = None


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
            self._install_with_remedies(box, client)
            self._keep_lock(box)
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
            output = self._output(box, began)
            try:
                box.get_tree(f"{WORKSPACE}/{output}", app, TreePolicy())
            except TreeTooLarge as error:
                raise PhaseFailed(Fault("build_failed", "output_too_large", str(error)), "") from error
            return plan.model_copy(update={"output": output})

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

    def _install_with_remedies(self, box: Sandbox, client: str) -> None:
        assert self.mirror is not None
        command = list(self.plan.install)
        registry = f"http://127.0.0.1:{PORT}/~{client}/"
        env = NPM | {"npm_config_registry": registry, "pnpm_config_registry": registry}
        left = self.limits.install_s
        answered = 0
        while True:
            if command[:2] == ["npm", "install"] and self.before:
                env["npm_config_before"] = self.before
            ended, log = self._run(box, "install", command, env, left)
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

    def _run_build(self, box: Sandbox) -> None:
        command = list(self.plan.build)
        ended, log = self._run(box, "build", command, self.plan.env, self.limits.build_s)
        if not ended.ok and "ERR_OSSL_EVP_UNSUPPORTED" in log and not self.plan.env and not ended.timed_out:
            self.flags.append("openssl_legacy")
            ended, log = self._run(box, "build", command, LEGACY_OPENSSL, self.limits.build_s)
        if not ended.ok:
            raise self._failed("build", command, ended, log, ())

    def _run(
        self,
        box: Sandbox,
        phase: Literal["install", "build"],
        command: list[str],
        env: dict[str, str],
        deadline_s: float,
    ) -> tuple[Exec, str]:
        """Runs one command in the application's folder, its output kept as a log. Returns it without escapes."""
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{len(self.records) + 1}-{phase}.log"
        ended = box.exec([*MERGED, *command], deadline_s=deadline_s, cwd=self.root, env=env, stdout=log)
        self.records.append(
            PhaseRecord(
                phase=phase,
                command=command,
                exit_code=ended.exit_code,
                duration_s=round(ended.duration_s, 3),
                log=log.name,
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
        """Asks npm's own semver, so that ranges mean what npm means by them."""
        script = (
            "const [range] = process.argv.slice(1); let fits = null;"
            "try { if (range) fits = require('/opt/npm/node_modules/semver').satisfies(process.version, range) }"
            "catch {} console.log(JSON.stringify({version: process.version, fits}))"
        )
        told = self.scratch / "node.json"
        ended = box.exec(["node", "-e", script, self.plan.node or ""], deadline_s=STEP_S, cwd="/", stdout=told)
        if not ended.ok:
            raise InfraError(f"node does not run in the builder image: {ended}")
        return NodeFacts.model_validate(json.loads(told.read_bytes()))

    def _output(self, box: Sandbox, began: float) -> str:
        """The folder with the built pages: as planned when the build wrote there, else where it did write."""
        planned = self.plan.output or "dist"
        pages = self._pages_written(box, began)
        if any(page.startswith(f"{planned}/") for page in pages):
            return planned
        if pages:
            self.flags.append("output_elsewhere")
            return min(pages, key=lambda page: (page.count("/"), page)).rpartition("/")[0]
        reason = f"the build ended well but wrote no HTML page, neither into {planned}/ nor elsewhere"
        log = plain((self.logs / self.records[-1].log).read_bytes())
        raise PhaseFailed(Fault("build_failed", "no_output", reason), useful_end(log))

    def _pages_written(self, box: Sandbox, began: float) -> list[str]:
        """HTML files below the workspace that are newer than `began` (Unix time), index pages if any."""
        told = self.scratch / "pages"
        command = ["find", WORKSPACE, "-name", "node_modules", "-prune", "-o", "-type", "f", "-name", "*.html"]
        box.exec([*command, "-newermt", f"@{began:.3f}", "-printf", "%P\\0"], deadline_s=STEP_S, cwd="/", stdout=told)
        pages = told.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
        below = [page for page in pages if "/" in page]
        return [page for page in below if page.endswith("/index.html")] or below
