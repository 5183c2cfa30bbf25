"""A run's settings as the options of the verbs that do the work: the one place that knows both."""

from __future__ import annotations

from pathlib import Path

from runner.config import BudgetPart, ConditionsPart, JudgePart, RunConfig
from runner.entries import Entry

Argv = list[str]


def solve(config: RunConfig, entry: Entry, only: list[str], retry: str | None) -> Argv:
    """Solver inputs only: nothing of the evaluation root is ever an argument of this step."""
    argv = ["solve", "--dataset", str(config.dataset.root / "solver-inputs"), "--agent", entry.agent]
    argv += ["--out", str(config.folder), "--attempt", str(entry.attempt)]
    argv += ["--concurrency", str(config.concurrency.solve), "--timeout", f"{config.budget.timeout_s:g}"]
    if entry.model:
        argv += ["--model", entry.model]
    if entry.upstream:
        argv += ["--upstream", entry.upstream]
    if config.gateway:
        argv += ["--gateway", str(config.gateway)]
    if config.preflight and entry.model:  # asked before the first entry began
        argv += ["--no-model-check"]
    argv += _changed(config.budget, BudgetPart(), ("max_usd", "max_tokens", "max_requests"))
    argv += _changed(
        config.conditions, ConditionsPart(), ("egress", "hosted_tools", "media", "packages", "side_models")
    )
    if config.conditions.egress == "frozen":
        argv += _frozen(config)
    for host in config.conditions.block:
        argv += ["--block", host]
    return argv + _scope(only) + _retry(retry)


def prepare(config: RunConfig, entry: Entry, only: list[str]) -> Argv:
    argv = ["prepare", "--dataset", str(config.dataset.root / "evaluation-inputs")]
    argv += ["--submissions", str(entry.submissions), "--out", str(entry.cases.parent)]
    return argv + (["--plans", str(config.dataset.plans)] if config.dataset.plans else []) + _scope(only)


def judge(config: RunConfig, entry: Entry, who: JudgePart, results: Path, retry: str | None) -> Argv:
    argv = ["judge", "--cases", str(entry.cases), "--out", str(results), "--model", who.model]
    argv += ["--concurrency", str(config.concurrency.judge), "--start-replays", str(config.folder / "start")]
    for option, value in (
        ("--refuter-model", who.refuter),
        ("--witnesses", who.witnesses),
        ("--case-usd", who.case_usd),
        ("--evidence", None if who.evidence == "minimal" else who.evidence),
    ):
        if value is not None:
            argv += [option, str(value)]
    return argv + _frozen(config) + _retry(retry)


def preflight(config: RunConfig, only: list[str]) -> Argv:
    argv = ["dataset", "preflight", "--dataset", str(config.dataset.root / "solver-inputs")]
    return argv + _frozen(config) + _scope(only)


def leaks(results: Path) -> Argv:
    return ["audit", "leaks", str(results)]


def score(results: Path) -> Argv:
    argv = ["score", "--cases", str(results / "cases.json"), "--results", str(results / "journal.jsonl")]
    return [*argv, "--out", str(results / "scores.json")]


def _changed(part: BudgetPart | ConditionsPart, usual: BudgetPart | ConditionsPart, names: tuple[str, ...]) -> Argv:
    """Options that differ from what the verb takes by itself."""
    argv: Argv = []
    for name in names:
        value = getattr(part, name)
        if value != getattr(usual, name):
            option = "--" + name.replace("_", "-")
            argv += [option] if value is True else [option, str(value)]
    return argv


def _frozen(config: RunConfig) -> Argv:
    return ["--frozen", str(config.dataset.frozen)] if config.dataset.frozen else []


def _scope(only: list[str]) -> Argv:
    return ["--only", ",".join(only)] if only else []


def _retry(retry: str | None) -> Argv:
    return ["--retry", retry] if retry else []
