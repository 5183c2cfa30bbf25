"""One conversation's command line: its container, its line to the model, and our tools beside it.

`claude -p` runs until it has no tool left to call; a further message continues its session in a new process of the
same container. The container has no network, a clean home and none of the submission's files.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from bench.errors import InfraError
from evaluator.judges.model.chat import ToolSpec
from evaluator.judges.model.claude_cli import bridge
from evaluator.judges.model.claude_cli.tool_server import SERVER, ToolRequest, ToolServer
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import TrialPolicy
from sandboxes.gateway.records import TrialSummary
from sandboxes.images import image_tag
from sandboxes.packs.store import Pack
from sandboxes.sandbox import GIB, HOME, MIB, Exec, Limits, Mount, SandboxSpec
from sandboxes.socket_folder import socket_folder

JUDGE = "/judge"
LIMITS = Limits(memory_bytes=2 * GIB, cpus=1.0, pids=256, workspace_bytes=64 * MIB, home_bytes=256 * MIB)
LONGEST_S = 24 * 3600.0
"""Outer deadline of a process; what really ends it is the conversation's own patience and caps."""
SETTLE_S = 5.0
"""A tool may be called while the model's answer is still streaming: its usage is complete a moment later."""
QUIET = {
    "CLAUDE_CONFIG_DIR": f"{HOME}/.claude",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",  # `@path` in a request is no order to read a file
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_MCP_TASK_BACKGROUND": "1",  # a slow witness is waited for, not put aside
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # a refused call is not sent again in another form
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_AUTO_COMPACT": "1",  # what does not fit is cut by our own rule, and the cut is marked
    "ENABLE_TOOL_SEARCH": "false",  # every tool is there from the first call
    "MCP_TIMEOUT": "60000",
    "MCP_TOOL_TIMEOUT": "1200000",
    "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "1200000",
    "MAX_MCP_OUTPUT_TOKENS": "500000",
    "IS_SANDBOX": "1",
    "TERM": "dumb",
}


class Ended(NamedTuple):
    """The process ended. `event` is its last `result` event, None without one; `exec` how it ended."""

    exec: Exec
    event: dict[str, Any] | None
    errors: str


class Broke(NamedTuple):
    """The engine failed under the process."""

    error: InfraError


class Session:
    """Made for one label. Leaving it kills the container; `usage` is final then."""

    def __init__(
        self, gateway: Gateway, policy: TrialPolicy, pack: Pack, model: str, records: Path, env: dict[str, str]
    ) -> None:
        """Raises InfraError and, for a missing key, UsageError."""
        self._model, self._pack, self._id = model, pack, str(uuid.uuid4())
        self._events: SimpleQueue[ToolRequest | Ended | Broke] = SimpleQueue()
        self._held = contextlib.ExitStack()
        self._runs = 0
        self._tools: ToolServer | None = None
        self._thread: threading.Thread | None = None
        try:
            self._place = self._held.enter_context(socket_folder("judge"))
            self.trial = self._held.enter_context(gateway.open(policy, records))
            mounts = [pack.mount, self.trial.mount, Mount(self._place, JUDGE, read_only=True)]
            spec = SandboxSpec(
                role="solver", image=image_tag("solver"), run="judge", case=policy.trial[:200], limits=LIMITS,
                env={**QUIET, **env, **self.trial.env("anthropic")}, mounts=mounts,
            )  # fmt: skip
            self._sandbox = self._held.enter_context(DockerSandbox(spec))
            self._sandbox.spawn(self.trial.forward_argv, cwd="/", log="/tmp/gateway.log")
        except BaseException:
            self._held.close()
            raise

    def begin(self, system: str, content: list[dict[str, Any]], tools: Sequence[ToolSpec]) -> None:
        """Start the conversation with one user message of Anthropic content blocks."""
        shutil.copyfile(bridge.__file__, self._place / "bridge.py")
        command = {"command": "python3", "args": ["-I", f"{JUDGE}/bridge.py", f"{JUDGE}/tools.sock"]}
        servers = {SERVER: {"type": "stdio", "alwaysLoad": True, **command}} if tools else {}
        self._write("mcp.json", json.dumps({"mcpServers": servers}))
        self._write("system.md", system)
        if tools:
            self._tools = ToolServer(self._place / "tools.sock", tools, self._events)
        self._run(content, ["--session-id", self._id])

    def go_on(self, content: list[dict[str, Any]]) -> None:
        """A further user message, after the process has ended."""
        self._run(content, ["--resume", self._id])

    def answer(self, call: str, content: list[dict[str, Any]], *, error: bool = False) -> None:
        assert self._tools is not None
        self._tools.answer(call, content, error=error)

    def next(self, deadline_s: float, stopped: Callable[[], bool]) -> ToolRequest | Ended | None:
        """What the command line does next; None at the deadline or when stopped. Raises InfraError."""
        ends = time.monotonic() + deadline_s
        while time.monotonic() < ends and not stopped():
            with contextlib.suppress(Empty):
                event = self._events.get(timeout=0.2)
                if isinstance(event, Broke):
                    raise event.error
                return event
        return None

    def usage(self) -> TrialSummary:
        """What the conversation cost so far, calls under way waited for."""
        ends = time.monotonic() + SETTLE_S
        while (told := self.trial.summary()).in_flight and time.monotonic() < ends:
            time.sleep(0.02)
        return told

    def close(self) -> TrialSummary:
        """Kill what runs, give everything back. The sum includes a call that was cut by this."""
        try:
            self._sandbox.kill()
            if self._thread:
                self._thread.join(30)
            return self.trial.close()
        finally:
            if self._tools:
                self._tools.close()
            self._held.close()

    def _run(self, content: list[dict[str, Any]], session: list[str]) -> None:
        self._runs += 1
        message = {"type": "user", "message": {"role": "user", "content": content}}
        stdin = self._write(f"message-{self._runs}.jsonl", json.dumps(message) + "\n")
        self._thread = threading.Thread(
            target=self._watch, args=(self._argv(session), stdin, self.trial.folder), name="claude", daemon=True
        )
        self._thread.start()

    def _argv(self, session: list[str]) -> list[str]:
        return [
            self._pack.program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
            "--model", self._model, "--system-prompt-file", f"{JUDGE}/system.md", *session,
            "--tools", "", "--allowedTools", f"mcp__{SERVER}", "--permission-mode", "dontAsk",
            "--strict-mcp-config", "--mcp-config", f"{JUDGE}/mcp.json",
            "--setting-sources", "", "--disable-slash-commands",
        ]  # fmt: skip

    def _watch(self, argv: list[str], stdin: Path, folder: Path) -> None:
        out, errors = folder / f"claude-{self._runs}.jsonl", folder / f"claude-{self._runs}.stderr"
        try:
            done = self._sandbox.exec(argv, deadline_s=LONGEST_S, stdin=stdin, stdout=out, stderr=errors)
        except InfraError as error:
            self._events.put(Broke(error))
            return
        said = errors.read_text(encoding="utf-8", errors="replace")[-2000:] if errors.is_file() else ""
        self._events.put(Ended(done, last_result(out), said))

    def _write(self, name: str, text: str) -> Path:
        path = self._place / name
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        path.chmod(0o644)
        return path


def last_result(output: Path) -> dict[str, Any] | None:
    """The last `result` event of a stream-json output."""
    if not output.is_file():
        return None
    for line in reversed(output.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("type") == "result":
            return event
    return None
