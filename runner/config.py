"""The file of a run, read strictly: an unknown key is an error with a suggestion, never ignored."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from bench.errors import UsageError
from bench.yaml_file import read_yaml

Attachment = Literal["audio", "video", "document", "image", "none"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DatasetPart(_Part):
    """Which tasks. `release`: a downloaded release, or `sample`; it is extracted into `root` when that is empty."""

    release: str | None = None
    root: Path = Path("work")
    plans: Path | None = None
    frozen: Path | None = None
    only: list[str] = Field(default_factory=list)
    attachment: list[Attachment] = Field(default_factory=list)
    limit: int | None = Field(None, ge=1)
    seed: int | None = None
    shard: str | None = Field(None, pattern=r"^[1-9]\d*/[1-9]\d*$")


class AgentPart(_Part):
    """One agent with models and attempts of its own; what is left out comes from the run."""

    agent: str
    models: list[str] | None = None
    attempts: int | None = Field(None, ge=1)
    upstream: str | None = None


class JudgePart(_Part):
    """Who judges."""

    model: str
    name: str | None = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    refuter: str | None = None
    witnesses: Path | None = None
    case_usd: float | None = Field(None, ge=0)
    case_timeout_s: float = Field(1200.0, gt=0)
    evidence: Literal["minimal", "standard", "full"] = "minimal"


class ConditionsPart(_Part):
    """What changes an agent's chances; results under different conditions are never put into one table."""

    egress: Literal["none", "frozen", "open"] = "none"
    hosted_tools: bool = False
    media: Literal["native", "digest"] = "native"
    block: list[str] = Field(default_factory=list)
    """Hosts refused and flagged beside the dataset's own, under `frozen` and `open`."""
    packages: Literal["none", "mirror"] = "none"
    side_models: Literal["denied", "mapped"] = "denied"


class BudgetPart(_Part):
    """Caps of one trial, and `run_usd` of the whole run, judging included; 0 lifts a cap."""

    max_usd: float = Field(10.0, ge=0)
    max_tokens: int = Field(10_000_000, ge=0)
    max_requests: int = Field(400, ge=0)
    timeout_s: float = Field(3600.0, ge=1)
    run_usd: float = Field(0.0, ge=0)


class ConcurrencyPart(_Part):
    """How many trials and how many judged cases at a time; changes no result."""

    solve: int = Field(2, ge=1, le=256)
    judge: int = Field(2, ge=1, le=256)


class RunConfig(_Part):
    """The whole file; docs/runs.md explains every key."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str = ""
    dataset: DatasetPart = Field(default_factory=DatasetPart)
    agents: list[str | AgentPart] = Field(min_length=1)
    models: list[str] = Field(default_factory=list)
    attempts: int = Field(1, ge=1)
    judges: list[JudgePart] = Field(min_length=1)
    column: Literal["judge", "card", "witnessed"] = "witnessed"
    conditions: ConditionsPart = Field(default_factory=ConditionsPart)
    budget: BudgetPart = Field(default_factory=BudgetPart)
    concurrency: ConcurrencyPart = Field(default_factory=ConcurrencyPart)
    gateway: Path | None = None
    out: Path | None = None
    preflight: bool = True
    leak_audit: Literal["record", "required"] = "record"
    """`required`: a run in which a trial is FLAGGED or INCONCLUSIVE is incomplete until a person has looked."""

    @field_validator("judges")
    @classmethod
    def _judges_differ(cls, judges: list[JudgePart]) -> list[JudgePart]:
        names = [judge.name or judge.model for judge in judges]
        if len(set(names)) != len(names):
            raise ValueError("two judges have the same name; give each a `name`")
        return judges

    @model_validator(mode="after")
    def _shard_exists(self) -> RunConfig:
        if self.dataset.shard:
            part, parts = map(int, self.dataset.shard.split("/"))
            if part > parts:
                raise ValueError(f"dataset.shard is {self.dataset.shard}: there is no part {part} of {parts}")
        return self

    @property
    def folder(self) -> Path:
        return self.out or Path("runs") / self.name

    def warnings(self) -> list[str]:
        """Settings that are allowed and probably not meant."""
        said = []
        for judge in self.judges:
            if self.budget.timeout_s < 60:
                said.append(f"budget.timeout_s is {self.budget.timeout_s:g}: few agents end within a minute")
                break
            if judge.case_timeout_s < 60:
                said.append(f"judges.case_timeout_s is {judge.case_timeout_s:g}: a case takes longer than a minute")
        if self.dataset.seed is not None and self.dataset.limit is None:
            said.append("dataset.seed does nothing without dataset.limit: it chooses which tasks the limit keeps")
        if self.budget.max_usd == self.budget.max_tokens == self.budget.max_requests == 0:
            said.append("budget: every cap is lifted, so only timeout_s ends an agent that spends")
        return said


def read_config(path: Path) -> RunConfig:
    """Raises UsageError naming every fault at once, each unknown key with what was probably meant."""
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in _shipped().glob("*.yaml")))
        raise UsageError(f"{path} does not exist; runs that come with the package are in configs/runs/: {known}")
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UsageError(f"{path} must be a mapping with name, agents and judges; see configs/runs/sample.yaml")
    try:
        return RunConfig.model_validate(content)
    except ValidationError as error:
        faults = [_explained(fault) for fault in error.errors() if not _other_branch(fault)]
        raise UsageError(f"{path}:\n  " + "\n  ".join(dict.fromkeys(faults))) from error


def _shipped() -> Path:
    import configs

    return Path(configs.__file__).parent / "runs"


def _other_branch(fault: Any) -> bool:
    """The complaint that a mapping is no string, beside the one that says what is wrong with the mapping."""
    return fault["loc"][:1] == ("agents",) and fault["loc"][-1] == "str" and isinstance(fault.get("input"), dict)


def _explained(fault: Any) -> str:
    place = [str(part) for part in fault["loc"] if part not in ("str", "AgentPart")]
    where = ".".join(place) or "the file"
    if fault["type"] != "extra_forbidden":
        return f"{where}: {fault['msg'].removeprefix('Value error, ')}"
    known = _fields_at(place[:-1])
    near = difflib.get_close_matches(place[-1], known, n=1)
    return f"{where}: no such key; " + (f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}")


_PARTS: dict[str, type[_Part]] = {
    "dataset": DatasetPart,
    "agents": AgentPart,
    "judges": JudgePart,
    "conditions": ConditionsPart,
    "budget": BudgetPart,
    "concurrency": ConcurrencyPart,
}


def _fields_at(place: list[str]) -> list[str]:
    part: type[BaseModel] = _PARTS[place[0]] if place else RunConfig
    return sorted(part.model_fields)
