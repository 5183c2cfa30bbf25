"""The watch over a running agent: its clock, its budget, its silence."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.watch import Watch


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def watched(tmp_path: Path, **gateway: Any) -> tuple[Watch, Clock, SimpleNamespace, list[str]]:
    told = SimpleNamespace(calls=0, in_flight=0, waited_s=0.0, exhausted="", **gateway)
    clock, said = Clock(), []
    line: Any = SimpleNamespace(summary=lambda: told)
    watch = Watch(100, line, (tmp_path / "out",), said.append, quiet_s=30, budget_grace_s=5, clock=clock)
    return watch, clock, told, said


def test_the_deadline_is_the_agents_own(tmp_path: Path) -> None:
    watch, clock, told, _ = watched(tmp_path)
    clock.now += 99
    told.waited_s = 40
    assert not watch()
    clock.now += 40
    assert not watch()  # 139 s have passed, 40 of which a rate limit held it back
    clock.now += 2
    assert watch()
    assert watch.why == "timeout"


def test_a_budget_that_is_used_up_leaves_a_moment(tmp_path: Path) -> None:
    watch, clock, told, _ = watched(tmp_path)
    told.exhausted = "usd"
    clock.now += 3
    assert not watch()
    clock.now += 6
    assert watch()
    assert watch.why == "budget"


def test_c32_silence_is_reported_and_again_when_it_lasts(tmp_path: Path) -> None:
    watch, clock, told, said = watched(tmp_path)
    (tmp_path / "out").write_text("something")
    watch()
    for _ in range(7):
        clock.now += 10
        watch()
    assert said == ["no output for 30 s", "no output for 60 s"]
    (tmp_path / "out").write_text("something more")
    watch()
    told.calls = 1
    clock.now += 20
    watch()
    assert len(said) == 2
