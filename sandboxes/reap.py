"""Containers, volumes and networks that a run left behind, found by label; dead owners' are removed.

A thing is ours only when its owner label can be read; it is dead only when its owner was a process of
this host and boot that no longer lives. Everything else is never touched.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import requests
from docker.errors import APIError, NotFound

from bench.errors import InfraError
from sandboxes.engine import engine
from sandboxes.owner import KEPT, OWNER, ROLE, RUN, Owner, parse_owner

Kind = Literal["container", "volume", "network"]
_LABELLED = {"label": OWNER}
_IN_USE_OR_GOING = 409


class Leftover(NamedTuple):
    """A labelled thing the engine holds. `name` is what people see, `id` what the engine removes it by."""

    kind: Kind
    id: str
    name: str
    owner: Owner
    run: str
    role: str

    @property
    def is_kept(self) -> bool:
        return self.kind == "container" and self.name.startswith(KEPT)


def leftovers() -> tuple[Leftover, ...]:
    """Everything of ours on this engine, whoever made it, dead or alive. Raises InfraError."""
    try:
        return tuple(_found())
    except (APIError, requests.RequestException) as error:
        raise InfraError(f"the engine did not list its containers, volumes and networks: {error}") from error


def reap(*, all_mine: bool = False, kept: bool = False) -> tuple[Leftover, ...]:
    """Removes what dead owners left, containers first, and returns what was removed.

    `all_mine` also removes what other boots and living processes of this machine own, `kept` also what
    `--keep-failed` kept: for a user who says so, never by itself. Raises InfraError.
    """
    here = socket.gethostname().replace(":", "-")
    doomed = [found for found in leftovers() if found.owner.is_dead or (all_mine and found.owner.machine == here)]
    return tuple(found for found in doomed if (kept or not found.is_kept) and _remove(found))


def _found() -> Iterator[Leftover]:
    api = engine().api
    for container in api.containers(all=True, filters=_LABELLED):
        name = str((container.get("Names") or ["/?"])[0]).removeprefix("/")
        yield from _leftover("container", str(container["Id"]), name, container.get("Labels"))
    for volume in api.volumes(filters=_LABELLED).get("Volumes") or []:
        yield from _leftover("volume", str(volume["Name"]), str(volume["Name"]), volume.get("Labels"))
    for network in api.networks(filters=_LABELLED):
        yield from _leftover("network", str(network["Id"]), str(network["Name"]), network.get("Labels"))


def _leftover(kind: Kind, identity: str, name: str, labels: dict[str, str] | None) -> Iterator[Leftover]:
    labels = labels or {}
    owner = parse_owner(labels.get(OWNER, ""))
    if owner:
        yield Leftover(kind, identity, name, owner, labels.get(RUN, ""), labels.get(ROLE, ""))


def _remove(found: Leftover) -> bool:
    """False when it was gone already, is being removed, or is still used by something that is not ours."""
    api = engine().api
    removers: dict[Kind, Callable[[str], Any]] = {
        "container": lambda identity: api.remove_container(identity, force=True, v=True),
        "volume": api.remove_volume,
        "network": api.remove_network,
    }
    try:
        removers[found.kind](found.id)
    except NotFound:
        return False
    except APIError as error:
        if error.response is not None and error.response.status_code == _IN_USE_OR_GOING:
            return False
        raise InfraError(f"cannot remove {found.kind} {found.name}: {error.explanation}") from error
    except requests.RequestException as error:
        raise InfraError(f"the engine was lost while {found.kind} {found.name} was removed: {error}") from error
    return True
