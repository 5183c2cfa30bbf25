"""From the command line's words to what an entry's trials may ask of which upstream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import UsageError
from harness.agents.agent import Agent
from harness.line import ModelSettings
from sandboxes.gateway.client import Gateway
from sandboxes.gateway.policy import Caps, GatewayConfig, ModelRule, default_upstreams, load_config

EGRESS = ("none", "frozen", "open")
MEDIA = ("native", "digest")
_BUILT = {"egress": ("none",), "media": MEDIA}


@dataclass(frozen=True)
class Conditions:
    """What changes an agent's chances. Runs under different ones are never put into one table."""

    egress: str = "none"
    hosted_tools: bool = False
    media: str = "native"

    def check(self) -> None:
        """Raises UsageError for a condition that does not exist, or that is named and not built."""
        for name, value, known in (("egress", self.egress, EGRESS), ("media", self.media, MEDIA)):
            if value not in known:
                raise UsageError(f"--{name} {value!r} is not known; choose one of {', '.join(known)}")
            if value not in _BUILT[name]:
                raise UsageError(
                    f"--{name} {value} is named by the protocol but not built yet; only {', '.join(_BUILT[name])} is"
                )

    def describe(self) -> dict[str, str]:
        return {"egress": self.egress, "hosted_tools": "on" if self.hosted_tools else "off", "media": self.media}


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
    with Gateway(config) as gateway:
        yield ModelSettings(gateway, (rule,), wish.caps, conditions.hosted_tools, _secrets(config))


def _secrets(config: GatewayConfig) -> tuple[str, ...]:
    """Keys of every upstream, as far as they stand in this process's environment."""
    named = (os.environ.get(upstream.key_env, "") for upstream in config.upstreams.values() if upstream.key_env)
    return tuple(sorted({key for key in named if key}))
