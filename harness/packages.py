"""A trial's package registries: npm's and a Python index by the read-only mirror, or none at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.line import wait_for_port
from sandboxes import forward, machine, pypi_settings
from sandboxes.mirror import MOUNTED_AT, PYPI_SOCKET, SOCKET, Mirror
from sandboxes.sandbox import Mount, Sandbox

LOG = "packages.jsonl"
NPM_PORT = 4873
PYPI_PORT = 3141
ENV = {
    "npm_config_registry": f"http://127.0.0.1:{NPM_PORT}/",
    "npm_config_replace_registry_host": "always",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_fetch_retries": "0",  # the mirror tries again by itself
    "PIP_INDEX_URL": f"http://127.0.0.1:{PYPI_PORT}/simple/",
    "PIP_RETRIES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_BREAK_SYSTEM_PACKAGES": "1",  # the system's own folders are read-only: pip installs into the home
    "UV_DEFAULT_INDEX": f"http://127.0.0.1:{PYPI_PORT}/simple/",
}
_NAMES_IN_JOURNAL = 100


def check_registries() -> None:
    """Raises InfraError when this machine knows no npm registry or no Python index that the mirror could ask."""
    machine.npm_registry()
    pypi_settings.settings()


@dataclass
class Packages:
    """One trial's; without a mirror it is nothing at all."""

    mirror: Mirror | None = None
    mounts: Sequence[Mount] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def connect(self, sandbox: Sandbox) -> None:
        """Make both registries answer inside the container. Raises InfraError."""
        if self.mirror is None:
            return
        for port, name in ((NPM_PORT, SOCKET), (PYPI_PORT, PYPI_SOCKET)):
            argv = ["python3", "-I", f"{MOUNTED_AT}/forward.py", "--port", str(port)]
            sandbox.spawn([*argv, "--socket", f"{MOUNTED_AT}/{name}"], cwd="/", log=f"/tmp/packages-{port}.log")
        for port in (NPM_PORT, PYPI_PORT):
            wait_for_port(sandbox, port, "so no package could be installed")

    def record(self) -> dict[str, Any]:
        """For the journal: how often and which packages were asked for. Empty without a mirror. Raises InfraError
        for a mirror that did not live to the trial's end."""
        if self.mirror is None:
            return {}
        self.mirror.check()
        entries = self.mirror.entries()
        told: dict[str, Any] = {
            "asked": len(entries),
            "refused": sum(entry.marker == "refused" for entry in entries),
            "failed": sum(entry.marker == "outage" for entry in entries),
        }
        for registry in ("npm", "pypi"):
            names = sorted({entry.package for entry in entries if entry.registry == registry and entry.package})
            told[registry] = names[:_NAMES_IN_JOURNAL]
        return {**told, "log": LOG}


@contextmanager
def open_packages(wanted: bool, folder: Path) -> Iterator[Packages]:
    """The registries of one trial, each answer in `folder/packages.jsonl`. Raises InfraError."""
    if not wanted:
        yield Packages()
        return
    with Mirror(log=folder / LOG, pypi=True) as mirror:
        mount = mirror.mount()
        target = mount.source / "forward.py"
        shutil.copyfile(forward.__file__, target)
        target.chmod(0o644)
        yield Packages(mirror, (mount,), ENV)
