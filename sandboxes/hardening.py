"""How a container is made: one pure function from a `SandboxSpec` to the engine's arguments."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from docker.types import DriverConfig, LogConfig, Mount, Ulimit

from sandboxes.owner import ATTEMPT, CASE, OWNER, ROLE, RUN, this_process
from sandboxes.sandbox import HOME, WORKSPACE, Role, SandboxSpec

UID = 10001
USER = f"{UID}:{UID}"
TMP = "/tmp"
_PROFILES = Path(__file__).parent / "seccomp"
_MAX_INODES = 400_000
"""Each costs about 1 KiB of kernel memory, counted against the container."""
_OPEN_FILES = 16_384
"""Enough for a bundler that watches; kept below what an engine without CAP_SYS_RESOURCE may grant."""


_INIT = "exec 3<> <(:); while :; do read -r -u 3; done"
"""PID 1: reaps what it adopts (bash does) and waits for a line that never comes, on a pipe it holds both ends of.
No child's death ends it and it handles no signal, so nothing inside can stop it: the workspace lives as it does."""


class Creation(NamedTuple):
    """Arguments for docker-py: of `create_container`, and of `create_host_config`."""

    container: dict[str, Any]
    host: dict[str, Any]


def creation(spec: SandboxSpec, name: str) -> Creation:
    """Everything is closed unless named here: no capability, no new privilege, no writable root, no network.

    Workspace, home and /tmp are tmpfs *volumes* and not `--tmpfs` mounts, because the archive API cannot
    see into the latter (moby issue 22020). They are anonymous, so the engine removes them together with
    the container; what lies in them counts as the container's memory.
    """
    labels = labels_of(spec)
    limits = spec.limits
    host: dict[str, Any] = {
        "network_mode": f"container:{spec.network_of}" if spec.network_of else "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={seccomp_profile(spec.role)}"],
        "read_only": True,
        "privileged": False,
        "ipc_mode": "private",
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "nano_cpus": int(limits.cpus * 1e9),
        "pids_limit": limits.pids,
        "shm_size": limits.shm_bytes,
        "ulimits": [
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES),
        ],
        "log_config": LogConfig(type="json-file", config={"max-size": "1m", "max-file": "2"}),
        "restart_policy": {"Name": "no"},
        "mounts": [
            _tmpfs_volume(WORKSPACE, limits.workspace_bytes, labels),
            _tmpfs_volume(HOME, limits.home_bytes, labels),
            _tmpfs_volume(TMP, limits.tmp_bytes, labels, mode="1777"),
            *(Mount(m.target, str(m.source.resolve()), type="bind", read_only=m.read_only) for m in spec.mounts),
        ],
    }
    container: dict[str, Any] = {
        "image": spec.image,
        "name": name,
        "user": USER,
        "working_dir": WORKSPACE,
        "entrypoint": ["/bin/bash", "-c", _INIT],
        "command": [],
        "environment": {"HOME": HOME, **spec.env},
        "labels": labels,
    }
    if not spec.network_of:
        container["hostname"] = "sandbox"
        if Path("/proc/sys/net/ipv6").is_dir():  # an application may serve on ::1, which the engine turns off
            host["sysctls"] = {"net.ipv6.conf.lo.disable_ipv6": "0"}
    return Creation(container, host)


def labels_of(spec: SandboxSpec) -> dict[str, str]:
    return {
        RUN: spec.run,
        CASE: spec.case,
        ATTEMPT: str(spec.attempt),
        ROLE: spec.role,
        OWNER: str(this_process()),
    }


@cache
def seccomp_profile(role: Role) -> str:
    """The system calls a role may make, as the engine takes it (JSON text)."""
    name = "browser.json" if role == "browser" else "contained.json"
    return (_PROFILES / name).read_text(encoding="utf-8")


def _tmpfs_volume(target: str, size_bytes: int, labels: dict[str, str], mode: str = "0755") -> Mount:
    options = f"size={size_bytes},nr_inodes={_MAX_INODES},uid={UID},gid={UID},mode={mode},nosuid,nodev"
    driver = DriverConfig("local", options={"type": "tmpfs", "device": "tmpfs", "o": options})
    return Mount(target, None, type="volume", no_copy=True, labels=labels, driver_config=driver)
