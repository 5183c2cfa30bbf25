"""The harness's handle on the gateway: start the process, open a trial, mount its socket, close it.

with Gateway(config) as gateway, gateway.open(policy, folder) as trial:
    … Mount trial.mount, run trial.forward_argv, set trial.env("anthropic") …
trial.summary()
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

from bench.errors import InfraError, UsageError
from sandboxes import forward, own_process
from sandboxes.gateway.policy import GatewayConfig, Protocol, TrialPolicy
from sandboxes.gateway.records import TrialSummary
from sandboxes.sandbox import Mount
from sandboxes.socket_folder import socket_folder

MOUNTED_AT = "/gateway"
SOCKET = "gateway.sock"
PORT = 8080
STOP_S = 10.0
ERRORS = "stderr.log"
ANSWER_S = 60.0


class Gateway:
    """Owns the gateway's process, from the first `open` to the end of the `with`. Usable from several threads."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._held = contextlib.ExitStack()
        self._folder: Path | None = None
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()  # the first caller starts the process, the others wait for it

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process:
            own_process.stop(process, STOP_S)
        self._held.close()

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._process.pid if self._process else None

    def open(self, policy: TrialPolicy, folder: Path) -> TrialGateway:
        """Open a trial that writes its records to `folder`.

        Raises UsageError (a key, an upstream or a price is missing), InfraError (the process did not start, or
        died: trials that were open are lost then, and their calls fail).
        """
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                own_process.stop(self._process, STOP_S)  # it died, and its trials with it; the next ones get another
                self._process = None
            if self._process is None:
                self._process = self._start()
        return TrialGateway(self, policy, folder)

    def listed_models(self, upstream: str, protocol: Protocol) -> list[str]:
        """The models an upstream says that it has; empty where it says nothing. Raises InfraError."""
        found: list[str] = self.ask({"do": "models", "upstream": upstream, "protocol": protocol})["models"]
        return found

    def ask(self, message: dict[str, Any], *, deadline_s: float = ANSWER_S) -> dict[str, Any]:
        """Send one control message. Raises UsageError, InfraError."""
        if self._folder is None:
            raise InfraError("the gateway is not running; open a trial first")
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(deadline_s)
                line.connect(str(self._folder / "control.sock"))
                line.sendall(json.dumps(message).encode() + b"\n")
                with line.makefile("rb") as reader:
                    answer: dict[str, Any] = json.loads(reader.readline())
        except (OSError, ValueError) as error:
            said = own_process.last_words(self._folder / ERRORS)
            raise InfraError(f"the gateway does not answer ({error}): {said}") from error
        if answer["ok"]:
            return answer
        raise (UsageError if answer["kind"] == "usage" else InfraError)(answer["message"])

    def _start(self) -> subprocess.Popen[str]:
        if self._folder is None:
            # Only the parent of what socket_folder gives is private; nothing here is mounted anywhere.
            self._folder = self._held.enter_context(socket_folder("gateway")).parent
        config = self._folder / "config.json"
        config.write_text(self._config.model_dump_json(), encoding="utf-8")
        config.chmod(0o600)
        options = ["--control", str(self._folder / "control.sock"), "--config", str(config), "--with-parent"]
        errors = self._folder / ERRORS
        return own_process.start("the gateway", "sandboxes.gateway", options, errors=errors, stop_s=STOP_S)


class TrialGateway:
    """One open trial. Leaving the `with` closes it: its token and socket work no longer.

    What an agent needs inside its container is `mount`, `forward_argv` (run in the background) and `env`.
    """

    def __init__(self, gateway: Gateway, policy: TrialPolicy, folder: Path) -> None:
        self._gateway = gateway
        self._held = contextlib.ExitStack()
        self._summary: TrialSummary | None = None
        self._lock = threading.Lock()  # closing happens once
        place = self._held.enter_context(socket_folder("model"))
        try:
            shutil.copyfile(forward.__file__, place / "forward.py")
            (place / "forward.py").chmod(0o644)
            told = {"do": "open", "policy": policy.model_dump(mode="json"), "folder": str(folder.resolve())}
            answer = gateway.ask(told | {"socket": str(place / SOCKET)})
        except BaseException:
            self._held.close()
            raise
        self.folder = folder
        self.socket = place / SOCKET
        self.token: str = answer["token"]
        self._id: str = answer["id"]
        self.mount = Mount(place, MOUNTED_AT, read_only=True)
        self.forward_argv = [
            "python3", "-I", f"{MOUNTED_AT}/forward.py", "--port", str(PORT), "--socket", f"{MOUNTED_AT}/{SOCKET}",
        ]  # fmt: skip
        self.base_url = f"http://127.0.0.1:{PORT}"

    def __enter__(self) -> TrialGateway:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def env(self, protocol: Protocol) -> dict[str, str]:
        """The container's environment for an agent that speaks `protocol`."""
        if protocol == "anthropic":
            return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": self.token}
        if protocol == "gemini":
            return {"GOOGLE_GEMINI_BASE_URL": self.base_url, "GEMINI_API_KEY": self.token}
        base = f"{self.base_url}/v1"
        return {
            "OPENAI_BASE_URL": base,
            "OPENAI_API_BASE": base,
            "OPENAI_API_KEY": self.token,
            "GW_KEY": self.token,
        }

    def summary(self) -> TrialSummary:
        """The calls so far; after `close` the final sums. Raises InfraError."""
        if self._summary is not None:
            return self._summary
        return TrialSummary.model_validate(self._gateway.ask({"do": "summary", "id": self._id})["summary"])

    def close(self) -> TrialSummary:
        """End the trial: calls under way are cut, later ones refused. Raises InfraError."""
        with self._lock:
            if self._summary is None:
                try:
                    answer = self._gateway.ask({"do": "close", "id": self._id})
                    self._summary = TrialSummary.model_validate(answer["summary"])
                finally:
                    self._held.close()
            return self._summary
