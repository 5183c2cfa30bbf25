"""From the command line's words to what an entry's trials may ask of which upstream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from bench.frozen_store import open_store
from harness.agents.agent import Agent
from harness.line import ModelSettings
from sandboxes.egress.client import Egress
from sandboxes.egress.policy import DATASET_HOSTS, EgressPolicy, Mode, host_name
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import Caps, GatewayConfig, ModelRule, default_upstreams, load_config

EGRESS = ("none", "frozen", "open")
MEDIA = ("native", "digest")
PACKAGES = ("none", "mirror")
SIDE_MODELS = ("denied", "mapped")


@dataclass(frozen=True)
class Conditions:
    """What changes an agent's chances. Runs under different ones are never put into one table."""

    egress: str = "none"
    hosted_tools: bool = False
    media: str = "native"
    frozen: Path | None = None
    """The store that `frozen` answers from."""
    blocked: tuple[str, ...] = ()
    """Hosts that are refused and flagged beside the dataset's own."""
    allowed: tuple[tuple[str, int], ...] = ()
    """(address, port) pairs that `open` may reach although they are not public."""
    packages: str = "none"
    """Whether npm and pip find their registries, by the read-only mirror."""
    side_models: str = "denied"
    """What becomes of calls for another model than the trial's: 404, or answered by the trial's model."""

    def check(self) -> None:
        """Raises UsageError for a condition that does not exist, or settings that do not go together."""
        for name, value, known in (
            ("egress", self.egress, EGRESS),
            ("media", self.media, MEDIA),
            ("packages", self.packages, PACKAGES),
            ("side-models", self.side_models, SIDE_MODELS),
        ):
            if value not in known:
                raise UsageError(f"--{name} {value!r} is not known; choose one of {', '.join(known)}")
        self._check_egress()

    def _check_egress(self) -> None:
        """Raises UsageError for settings that do not go together, DataError for a damaged store."""
        if (self.egress == "frozen") != (self.frozen is not None):
            raise UsageError(
                "--egress frozen answers from a store: name it with --frozen STORE (cdb dataset freeze makes one); "
                "--frozen means nothing without it"
            )
        if self.blocked and self.egress == "none":
            raise UsageError("--block means nothing under --egress none, where no host is reached")
        if self.allowed and self.egress != "open":
            raise UsageError("--allow-private means nothing without --egress open")
        self.describe()  # opens the store, and reads the names that are to be blocked

    @cached_property
    def frozen_digest(self) -> str | None:
        """What the store answers. Raises UsageError for a wrong folder, DataError for a damaged one."""
        return open_store(self.frozen).digest if self.frozen else None

    @property
    def policy(self) -> EgressPolicy | None:
        """What the trials' proxies are told; None where there are none. Raises UsageError."""
        if self.egress == "none":
            return None
        blocked = sorted({*DATASET_HOSTS, *map(host_name, self.blocked)})
        mode: Mode = "frozen" if self.egress == "frozen" else "open"
        store = self.frozen.resolve() if self.frozen else None
        return EgressPolicy(mode=mode, blocked=tuple(blocked), store=store, allowed=self.allowed)

    def describe(self) -> dict[str, Any]:
        """For the run's lock."""
        told: dict[str, Any] = {
            "egress": self.egress, "hosted_tools": "on" if self.hosted_tools else "off", "media": self.media,
            "packages": self.packages, "side_models": self.side_models,
        }  # fmt: skip
        if self.frozen_digest:
            told["frozen"] = self.frozen_digest
        if policy := self.policy:
            told["blocked"] = list(policy.blocked)
        if self.allowed:
            told["allowed"] = [f"{address}:{port}" for address, port in sorted(self.allowed)]
        return told


@contextmanager
def open_egress(conditions: Conditions, *, image: str, run: str) -> Iterator[Egress | None]:
    """The way out that all trials of an entry share; None where there is none. Raises InfraError."""
    policy = conditions.policy
    if policy is None:
        yield None
        return
    with Egress(policy, image=image, run=run) as egress:
        yield egress


@dataclass(frozen=True)
class ModelWish:
    """What a user says about models. `upstream` None: the one upstream that speaks the agent's protocol."""

    config: Path | None = None
    upstream: str | None = None
    caps: Caps = field(default_factory=lambda: Caps(usd=10.0, tokens=10_000_000, requests=400))

    def describe(self, agent: Agent) -> dict[str, Any]:
        """For the run's lock."""
        if agent.protocol is None:
            return {}
        return {"upstream": self.rule(agent, self.configuration()).upstream, "caps": self.caps.model_dump()}

    def configuration(self) -> GatewayConfig:
        if self.config:
            return load_config(self.config)
        return GatewayConfig(upstreams=default_upstreams(os.environ))

    def rule(self, agent: Agent, config: GatewayConfig) -> ModelRule:
        """Where the agent's model is asked for. Raises UsageError naming what could be chosen."""
        if agent.model is None:
            raise UsageError(f"agent {agent.name} needs a model; name one with --model")
        fitting = [name for name, upstream in config.upstreams.items() if agent.protocol in upstream.protocols]
        if self.upstream is None:
            if len(fitting) != 1:
                raise UsageError(
                    f"agent {agent.name} speaks {agent.protocol}, which {len(fitting)} upstreams do; "
                    f"choose with --upstream: {', '.join(fitting) or 'add one (docs/gateway.md)'}"
                )
            return ModelRule(asked=agent.model, upstream=fitting[0])
        if self.upstream not in config.upstreams:
            known = ", ".join(sorted(config.upstreams))
            raise UsageError(f"no upstream {self.upstream!r}; known: {known} (docs/gateway.md says how to add one)")
        if self.upstream not in fitting:
            raise UsageError(
                f"upstream {self.upstream} does not speak {agent.protocol}, which {agent.name} needs; "
                f"these do: {', '.join(fitting) or 'none'}"
            )
        return ModelRule(asked=agent.model, upstream=self.upstream)


@contextmanager
def model_settings(agent: Agent, wish: ModelWish, conditions: Conditions) -> Iterator[ModelSettings | None]:
    """The gateway that all trials of an entry share; None for an agent without a model."""
    if agent.protocol is None:
        yield None
        return
    config = wish.configuration()
    rule = wish.rule(agent, config)
    rules: tuple[ModelRule, ...] = (rule,)
    if conditions.side_models == "mapped":
        rules += (ModelRule(asked="*", upstream=rule.upstream, send=rule.asked),)
    with Gateway(config) as gateway:
        yield ModelSettings(gateway, rules, wish.caps, conditions.hosted_tools, _secrets(config))


def _secrets(config: GatewayConfig) -> tuple[str, ...]:
    """Keys of every upstream, as far as they stand in this process's environment."""
    named = (os.environ.get(upstream.key_env, "") for upstream in config.upstreams.values() if upstream.key_env)
    return tuple(sorted({key for key in named if key}))
