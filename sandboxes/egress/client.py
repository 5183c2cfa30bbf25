"""The harness's handle on the way out: what a run prepares once, and one proxy process for each trial.

with Egress(policy, image=…, run=…) as egress, egress.open(folder) as trial:
    … Mounts trial.mounts, run trial.forward_argv, set trial.env …
trial.sums()
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench.errors import InfraError
from bench.frozen_store import read_index
from sandboxes import forward, own_process
from sandboxes.egress.certificates import AUTHORITY, CERTIFICATE, KEY, make_certificates
from sandboxes.egress.frozen_way import secure_hosts
from sandboxes.egress.policy import EgressPolicy
from sandboxes.egress.records import EgressSums, read_sums
from sandboxes.sandbox import Mount
from sandboxes.socket_folder import socket_folder

MOUNTED_AT = "/egress"
TRUST_AT = "/egress-trust"
CHROMIUM_AT = "/etc/chromium/policies/managed"
SOCKET = "egress.sock"
PORT = 8081
ERRORS = "egress-errors.txt"
STOP_S = 10.0
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
"""What the proxy's process is given of ours: it speaks with strangers and needs no key."""
_BY_HAND = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
            "PIP_CERT", "npm_config_cafile")  # fmt: skip


class Egress:
    """One entry's way out. Owns the certificates; usable from several threads."""

    def __init__(self, policy: EgressPolicy, *, image: str, run: str) -> None:
        self._policy = policy
        self._image, self._run = image, run
        self._held = contextlib.ExitStack()
        self._folder: Path | None = None

    def __enter__(self) -> Egress:
        """Raises InfraError when no certificates can be made."""
        index = read_index(self._policy.store) if self._policy.store else None
        if index and (hosts := secure_hosts(index)):
            folder = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="cdb-egress-")))
            try:
                make_certificates(hosts, folder, image=self._image, run=self._run)
            except BaseException:
                self._held.close()
                raise
            told = {"certificate": folder / CERTIFICATE, "key": folder / KEY}
            self._folder, self._policy = folder, self._policy.model_copy(update=told)
        return self

    def __exit__(self, *exc: object) -> None:
        self._held.close()

    def open(self, folder: Path) -> TrialEgress:
        """Start the proxy of a trial that writes its records to `folder`. Raises InfraError."""
        return TrialEgress(self._policy, folder, self._folder)


class TrialEgress:
    """One trial's proxy. Leaving the `with` ends it.

    What an agent needs inside its container is `mounts`, `forward_argv` (run in the background) and `env`.
    """

    def __init__(self, policy: EgressPolicy, folder: Path, certificates: Path | None) -> None:
        self.folder = folder
        self.port = PORT
        self._held = contextlib.ExitStack()
        place = self._held.enter_context(socket_folder("egress"))
        try:
            shutil.copyfile(forward.__file__, place / "forward.py")
            (place / "forward.py").chmod(0o644)
            self.socket = place / SOCKET
            self._process = _start(policy, self.socket, folder.resolve())
        except BaseException:
            self._held.close()
            raise
        self.mounts = [Mount(place, MOUNTED_AT)]
        if certificates:
            self.mounts += [Mount(certificates / "trust", TRUST_AT), Mount(certificates / "chromium", CHROMIUM_AT)]
        self.forward_argv = [
            "python3", "-I", f"{MOUNTED_AT}/forward.py", "--port", str(PORT), "--socket", f"{MOUNTED_AT}/{SOCKET}",
        ]  # fmt: skip
        self.env = _env(f"http://127.0.0.1:{PORT}", trusted=f"{TRUST_AT}/{AUTHORITY}" if certificates else None)
        self._closed = False

    def __enter__(self) -> TrialEgress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End the proxy: what is under way is cut, and nothing is let through any more. Safe to repeat."""
        if not self._closed:
            self._closed = True
            try:
                own_process.stop(self._process, STOP_S)
            finally:
                self._held.close()

    def sums(self) -> EgressSums:
        """What was asked, once closed. Raises InfraError for a proxy that did not live to the end."""
        found = read_sums(self.folder)
        if found is None:
            raise InfraError(
                f"the trial's proxy ended before its time (exit code {self._process.poll()}), so what was asked of "
                f"the network is not known: {own_process.last_words(self.folder / ERRORS)}"
            )
        return found


def _env(proxy: str, *, trusted: str | None) -> dict[str, str]:
    env = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1,localhost,::1"}
    env |= {name.lower(): text for name, text in env.items()}
    env["NODE_USE_ENV_PROXY"] = "1"
    return env | dict.fromkeys(_BY_HAND if trusted else (), trusted or "")


def _start(policy: EgressPolicy, socket: Path, folder: Path) -> subprocess.Popen[str]:
    own = socket.parent.parent  # beside the folder that containers see; only we may enter it
    told = own / "policy.json"
    told.write_text(policy.model_dump_json(), encoding="utf-8")
    options = ["--policy", str(told), "--socket", str(socket), "--folder", str(folder)]
    env = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return own_process.start(
        "the trial's proxy", "sandboxes.egress", options, errors=folder / ERRORS, stop_s=STOP_S, env=env
    )
