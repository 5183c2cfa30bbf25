"""A trial's way out to the world, as its conditions have it: none, recorded resources, or the open network; and
package registries beside it or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.line import wait_for_port
from harness.packages import Packages, open_packages
from sandboxes.egress.client import Egress, TrialEgress
from sandboxes.egress.records import LOG, EgressSums, HostSums
from sandboxes.sandbox import Mount, Sandbox

ASKED_FOR_THE_DATASET = "asked_for_the_dataset"
_HOSTS_IN_JOURNAL = 50


@dataclass
class WayOut:
    """One trial's; without a proxy or registries it is nothing at all."""

    trial: TrialEgress | None = None
    packages: Packages = field(default_factory=Packages)
    mounts: Sequence[Mount] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    sums: EgressSums | None = None
    """What was asked, once it is closed."""
    packages_asked: dict[str, Any] = field(default_factory=dict)
    """Which packages were asked for, once it is closed; empty without registries."""

    def connect(self, sandbox: Sandbox) -> None:
        """Make proxy and registries answer at their addresses inside the container. Raises InfraError."""
        if self.trial:
            sandbox.spawn(self.trial.forward_argv, cwd="/", log="/tmp/egress.log")
            wait_for_port(sandbox, self.trial.port, "so nothing could be asked of the network")
        self.packages.connect(sandbox)

    def close(self) -> None:
        """Nothing goes out any more. Raises InfraError when the proxy or the mirror had ended before."""
        if self.trial and self.sums is None:
            self.trial.close()
            self.sums = self.trial.sums()
        self.packages_asked = self.packages_asked or self.packages.record()

    @property
    def flags(self) -> tuple[str, ...]:
        return (ASKED_FOR_THE_DATASET,) if self.sums and self.sums.blocked else ()

    def record(self) -> dict[str, Any]:
        """For the journal: the sums, with the first hosts, blocked ones before others. Empty without a proxy."""
        if self.sums is None:
            return {}
        hosts = sorted(self.sums.hosts, key=_interest)[:_HOSTS_IN_JOURNAL]
        told = self.sums.model_dump(exclude={"schema_", "hosts"})
        shown = {"host", "answered", "refused", "blocked", "failed", "sent_bytes", "received_bytes"}
        return {
            **told,
            "hosts": [host.model_dump(include=shown) for host in hosts],
            "hosts_in_all": len(self.sums.hosts),
            "log": LOG,
        }


@contextmanager
def open_way_out(egress: Egress | None, packages: bool, folder: Path) -> Iterator[WayOut]:
    """The way out of one trial; its records go into `folder`. Raises InfraError."""
    with open_packages(packages, folder) as shop, ExitStack() as held:
        trial = held.enter_context(egress.open(folder)) if egress else None
        mounts = [*(trial.mounts if trial else ()), *shop.mounts]
        yield WayOut(trial, shop, mounts, {**(trial.env if trial else {}), **shop.env})


def _interest(host: HostSums) -> tuple[bool, bool, bool]:
    return not host.blocked, not host.refused, not host.failed
