"""This machine and the whole way once: doctor, clean, demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import CdbError, UsageError
from verbs.options import Concurrency, Json, answer, progress

if TYPE_CHECKING:
    from sandboxes.doctor import Check


def doctor(
    escape_suite: Annotated[
        bool, typer.Option("--escape-suite", help="Try to get out of a container instead, in over a hundred ways.")
    ] = False,
    agent: Annotated[str | None, typer.Option(help="Ask this agent's model for one word, too.")] = None,
    model: Annotated[str | None, typer.Option(help="That model.")] = None,
    upstream: Annotated[str | None, typer.Option(help="Who answers; by default the model's provider.")] = None,
    gateway: Annotated[Path | None, typer.Option(help="Upstreams as YAML (docs/gateway.md).")] = None,
    as_json: Json = False,
) -> None:
    """What this machine can do and enforce, each fault with its remedy."""
    if escape_suite:
        return _escape_suite(as_json)
    from sandboxes.doctor import run_checks

    if (agent is None) != (model is None):
        raise UsageError("--agent and --model go together: the one says how the other is asked")
    found = run_checks()
    if agent is not None:
        found = (*found, _model_check(agent, model, upstream, gateway))
    lines = [
        f"{'ok  ' if c.ok else 'FAIL'} {c.name}: {c.detail}" + (f"\n     {c.remedy}" if not c.ok else "")
        for c in found
    ]
    answer(as_json, {"checks": [c._asdict() for c in found]}, lines)
    if not all(c.ok for c in found):
        raise typer.Exit(1)


def _model_check(agent: str, model: str | None, upstream: str | None, gateway: Path | None) -> Check:
    from harness.agents.catalogue import find_agent
    from harness.model_check import check_wish
    from harness.models import ModelWish
    from sandboxes.doctor import Check

    try:
        found = check_wish(find_agent(agent, model), ModelWish(gateway, upstream))
    except CdbError as error:
        return Check(
            "model", False, str(error), "correct the model's name, its key or its upstream (docs/gateway.md)"
        )
    return Check("model", True, found.note or f"{found.model} answers over {found.upstream}", "")


def _escape_suite(as_json: bool) -> None:
    from sandboxes.escape.suite import run_suite

    found = run_suite()
    counts = {came: sum(f.came == came for f in found) for came in ("contained", "escaped", "unproved")}
    lines = [f"{f.came:<9} {f.group:<10} {f.name:<28} {f.what}\n{'':21}{f.evidence}" for f in found]
    lines.append(f"{len(found)} attempts: " + ", ".join(f"{number} {came}" for came, number in counts.items()))
    answer(as_json, {"attempts": [f._asdict() for f in found], **counts}, lines)
    if counts["escaped"] or counts["unproved"]:
        raise typer.Exit(1)


def clean(
    everything: Annotated[bool, typer.Option("--all", help="Also what belongs to runs that are alive.")] = False,
    kept: Annotated[bool, typer.Option("--kept", help="Also what `solve --keep-failed` kept.")] = False,
    as_json: Json = False,
) -> None:
    """Remove containers, volumes and networks of dead runs; nothing that is not labelled as ours."""
    from sandboxes.reap import reap

    removed = reap(all_mine=everything, kept=kept)
    lines = [f"removed {thing.kind} {thing.name}" for thing in removed]
    answer(as_json, {"removed": [thing._asdict() for thing in removed]}, lines or ["nothing to remove"])


def demo(
    out: Annotated[Path | None, typer.Option(help="Where everything is written; default runs/demo-TIME.")] = None,
    concurrency: Concurrency = 3,
    as_json: Json = False,
) -> None:
    """The whole way on the sample release: three recorded agents solved, judged, scored, reported."""
    from evaluator.demo import run_demo

    found = run_demo(out, concurrency=concurrency, progress=progress)
    answer(as_json, found.as_json(), found.lines())
