"""What a trial's way out lets through."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from bench.errors import UsageError

Mode = Literal["frozen", "open"]

DATASET_HOSTS = (
    "codesignbench.github.io",
    "github.com",
    "githubusercontent.com",
    "hf-mirror.com",
    "hf.co",
    "huggingface.co",
    "modelscope.cn",
)
"""Where the dataset, its answers and its code lie, with every name below. A tunnel shows only the host that is asked,
so a code host is blocked whole."""

_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*\Z")


class EgressPolicy(BaseModel):
    """Everything the proxy of one trial is told. `certificate` and `key` are for the `https` hosts of the store."""

    model_config = ConfigDict(extra="forbid")

    mode: Mode
    blocked: tuple[str, ...] = DATASET_HOSTS
    store: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    allowed: tuple[tuple[str, int], ...] = ()
    """(address, port) pairs that may be reached although they are not public, also without a name."""
    names: dict[str, str] = {}
    """Addresses of names that no name server knows: for a mirror of one's own, and for tests."""
    head_s: float = 15.0
    """Within this, a request's head or a TLS greeting must be there whole."""
    idle_s: float = 120.0
    """A connection on which nothing moves for so long is closed."""
    connections: int = 128
    """At a time; more are dropped."""
    lines: int = 20_000
    """Lines of the log; more asks are only counted."""


def host_name(text: str) -> str:
    """A host as it is compared: lower case, international names in their ASCII form, no dot at the end.

    Raises UsageError for an address, a pattern or a URL.
    """
    try:
        name = text.strip().rstrip(".").encode("idna").decode().lower()
    except UnicodeError:
        name = ""
    if not _HOST.match(name) or is_literal(name):
        raise UsageError(
            f"--block {text!r} is no host name; write it like example.org (every name below it is meant)"
        )
    return name


def is_blocked(host: str, blocked: tuple[str, ...]) -> bool:
    """Whether a host is one of those, or below one."""
    name = host.rstrip(".").lower()
    return any(name == one or name.endswith("." + one) for one in blocked)


def is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
