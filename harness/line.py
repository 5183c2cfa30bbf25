"""A trial's line to its model: the gateway's socket mounted into the container, and what was said over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import InfraError
from harness.agents.agent import Agent, AgentSetupError, ModelAccess
from sandboxes.gateway.client import Gateway, TrialGateway
from sandboxes.gateway.policy import Caps, ModelRule, TrialPolicy
from sandboxes.gateway.records import TrialSummary
from sandboxes.packs.store import need_pack
from sandboxes.sandbox import Mount, Sandbox

_CONNECT = (
    "import socket, sys, time\n"
    "until = time.monotonic() + 10\n"
    "while True:\n"
    "    try:\n"
    "        socket.create_connection(('127.0.0.1', int(sys.argv[1])), 1).close()\n"
    "        break\n"
    "    except OSError:\n"
    "        if time.monotonic() > until: raise\n"
    "        time.sleep(0.02)\n"
)
"""Run in the container before the agent: its first call must find the forwarder listening."""


@dataclass(frozen=True)
class ModelSettings:
    """What every trial of an entry may ask of which upstream. `gateway` is owned by the run."""

    gateway: Gateway
    rules: tuple[ModelRule, ...]
    caps: Caps = field(default_factory=lambda: Caps(usd=10.0, tokens=10_000_000, requests=400))
    hosted_tools: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The operator's keys: taken out of whatever people read."""
    budget_grace_s: float = 30.0
    """How long an agent may go on after its budget is used up: to write down what it has."""


@dataclass
class Line:
    """One trial's line; without a model it is nothing but an agent's mounts."""

    mounts: Sequence[Mount] = ()
    access: ModelAccess | None = None
    trial: TrialGateway | None = None

    def connect(self, sandbox: Sandbox) -> None:
        """Make the gateway answer at its address inside the container. Raises InfraError."""
        if self.trial is None:
            return
        sandbox.spawn(self.trial.forward_argv, cwd="/", log="/tmp/gateway.log")
        wait_for_port(sandbox, int(self.trial.base_url.rpartition(":")[2]), "so no model could be reached")

    def summary(self) -> TrialSummary | None:
        """Calls so far, all of them once the line is closed; None without a model."""
        return self.trial.summary() if self.trial else None

    def close(self) -> None:
        """No call is let through any more."""
        if self.trial:
            self.trial.close()


def wait_for_port(sandbox: Sandbox, port: int, otherwise: str) -> None:
    """Return once something listens on a port of the container's own. Raises InfraError."""
    if not sandbox.exec(["python3", "-I", "-c", _CONNECT, str(port)], deadline_s=30).ok:
        raise InfraError(f"the forwarder in the container does not listen on {port}, {otherwise}")


@contextmanager
def open_line(agent: Agent, settings: ModelSettings | None, folder: Path, label: str) -> Iterator[Line]:
    """The line of one trial of `agent`; its records go into `folder`.

    Raises AgentSetupError, UsageError, InfraError.
    """
    mounts = [need_pack(agent.pack).mount] if agent.pack else []
    if agent.protocol is None:
        yield Line(mounts)
        return
    if settings is None or agent.model is None:
        raise AgentSetupError(f"{agent.name} needs a model: name one with --model")
    policy = TrialPolicy(trial=label, models=settings.rules, caps=settings.caps, hosted_tools=settings.hosted_tools)
    with settings.gateway.open(policy, folder) as trial:
        access = ModelAccess(
            model=agent.model,
            base_url=trial.base_url,
            token=trial.token,
            env=trial.env(agent.protocol),
            hosted_tools=settings.hosted_tools,
        )
        yield Line([*mounts, trial.mount], access, trial)
