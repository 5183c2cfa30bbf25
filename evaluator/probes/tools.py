"""The probes as one tool of a refuter's conversation. They cost visits: they run when asked for, and are recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluator.judges.judge import Claim, Exhibits
from evaluator.judges.model.toolbox import Output, Refused, Tool, ToolInput, tool
from evaluator.judges.model.verdict import Quote
from evaluator.probes import runs, source, state
from evaluator.probes.facts import Ground
from evaluator.probes.pictures import image_pair
from evaluator.records import Citation, ProbeFacts
from evaluator.witness import Witness, WitnessError

MOST_PROBES = 12
"""Of one conversation: a probe opens up to five pages."""

ProbeName = Literal[
    "state_delta",
    "varied_inputs",
    "literal_near_handler",
    "reachable",
    "repeated",
    "reversed_inputs",
    "after_reload",
    "preserved",
    "assets",
    "coverage",
    "masked",
    "warm_profile",
    "shifted_clock",
    "on_phone",
    "image_pair",
]
OF_WITNESS: dict[str, Callable[[Ground, Witness], ProbeFacts]] = {
    "state_delta": state.state_delta,
    "varied_inputs": runs.varied_inputs,
    "literal_near_handler": source.literal_near_handler,
    "reachable": state.reachable,
    "repeated": runs.repeated,
    "reversed_inputs": runs.reversed_inputs,
    "after_reload": runs.after_reload,
    "masked": runs.masked,
    "warm_profile": runs.warm_profile,
    "shifted_clock": runs.shifted_clock,
    "on_phone": runs.on_phone,
}
DESCRIPTION = """Have the harness look at one claim and tell facts:
state_delta: what each action of its witness changes; varied_inputs: other inputs (yours in `inputs`, or made up);
literal_near_handler: inputs written down in new code beside a handler; reachable: visible, not covered, by
keyboard, on a phone; repeated: three fresh runs; reversed_inputs: its inputs in one visit, last first;
after_reload: its last checks after a reload; preserved: its witness as a flow that had to be kept; assets: files
that are gone or asked for in vain; coverage: whether the lines in `citations` run; masked: without signs of
automation, in another window; warm_profile: a second visit with what the first stored; shifted_clock: on another
day; on_phone; image_pair: start and submission as pictures."""


class Probe(ToolInput):
    sub: str = Field(description="the claim's id")
    probe: ProbeName
    inputs: list[dict[str, str]] = Field(default_factory=list, max_length=runs.MOST_SETS)
    citations: list[Quote] = Field(default_factory=list, max_length=12)


def probe_tools(exhibits: Exhibits, claims: tuple[Claim, ...], folder: Path) -> list[Tool]:
    """The tool `probe` for the claims of one criterion. What ran is kept in `folder`/probes.jsonl."""
    by_id = {claim.sub: claim for claim in claims}
    done: list[ProbeFacts] = []
    ground = Ground(exhibits.running, exhibits.submission, exhibits.start, folder)

    def run(wanted: Probe) -> Output:
        if wanted.sub not in by_id:
            raise Refused(f"{wanted.sub!r} is no claim here; there are: {', '.join(by_id)}")
        if len(done) >= MOST_PROBES:
            raise Refused(f"{MOST_PROBES} probes were run, the most for one criterion; give your verdict")
        try:
            found = probed(ground, wanted, by_id[wanted.sub].witness)
        except WitnessError as error:
            raise Refused(str(error)) from error
        found.sub = wanted.sub
        done.append(found)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "probes.jsonl").open("a", encoding="utf-8", errors="backslashreplace") as lines:
            lines.write(json.dumps(found.model_dump(mode="json"), ensure_ascii=False) + "\n")
        return Output("\n".join(found.facts), f"{wanted.probe} on {wanted.sub}: {found.finding}")

    return [tool("probe", DESCRIPTION, Probe, run)]


def probed(ground: Ground, wanted: Probe, witness: Witness | None) -> ProbeFacts:  # noqa: PLR0911 - one line each
    """One probe's facts. Raises Refused where the claim has no witness to look at, WitnessError for bad inputs."""
    if wanted.probe == "assets":
        return source.assets(ground)
    if witness is None and wanted.probe == "image_pair":
        return image_pair(ground)
    if witness is None:
        raise Refused(f"{wanted.sub} has no witness; only assets and image_pair can be asked for")
    match wanted.probe:
        case "image_pair":
            return image_pair(ground, witness.with_inputs(None).path, witness.viewport)
        case "varied_inputs":
            return runs.varied_inputs(ground, witness, wanted.inputs)
        case "preserved":
            return runs.preserved(ground, {wanted.sub: witness})
        case "coverage":
            if not wanted.citations:
                raise Refused("coverage needs citations: the lines that are said to do it")
            cited = [Citation(path=one.path, quote=one.quote) for one in wanted.citations]
            return source.coverage(ground, witness, cited)
        case _:
            return OF_WITNESS[wanted.probe](ground, witness)
