"""What a judge over a model is set to: the model, how it is reached, and what it may spend."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from bench.errors import UsageError
from bench.yaml_file import read_yaml
from evaluator.records import Strict


class Price(Strict):
    """USD per million tokens, for a model whose price nobody publishes."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)


class Caps(Strict):
    """What judging may cost. None lifts a cap. Tokens count everything sent and received, cached or not."""

    criterion_calls: int = Field(default=40, ge=2)
    """Model calls in one conversation."""
    criterion_pictures: int = Field(default=24, ge=0)
    case_usd: float | None = Field(default=2.0, gt=0)
    case_tokens: int | None = Field(default=8_000_000, gt=0)
    case_minutes: float | None = Field(default=20.0, gt=0)
    """Without the time spent waiting for a rate limit."""
    run_usd: float | None = Field(default=None, gt=0)


class ModelSettings(Strict):
    """One model. `model` is a litellm name with its provider: `openai/…`, `anthropic/…`.

    The key is never written here: `key_env` names the variable that holds it. Without `api_base` the provider's own
    address counts, or the one its usual variable names (OPENAI_BASE_URL, ANTHROPIC_BASE_URL).
    """

    model: str = Field(min_length=1)
    api_base: str | None = None
    key_env: str | None = None
    vision: bool = True
    native: list[Literal["pdf", "audio", "video"]] | None = None
    """Kinds of attachments sent as they are; None: what litellm's table says that the model takes."""
    max_output_tokens: int = Field(default=8_000, ge=256)
    call_timeout_s: float = Field(default=300.0, gt=0)
    patience_s: float = Field(default=900.0, ge=0)
    """How long one call may be put off by rate limits and outages before it is given up."""
    price: Price | None = None
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of the provider's API, for example `temperature` or `reasoning_effort`."""

    def describe(self) -> dict[str, Any]:
        """What can change a verdict. Patience and price cannot, nor can the address of the same model."""
        return self.model_dump(include={"model", "vision", "native", "max_output_tokens", "extra"})


def read_settings(name: str) -> ModelSettings:
    """Settings from a YAML file (a name that ends in .yaml or .yml), else the defaults for a model's name.

    Raises UsageError naming the file and the key.
    """
    if not name.endswith((".yaml", ".yml")):
        return ModelSettings(model=name)
    path = Path(name)
    content = read_yaml(path)
    try:
        return ModelSettings.model_validate(content)
    except ValidationError as error:
        known = ", ".join(ModelSettings.model_fields)
        raise UsageError(f"{path} is no judge's settings: {error}\nknown keys: {known}") from error
