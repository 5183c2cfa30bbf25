"""How a container is made: one pure function from a `SandboxSpec` to the engine's arguments."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from docker import APIClient
from docker.types import DriverConfig, LogConfig, Mount, Ulimit

from sandboxes.owner import ATTEMPT, CASE, OWNER, ROLE, RUN, this_process
from sandboxes.sandbox import HOME, TMP, WORKSPACE, Role, SandboxSpec

UID = 10001
USER = f"{UID}:{UID}"
"""Whom everything untrusted runs as."""
INIT_USER = "10002:10002"
"""Whom PID 1 and the name sink run as: not root, and not the user of what runs beside them, which therefore cannot
signal them, read their memory or write into their output."""
EVALUATOR_RUNTIME = "CDB_EVALUATOR_RUNTIME"
_NAME_SINK = Path(__file__).parent / "name_sink.py"
_PROFILES = Path(__file__).parent / "seccomp"
_PROFILE_OF: dict[Role, str] = {
    "solver": "solver", "canary": "solver", "builder": "builder", "app": "builder", "browser": "browser",
    "relay": "builder",
}  # fmt: skip
_OPEN_FILES = 16_384
"""Enough for a bundler that watches; kept below what an engine without CAP_SYS_RESOURCE may grant."""


_INIT = 'test -z "$1" || python3 -I -S -c "$1" & exec 3<> <(:); while :; do read -r -u 3; done'
"""PID 1: reaps what it adopts (bash does) and waits for a line that never comes, on a pipe it holds both ends of.
No child's death ends it, it handles no signal, and nothing inside may signal it: the workspace lives as it does.
The argument is the name sink's program, or nothing."""


_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys",
    "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
    "/sys/devices/virtual/powercap", "/sys/firmware",
)  # fmt: skip
"""Covered with nothing: what engines cover by themselves, old and new ones, and the kernel's addresses."""


class Creation(NamedTuple):
    """Arguments for docker-py: of `create_container`, and of `create_host_config`."""

    container: dict[str, Any]
    host: dict[str, Any]

    def create(self, api: APIClient) -> str:
        """Creates the container and returns its id. Raises docker's errors."""
        host_config = api.create_host_config(**self.host)
        host_config["MaskedPaths"] = list(_MASKED)  # docker-py has no argument for it
        return str(api.create_container(host_config=host_config, **self.container)["Id"])


def creation(spec: SandboxSpec, name: str) -> Creation:
    """Everything is closed unless named here: no capability, no new privilege, no writable root, no network.

    Workspace, home and /tmp are tmpfs *volumes* and not `--tmpfs` mounts, because the archive API cannot
    see into the latter (moby issue 22020). They are anonymous, so the engine removes them together with
    the container; what lies in them counts as the container's memory.
    """
    labels = labels_of(spec)
    limits = spec.limits
    host: dict[str, Any] = {
        "network_mode": f"container:{spec.network_of}" if spec.network_of else spec.network or "none",
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
            _tmpfs_volume(WORKSPACE, limits.workspace_bytes, limits.inodes, labels),
            _tmpfs_volume(HOME, limits.home_bytes, limits.inodes, labels),
            _tmpfs_volume(TMP, limits.tmp_bytes, limits.inodes, labels, mode="1777"),
            *(Mount(m.target, str(m.source.resolve()), type="bind", read_only=m.read_only) for m in spec.mounts),
        ],
    }
    container: dict[str, Any] = {
        "image": spec.image,
        "name": name,
        "user": INIT_USER,
        "working_dir": WORKSPACE,
        "entrypoint": ["/bin/bash", "-c", _INIT, "init"],
        "command": [name_sink() if records_names(spec) else ""],
        "environment": {"HOME": HOME, **spec.env},
        "labels": labels,
    }
    if runtime := runtime_of(spec.role):
        host["runtime"] = runtime
    if records_names(spec):
        host.update(dns=["127.0.0.1"], dns_opt=["timeout:1", "attempts:1"])
    if not spec.network_of:
        container["hostname"] = "sandbox"
        if Path("/proc/sys/net/ipv6").is_dir():  # an application may serve on ::1, which the engine turns off
            host["sysctls"] = {"net.ipv6.conf.lo.disable_ipv6": "0"}
    if spec.role == "relay":  # it stands in two networks and must pass on nothing but what its program passes on
        host["sysctls"] = {"net.ipv4.ip_forward": "0"}
    return Creation(container, host)


def runtime_of(role: Role) -> str | None:
    """The runtime set for the evaluator's containers (such as runsc); None means the engine's default."""
    return os.environ.get(EVALUATOR_RUNTIME) or None if role in ("builder", "app", "browser") else None


def records_names(spec: SandboxSpec) -> bool:
    """Whether names that are looked up inside are written down: in trials, whose record they belong to."""
    return spec.role == "solver" and not spec.network_of


@cache
def name_sink() -> str:
    return _NAME_SINK.read_text(encoding="utf-8")


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
    return (_PROFILES / f"{_PROFILE_OF[role]}.json").read_text(encoding="utf-8")


def _tmpfs_volume(target: str, size_bytes: int, inodes: int, labels: dict[str, str], mode: str = "0755") -> Mount:
    options = f"size={size_bytes},nr_inodes={inodes},uid={UID},gid={UID},mode={mode},nosuid,nodev"
    driver = DriverConfig("local", options={"type": "tmpfs", "device": "tmpfs", "o": options})
    return Mount(target, None, type="volume", no_copy=True, labels=labels, driver_config=driver)
