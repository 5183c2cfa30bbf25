"""ATIF, version 1.8: the parts of the published format that we write, held to its rules.

The format is Harbor's (RFC 0001, harborframework.com/docs/trajectory-format); field names, types and the rules
below follow its reference models, so that what passes here passes there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

VERSION: Literal["ATIF-v1.8"] = "ATIF-v1.8"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MediaSource(_Model):
    """A picture or sound in a file; `path` is relative to the trajectory's folder."""

    media_type: str
    path: str


class ContentPart(_Model):
    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: MediaSource | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> ContentPart:
        if (self.type == "text") != (self.text is not None) or (self.type == "text") == (self.source is not None):
            raise ValueError(f"a part of type {self.type} has either a text or a source")
        return self


Content = str | list[ContentPart]


class ToolCall(_Model):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class ObservationResult(_Model):
    source_call_id: str | None = None
    content: Content | None = None
    extra: dict[str, Any] | None = None


class Observation(_Model):
    results: list[ObservationResult]


class Metrics(_Model):
    """Of one call. `prompt_tokens` counts cached ones in."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    extra: dict[str, Any] | None = None


class Step(_Model):
    step_id: int = Field(ge=1)
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    message: Content
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    llm_call_count: int | None = Field(default=None, ge=0)
    extra: dict[str, Any] | None = None

    @field_validator("timestamp")
    @classmethod
    def _is_iso(cls, told: str | None) -> str | None:
        if told is not None:
            datetime.fromisoformat(told)
        return told

    @model_validator(mode="after")
    def _only_an_agent_calls(self) -> Step:
        if self.source != "agent" and (self.model_name or self.reasoning_content or self.tool_calls or self.metrics):
            raise ValueError(f"a step of the {self.source} has no model, reasoning, tool calls or metrics")
        return self

    @model_validator(mode="after")
    def _results_belong_to_its_calls(self) -> Step:
        own = {call.tool_call_id for call in self.tool_calls or ()}
        for result in self.observation.results if self.observation else ():
            if result.source_call_id is not None and result.source_call_id not in own:
                raise ValueError(
                    f"step {self.step_id} holds a result of {result.source_call_id!r}, which it did not call"
                )
        return self


class AgentInfo(_Model):
    name: str
    version: str
    model_name: str | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(_Model):
    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = Field(default=None, ge=0)
    extra: dict[str, Any] | None = None


class Trajectory(_Model):
    schema_version: Literal["ATIF-v1.8"] = VERSION
    session_id: str | None = None
    agent: AgentInfo
    steps: list[Step] = Field(min_length=1)
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _steps_count_from_one(self) -> Trajectory:
        if [step.step_id for step in self.steps] != list(range(1, len(self.steps) + 1)):
            raise ValueError("step ids count from 1 without a gap")
        return self
