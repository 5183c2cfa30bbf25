"""A solve run without an engine: what is tried again, what is not begun, and what is left alone."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.atomic import write_bytes, write_json
from bench.errors import InfraError, Interrupted
from bench.journal import Journal, of_type, read_journal
from bench.task import Dataset, Task, open_dataset
from harness.agents.noop import NoopAgent
from harness.run import MAX_TRIES, SolveSettings, last_trials, solve
from harness.trial import TrialResult

MakeDataset = Callable[..., Path]


class Broken:
    """A sandbox factory whose engine is away."""

    def __init__(self) -> None:
        self.opened = 0

    def __call__(self, _spec: object) -> Any:
        self.opened += 1
        raise InfraError("the engine is away")


@pytest.fixture
def dataset(make_dataset: MakeDataset) -> Dataset:
    return open_dataset(make_dataset({name: {"index.html": "x"} for name in ("one", "two", "three")}))


def entry_with(tmp_path: Path, *trials: dict[str, Any]) -> Path:
    entry = tmp_path / "runs" / "noop__none__1"
    with Journal(entry / "journal.jsonl") as journal:
        for trial in trials:
            journal.append({"type": "trial", "digest": None, **trial})
    return entry


def settings(tmp_path: Path, **changed: Any) -> SolveSettings:
    return SolveSettings(out=tmp_path / "runs", image="none", concurrency=1, **changed)


def test_infrastructure_is_tried_again_bounded_and_waits_for_the_engine(dataset: Dataset, tmp_path: Path) -> None:
    broken, waits = Broken(), []
    found = solve(
        dataset, NoopAgent("noop"), settings(tmp_path, await_engine=lambda stop: waits.append(stop())), broken, print
    )
    assert set(found.outcomes.values()) == {"infra_error"}
    assert not found.complete
    assert broken.opened == 3 * MAX_TRIES
    assert waits == [False] * 3 * (MAX_TRIES - 1)


def test_c41_money_of_a_trial_that_was_stopped_or_broke_stays_on_record(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def paid(task: Task, _agent: object, _settings: object, folder: Path, _factory: object) -> TrialResult:
        if task.case_id == "one":  # its gateway added up, and then the machine failed
            write_json(folder / "gateway.json", {"trial": "t", "calls": 9, "cost_usd": 4.5, "ending": "ok"})
            return TrialResult(task.case_id, "infra_error", "the engine is away")
        if task.case_id == "three":  # the gateway died with it: only single calls are on record
            call = {"n": 1, "kind": "model", "protocol": "chat", "method": "POST", "path": "/", "started_at": "",
                    "duration_s": 1.0}  # fmt: skip
            write_bytes(folder / "gateway.jsonl", json.dumps(call).encode() + b"\n")
            return TrialResult(task.case_id, "infra_error", "the engine is away")
        os.kill(os.getpid(), signal.SIGTERM)
        assert told_to_stop.wait(30)
        return TrialResult(task.case_id, "infra_error", "stopped", account={"calls": 1, "cost_usd": 0.5})

    told_to_stop = threading.Event()
    monkeypatch.setattr("harness.run.run_trial", paid)
    with pytest.raises(Interrupted):
        solve(dataset, NoopAgent("noop"), settings(tmp_path), Broken(), print, on_stop=told_to_stop.set)
    journal = tmp_path / "runs/noop__none__1/journal.jsonl"
    told = [(r["case"], r["outcome"], r["account"]) for r in of_type(read_journal(journal).records, "trial")]
    assert set(map(str, told)) == {
        str(("one", "infra_error", {"calls": 9, "cost_usd": 4.5})),
        str(("three", "infra_error", {"cost_usd": None})),
        str(("two", "cancelled", {"calls": 1, "cost_usd": 0.5})),
    }


@pytest.mark.parametrize(
    ("retry", "tried"),
    [("infra", ["one"]), ("judge", []), ("three", ["three"]), (None, ["one", "three"])],
)
def test_c118_retry_chooses_among_what_is_unscored(
    dataset: Dataset, tmp_path: Path, retry: str | None, tried: list[str]
) -> None:
    entry = entry_with(
        tmp_path,
        {"case": "one", "outcome": "infra_error"},
        {"case": "two", "outcome": "workspace_too_large"},  # final: it counts 0 and is never tried again
        {"case": "three", "outcome": "cancelled"},
    )
    solve(dataset, NoopAgent("noop"), settings(tmp_path, retry=retry), Broken(), print)
    records = list(of_type(read_journal(entry / "journal.jsonl").records, "trial"))[3:]
    assert sorted({record["case"] for record in records}) == tried
    assert last_trials(entry)["two"] == "workspace_too_large"


def test_c41_no_trial_begins_once_the_run_has_reached_its_cap(dataset: Dataset, tmp_path: Path) -> None:
    entry = entry_with(tmp_path, TrialResult("one", "workspace_too_large", account={"cost_usd": 4.0}).record())
    broken = Broken()
    found = solve(dataset, NoopAgent("noop"), settings(tmp_path, run_usd=10.0, spent_usd=6.5), broken, print)
    assert found.outcomes == {"one": "workspace_too_large", "three": "not_started", "two": "not_started"}
    assert broken.opened == 0
    reasons = {
        r["case"]: r["reason"]
        for r in of_type(read_journal(entry / "journal.jsonl").records, "trial")
        if "reason" in r
    }
    assert reasons["two"] == "the run's cap of 10 USD is reached (10.50)"
    solve(dataset, NoopAgent("noop"), settings(tmp_path, run_usd=20.0, spent_usd=6.5), broken, print)
    assert broken.opened > 0  # raised: the same entry goes on


def test_a_cost_that_is_not_known_holds_no_cap_and_so_ends_the_run(dataset: Dataset, tmp_path: Path) -> None:
    entry_with(tmp_path, TrialResult("one", "workspace_too_large", account={"cost_usd": None}).record())
    broken = Broken()
    found = solve(dataset, NoopAgent("noop"), settings(tmp_path, run_usd=10.0), broken, print)
    assert (found.outcomes["two"], broken.opened) == ("not_started", 0)


def test_c41_a_try_that_was_killed_with_its_run_is_paid_for(dataset: Dataset, tmp_path: Path) -> None:
    entry = entry_with(tmp_path, {"case": "one", "outcome": "infra_error", "try": 1, "logs": "trials/one/1"})
    (entry / "trials/one/1").mkdir(parents=True)
    write_json(entry / "trials/one/1/gateway.json", {"trial": "t", "calls": 1, "cost_usd": 9.0, "ending": "ok"})
    (entry / "trials/one/2").mkdir()
    write_json(entry / "trials/one/2/gateway.json", {"trial": "t", "calls": 3, "cost_usd": 1.5, "ending": "ok"})
    (entry / "trials/two/1").mkdir(parents=True)  # killed before it had called its model
    for _ in range(2):  # and only once
        solve(dataset, NoopAgent("noop"), settings(tmp_path), Broken(), print)
    told = [
        (r["case"], r["try"], r["account"])
        for r in of_type(read_journal(entry / "journal.jsonl").records, "trial")
        if r["outcome"] == "cancelled"
    ]
    assert told == [("one", 2, {"calls": 3, "cost_usd": 1.5})]
