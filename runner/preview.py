"""`cdb run --dry-run`: what would be run, and what it may cost. No model is called and no container started."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from bench.release import DATASET_CARD, extract, open_release
from bench.strict_json import read_json
from bench.task import Dataset
from runner.config import JudgePart, RunConfig
from runner.entries import Entry, entries, judge_name
from runner.scope import choose
from sandboxes.gateway.policy import GatewayConfig, load_config
from sandboxes.gateway.prices import PriceTable, cost_usd
from sandboxes.gateway.usage import Tokens

WITHOUT_MODEL = ("recorded",)


class Load(NamedTuple):
    """What one unit of work asks of a model: calls, and tokens in (new and cached) and out, over all of them."""

    calls: int
    fresh: int
    cached: int
    output: int


SOLVE_LOW, SOLVE_EXPECTED = Load(15, 60_000, 300_000, 8_000), Load(60, 250_000, 2_500_000, 35_000)
"""A trial: rough figures for command-line agents on web applications; a forecast, not a measurement."""
JUDGE_LOW, JUDGE_EXPECTED = Load(4, 15_000, 40_000, 2_000), Load(12, 40_000, 300_000, 8_000)
"""One criterion, judge or refuter."""
DEFAULT_CASE_USD = 2.0


def preview(config: RunConfig) -> dict[str, Any]:
    """Roles with their calls and money: `low`, `expected`, `worst`; null is unknown. Raises as the run would."""
    with tempfile.TemporaryDirectory(prefix="cdb-preview-") as scratch:
        config = _extracted(config, Path(scratch))
        dataset, _ = choose(config.dataset)
        tasks, criteria = len(dataset.tasks), _criteria(dataset, config)
        made = entries(config)
        prices = _prices(config)
        roles = [_solver(entry, config, tasks, prices) for entry in made]
        for judge in config.judges:
            roles += _judges(judge, len(made), tasks, criteria, prices)
        return {
            "schema": "cdb.preview/1",
            "run": config.name,
            "scope": dataset.scope["label"],
            "tasks": tasks,
            "criteria": criteria,
            "entries": [entry.name for entry in made],
            "trials": tasks * len(made),
            "roles": roles,
            "usd": {key: _total([role["usd"][key] for role in roles]) for key in ("low", "expected", "worst")},
            "solve_cap_usd": config.budget.run_usd or None,
            "calls": {key: _total([role["calls"][key] for role in roles]) for key in ("low", "expected", "worst")},
            "longest_h": round(config.budget.timeout_s * tasks * len(made) / config.concurrency.solve / 3600, 1),
        }


def _extracted(config: RunConfig, scratch: Path) -> RunConfig:
    """The same run over a scratch copy of its dataset, where that was not extracted yet."""
    part = config.dataset
    if part.release is None or (part.root / "solver-inputs" / "cases").is_dir():
        return config
    release = Path(part.release)
    if part.release == "sample":
        from evaluator.sample_release import make_sample_release

        release = make_sample_release(scratch / "release")
    extract(open_release(release), scratch / "work")
    return config.model_copy(update={"dataset": part.model_copy(update={"root": scratch / "work"})})


def _criteria(dataset: Dataset, config: RunConfig) -> int | None:
    """How many criteria the tasks in scope have, by the release's own count; in proportion for a subset."""
    card = config.dataset.root / "solver-inputs" / DATASET_CARD
    if not card.is_file():
        return None
    whole = read_json(card).get("criteria")
    if not isinstance(whole, int):
        return None
    return round(whole * len(dataset.tasks) / len(dataset.declared))


def _prices(config: RunConfig) -> PriceTable:
    """The gateway's own table: the run's file first, then litellm's."""
    told = load_config(config.gateway) if config.gateway else GatewayConfig()
    return PriceTable(told.prices, told.prices_file)


def _solver(entry: Entry, config: RunConfig, tasks: int, prices: PriceTable) -> dict[str, Any]:
    if entry.model is None:
        return _role(f"solve {entry.name}", None, *[(0, 0.0)] * 3)
    cap = config.budget
    worst_calls = cap.max_requests * tasks if cap.max_requests else None
    worst_usd = cap.max_usd * tasks if cap.max_usd else None
    low, expected = (_load(entry.model, load, tasks, prices) for load in (SOLVE_LOW, SOLVE_EXPECTED))
    return _role(f"solve {entry.name}", entry.model, low, expected, (worst_calls, worst_usd))


def _judges(
    judge: JudgePart, made: int, tasks: int, criteria: int | None, prices: PriceTable
) -> list[dict[str, Any]]:
    cap = judge.case_usd if judge.case_usd is not None else DEFAULT_CASE_USD
    roles = []
    for what, model in (("judge", judge.model), ("refute", judge.refuter)):
        if model is None:
            continue
        if model in WITHOUT_MODEL:
            roles.append(_role(f"{what} {judge_name(judge)}", None, *[(0, 0.0)] * 3))
            continue
        units = None if criteria is None else criteria * made
        worst = (cap * tasks * made or None) if what == "judge" else 0.0  # one cap holds judge and refuter
        low, expected = (_load(model, load, units, prices) for load in (JUDGE_LOW, JUDGE_EXPECTED))
        roles.append(_role(f"{what} {judge_name(judge)}", model, low, expected, (None, worst)))
    return roles


def _load(model: str, load: Load, units: int | None, prices: PriceTable) -> tuple[int | None, float | None]:
    """Calls and USD of `units` units of work; None where it is not known."""
    if units is None:
        return None, None
    calls = load.calls * units
    provider, _, name = model.rpartition("/")
    price = prices.find(name, provider)
    if price is None:
        return calls, None
    one = Tokens(
        input=load.fresh // load.calls, cache_read=load.cached // load.calls, output=load.output // load.calls
    )
    return calls, round(calls * cost_usd(price, one), 2)


def _role(name: str, model: str | None, *told: tuple[int | None, float | None]) -> dict[str, Any]:
    keys = ("low", "expected", "worst")
    return {
        "role": name,
        "model": model,
        "calls": {key: calls for key, (calls, _) in zip(keys, told, strict=True)},
        "usd": {key: usd for key, (_, usd) in zip(keys, told, strict=True)},
    }


def _total(values: list[Any]) -> Any:
    """The sum; unknown as soon as one part is."""
    return None if None in values else round(sum(values), 2)


def lines(found: dict[str, Any]) -> list[str]:
    """What is printed without --json."""
    said = [
        f"{found['run']}: {found['scope']}, {_shown(found['criteria'])} criteria; "
        f"{len(found['entries'])} entries, {found['trials']} trials",
        f"{'role':<44}{'calls low':>11}{'expected':>11}{'worst':>11}{'USD low':>11}{'expected':>11}{'worst':>11}",
    ]
    for role in [*found["roles"], {"role": "all", "calls": found["calls"], "usd": found["usd"]}]:
        cells = [role[what][key] for what in ("calls", "usd") for key in ("low", "expected", "worst")]
        said.append(f"{role['role'][:43]:<44}" + "".join(f"{_shown(cell):>11}" for cell in cells))
    if found["solve_cap_usd"]:
        said.append(f"solving stops at {found['solve_cap_usd']:g} USD (budget.run_usd)")
    said.append(f"agents at work at most {found['longest_h']:g} h; nothing was started and no model was called")
    return said


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)
