"""Sockets in a container's tree, which the engine's archives silently lack.

They are looked for in the volume itself where this process may read the engine's mounts, which takes a moment;
else from a second container that shares the volumes read-only, which takes as long as starting one. Both work on a
frozen container and whatever the agent did to its own tools. Directories that may not be read, or lie deeper than
a path can be long, are not looked into.
"""

from __future__ import annotations

import base64
import logging
import os
import secrets
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import requests
from docker.errors import APIError, NotFound

from bench.errors import InfraError
from sandboxes.hardening import USER, seccomp_profile
from sandboxes.sandbox import MIB, Refused, TreePolicy, TreeReport
from sandboxes.tree_left_out import LeftOutParts

log = logging.getLogger(__name__)

_DEADLINE_S = 60
_FIND = 'find "$1" -xdev -type s -printf "%P\\0" | base64'
"""Run with the folder as its argument. In base64 because an engine's log replaces what is not UTF-8."""
_UNKNOWN = "(sockets)"


def with_sockets(
    report: TreeReport,
    client: docker.DockerClient,
    container: str,
    source: str,
    policy: TreePolicy,
    mount: Path | None = None,
) -> TreeReport:
    """`report` with the sockets below `source` among what was refused, but for those in left-out parts.

    `mount` is where the engine says the volume at `source` lies on its host, if `source` is one.
    An engine that fails here does not cost the copy: an entry says that sockets are unknown.
    """
    try:
        here = _sockets_here(mount) if mount else None
        paths = _sockets(client, container, source) if here is None else here
        found = [Refused(path, "socket") for path in paths]
    except (APIError, requests.RequestException, InfraError) as error:
        log.warning("sockets of %s could not be looked for: %s", container, error)
        found = [Refused(_UNKNOWN, "the engine failed when they were looked for")]
    kept = _not_left_out(found, policy)
    if not kept:
        return report
    return replace(report, refused=tuple(sorted([*report.refused, *kept], key=lambda node: node.path)))


def _not_left_out(found: Iterable[Refused], policy: TreePolicy) -> list[Refused]:
    left_out = LeftOutParts(policy)
    return [node for node in found if not left_out.takes(node.path.split("/"), is_folder=False, size=0)]


def _sockets_here(mount: Path) -> list[str] | None:
    """Paths relative to `mount`, no link followed; None where it cannot be seen from this process."""
    try:
        if not mount.is_mount():  # the engine's mounts are in a namespace of its own, or on another machine
            return None
        os.scandir(mount).close()
    except OSError:
        return None
    root, found, pending = os.fsencode(mount), [], [b""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    name = os.path.join(folder, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(name)
                    elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                        found.append(os.fsdecode(name))
        except OSError:
            continue
    return found


def _sockets(client: docker.DockerClient, container: str, source: str) -> list[str]:
    """Paths relative to `source`. Raises docker's and requests' errors, InfraError when find itself failed."""
    seen = client.api.inspect_container(container)
    name = f"cdb-look-{secrets.token_hex(8)}"
    try:
        client.api.create_container(
            image=seen["Image"],
            name=name,
            entrypoint=["/bin/bash", "-o", "pipefail", "-c", _FIND, "find"],
            command=[source],
            user=USER,
            labels=seen["Config"]["Labels"],
            host_config=client.api.create_host_config(**_host(container)),
        )
        client.api.start(name)
        code = int(client.api.wait(name, timeout=_DEADLINE_S)["StatusCode"])
        output = bytes(client.api.logs(name, stdout=True, stderr=False))
    finally:
        _remove(client, name)
    if code > 1:  # 1: a directory could not be read
        raise InfraError(f"find ended with {code}")
    found = base64.b64decode(output).split(b"\0")[:-1]
    return [part.decode("utf-8", "surrogateescape") for part in found]


def _host(container: str) -> dict[str, Any]:
    return {
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={seccomp_profile('canary')}"],
        "read_only": True,
        "privileged": False,
        "mem_limit": 256 * MIB,
        "memswap_limit": 256 * MIB,
        "pids_limit": 16,
        "volumes_from": [f"{container}:ro"],
        "log_config": {"type": "json-file", "config": {"max-size": "4m", "max-file": "1"}},
    }


def _remove(client: docker.DockerClient, name: str) -> None:
    try:
        client.api.remove_container(name, force=True)
    except NotFound:
        pass
    except (APIError, requests.RequestException) as error:
        log.warning("container %s could not be removed now, it is reaped later: %s", name, error)
