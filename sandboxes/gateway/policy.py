"""What the gateway is told: upstreams (whom it asks), and for each trial a policy (what may be asked)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bench.errors import UsageError
from bench.yaml_file import read_yaml

Protocol = Literal["anthropic", "openai-chat", "openai-responses", "gemini"]
Auth = Literal["x-api-key", "bearer", "x-goog-api-key", "none"]
PROTOCOLS: tuple[Protocol, ...] = ("anthropic", "openai-chat", "openai-responses", "gemini")


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tier(_Told):
    """Prices that hold for a whole call once its input (cached tokens counted in) passes `above_tokens`."""

    above_tokens: int
    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class Price(_Told):
    """USD per million tokens. A cache price that is None is the input's."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    cache_write_1h: float | None = Field(default=None, ge=0)
    audio_input: float | None = Field(default=None, ge=0)
    web_search: float | None = Field(default=None, ge=0)
    """USD for one hosted search."""
    max_output_tokens: int | None = None
    """What a call may give at most when it names no limit itself; for the estimate before the call."""
    tiers: tuple[Tier, ...] = ()


class Upstream(_Told):
    """One place that answers model calls. Its key is named, never written here.

    `base_url` is what the provider's own SDK takes. `key_file` with `key_field` (`tokens.access_token`) reads the
    token out of a JSON file, anew whenever the file changes: login tokens are renewed by their owner's tool.
    """

    base_url: str = ""
    base_url_env: str = ""
    """A variable that, where it is set, overrides `base_url`."""
    protocols: tuple[Protocol, ...] = PROTOCOLS
    auth: Auth = "bearer"
    key_env: str = ""
    key_file: Path | None = None
    key_field: str = ""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Sent with every call; a value of `anthropic-beta` is added to the agent's own list."""
    provider: str = ""
    """Prefix of this upstream's models in litellm's price table, for example `openrouter`."""
    asks_usage: bool = True
    """Set `stream_options.include_usage` on chat streams; False for an endpoint that rejects it."""

    @field_validator("base_url")
    @classmethod
    def _address(cls, told: str) -> str:
        if told and not told.startswith(("http://", "https://")):
            raise ValueError(f"{told!r} is no http(s) address")
        return told.rstrip("/")

    def address(self, environ: Mapping[str, str]) -> str:
        """The base address in force; raises UsageError when there is none."""
        told = (environ.get(self.base_url_env) if self.base_url_env else "") or self.base_url
        if not told.startswith(("http://", "https://")):
            hint = f" (set {self.base_url_env})" if self.base_url_env else ""
            raise UsageError(f"an upstream has no usable base_url: {told!r}{hint}")
        return told.rstrip("/")


class GatewayConfig(_Told):
    """Everything one gateway process is told at its start. `prices` go before `prices_file` and litellm's table."""

    upstreams: dict[str, Upstream] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)
    prices_file: Path | None = None
    """A table in the format of litellm's `model_prices_and_context_window.json`."""


class ModelRule(_Told):
    """Where calls for a model go. `asked` is a name or a pattern (`claude-haiku-*`); the first that fits holds."""

    asked: str = Field(min_length=1)
    upstream: str
    send: str | None = None
    """The name that is sent instead; every such call is logged as mapped. None: as it was asked."""
    price: Price | None = None


class Caps(_Told):
    """A trial's limits; None means none. One call at most goes over the USD and token caps."""

    usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)
    requests: int | None = Field(default=None, gt=0)


class TrialPolicy(_Told):
    """What one trial's agent may do."""

    trial: str = Field(min_length=1, max_length=500)
    """A label for the records."""
    models: tuple[ModelRule, ...] = Field(min_length=1)
    caps: Caps = Caps(usd=10.0, tokens=10_000_000, requests=400)
    hosted_tools: bool = False
    """Tools that the provider runs (web search, fetch, code execution, remote MCP), and addresses it fetches."""
    idle_timeout_s: float = Field(default=300.0, gt=0)
    """Longest silence within a stream, its beginning included."""
    whole_timeout_s: float = Field(default=1800.0, gt=0)
    """The same for a call that is not streamed, where silence is normal."""
    max_request_bytes: int = Field(default=64 * 1024 * 1024, gt=0)


def default_upstreams(environ: Mapping[str, str] = os.environ) -> dict[str, Upstream]:
    """The three providers, by the variables their own tools use.

    A subscription's login token (CLAUDE_CODE_OAUTH_TOKEN) is used when it is set and ANTHROPIC_API_KEY is not.
    """
    anthropic = Upstream(
        base_url="https://api.anthropic.com",
        base_url_env="ANTHROPIC_BASE_URL",
        protocols=("anthropic",),
        auth="x-api-key",
        key_env="ANTHROPIC_API_KEY",
    )
    if environ.get("CLAUDE_CODE_OAUTH_TOKEN") and not environ.get("ANTHROPIC_API_KEY"):
        login = {"auth": "bearer", "key_env": "CLAUDE_CODE_OAUTH_TOKEN"}
        anthropic = anthropic.model_copy(update={**login, "headers": {"anthropic-beta": "oauth-2025-04-20"}})
    return {
        "anthropic": anthropic,
        "openai": Upstream(
            base_url="https://api.openai.com/v1",
            base_url_env="OPENAI_BASE_URL",
            protocols=("openai-chat", "openai-responses"),
            auth="bearer",
            key_env="OPENAI_API_KEY",
        ),
        "gemini": Upstream(
            base_url="https://generativelanguage.googleapis.com",
            base_url_env="GOOGLE_GEMINI_BASE_URL",
            protocols=("gemini",),
            auth="x-goog-api-key",
            key_env="GEMINI_API_KEY" if environ.get("GEMINI_API_KEY") else "GOOGLE_API_KEY",
        ),
    }


def load_config(path: Path, environ: Mapping[str, str] = os.environ) -> GatewayConfig:
    """Read a configuration (YAML or JSON); the three providers are there unless it names them differently.

    Raises UsageError naming the file and the field.
    """
    try:
        config = GatewayConfig.model_validate(read_yaml(path) or {})
    except (UsageError, ValueError) as error:
        raise UsageError(f"{path} is no gateway configuration: {error}; see docs/gateway.md") from error
    return config.model_copy(update={"upstreams": {**default_upstreams(environ), **config.upstreams}})
