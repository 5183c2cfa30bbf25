"""Flows that work on the start application, recorded as preservation witnesses and replayed on the submission."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from bench.atomic import write_json
from evaluator.browser import AppBrowser
from evaluator.first_look.facts import Flow, State
from evaluator.first_look.states import named, steps_of
from evaluator.records import Replay
from evaluator.replay import run_witness
from evaluator.witness import Witness, WitnessError, load_witness

MAX_CHECKS = 3
_SEEN_BY_ROLE = ("heading", "button", "link", "textbox", "dialog", "tab", "img", "checkbox", "listitem", "alert")
_VALUE_ROLES = ("text", "paragraph")


def witness_of(state: State) -> Witness | None:
    """The state as a witness: its action, then what came with it; None where nothing that can be checked did."""
    checks: list[dict[str, Any]] = []
    path = state.path
    if urlsplit(path).fragment or urlsplit(path).path not in ("", "/"):
        checks.append({"expect": "url", "contains": path})
    for line in state.shows:
        if len(checks) >= MAX_CHECKS:
            break
        if (check := _check(line)) is not None:
            checks.append(check)
    if not checks:
        return None
    try:
        return load_witness({"schema": "cdb.witness/1", "steps": [*steps_of(state.action), *checks]})
    except WitnessError:
        return None  # a name that the language cannot hold; the state is listed all the same


def _check(line: str) -> dict[str, Any] | None:
    if found := named(line):
        role, name = found
        if role in _SEEN_BY_ROLE and name:
            return {"expect": "visible", "target": {"role": role, "name": name}}
        return None
    role, _, text = line.removeprefix("- ").partition(": ")
    text = text.strip().strip('"')
    if role in _VALUE_ROLES and 3 <= len(text) <= 120 and "\\" not in text:
        return {"expect": "visible", "target": {"text": text, "exact": True}}
    return None


def record_flows(browser: AppBrowser, states: list[State], folder: Path, results: Path, most: int) -> list[Flow]:
    """Flows that hold on the start, on a fresh visit and twice, so that what shows the time of day is left out.

    Their witnesses go to `folder`/flows."""
    flows: list[Flow] = []
    for state in states:
        if len(flows) >= most:
            break
        witness = witness_of(state) if state.changed and not state.problem else None
        if witness is None or any(flow.witness_sha256 == witness.digest() for flow in flows):
            continue
        replays = [_run(browser, witness, "start", results) for _ in range(2)]
        if any(replay.outcome != "held" for replay in replays):
            continue
        path = folder / "flows" / f"{len(flows) + 1:02d}.witness.json"
        write_json(path, witness.model_dump(mode="json", by_alias=True))
        name = f"{state.action['do']} {state.action['target']['role']} “{state.action['target']['name']}”"
        flows.append(
            Flow(
                name=name,
                witness=str(path.relative_to(folder)),
                witness_sha256=witness.digest(),
                start=replays,
            )
        )
    return flows


def replay_flows(browser: AppBrowser, flows: list[Flow], folder: Path, results: Path) -> list[Flow]:
    """Each flow on the submission; one that fails is tried a second time. An `error` says nothing of it."""
    replayed = []
    for flow in flows:
        witness = load_witness((folder / flow.witness).read_text(encoding="utf-8"))
        replays = [_run(browser, witness, "submission", results)]
        if replays[0].outcome != "held":
            replays.append(_run(browser, witness, "submission", results))
        lost = all(replay.outcome == "failed" for replay in replays)
        replayed.append(flow.model_copy(update={"submission": replays, "lost": lost}))
    return replayed


def _run(browser: AppBrowser, witness: Witness, app: Literal["start", "submission"], results: Path) -> Replay:
    return run_witness(browser, witness, app=app, purpose="propose", frames_dir=None, results_root=results)
