"""The solver's side, and runs of both sides: solve, run, status, agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verbs.options import Concurrency, Json, Only, Retry, address, answer, case_ids, progress

agents_app = typer.Typer(rich_markup_mode=None, help="The agents there are; install their command lines.")
ENGINE_BACK_S = 120.0
"""How long a trial that infrastructure failed waits for the engine before it is tried again."""


def solve(
    dataset: Annotated[Path, typer.Option(help="The extracted solver inputs.")],
    agent: Annotated[str, typer.Option(help="A shipped agent's name or a YAML file (docs/agents.md).")],
    out: Annotated[Path, typer.Option(help="The run's folder; each entry gets its own below it.")] = Path("runs/run"),
    model: Annotated[str | None, typer.Option(help="Model name handed to the agent.")] = None,
    upstream: Annotated[
        str | None, typer.Option(help="Who answers its model calls; by default its provider.")
    ] = None,
    gateway: Annotated[Path | None, typer.Option(help="Upstreams and prices as YAML (docs/gateway.md).")] = None,
    max_usd: Annotated[float, typer.Option(min=0, help="Budget of a task; 0 is none.")] = 10.0,
    max_tokens: Annotated[int, typer.Option(min=0, help="The same in tokens.")] = 10_000_000,
    max_requests: Annotated[int, typer.Option(min=0, help="The same in model calls.")] = 400,
    hosted_tools: Annotated[bool, typer.Option(help="Let the provider's own web search and the like run.")] = False,
    egress: Annotated[str, typer.Option(help="Network of the agent: none, frozen or open.")] = "none",
    frozen: Annotated[
        Path | None, typer.Option(help="The recorded resources of --egress frozen (`cdb dataset freeze`).")
    ] = None,
    block: Annotated[
        list[str] | None, typer.Option(help="A host, and all below it, refused beside the dataset's own.")
    ] = None,
    allow_private: Annotated[
        list[str] | None,
        typer.Option(help="ADDRESS:PORT that --egress open may reach although it is not public. Recorded."),
    ] = None,
    media: Annotated[
        str, typer.Option(help="native, or digest: the same texts and frames for every agent.")
    ] = "native",
    packages: Annotated[
        str, typer.Option(help="Registries of npm and pip in the container: none, or mirror (read only, logged).")
    ] = "none",
    side_models: Annotated[
        str, typer.Option(help="Calls for another model than --model: denied, or mapped to it. Recorded.")
    ] = "denied",
    model_check: Annotated[
        bool, typer.Option(help="Ask the model for one word first, so that a misspelt one costs no trial.")
    ] = True,
    attempt: Annotated[int, typer.Option(min=1)] = 1,
    submissions: Annotated[Path | None, typer.Option(help="Put the submissions here instead.")] = None,
    only: Only = "",
    concurrency: Concurrency = 2,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds an agent may take for a task.")] = 3600.0,
    run_usd: Annotated[
        float, typer.Option(min=0, help="No trial begins once the run has spent this; 0: no cap.")
    ] = 0.0,
    spent_usd: Annotated[float, typer.Option(min=0, help="What the run's other entries have spent of it.")] = 0.0,
    retry: Retry = None,
    keep_failed: Annotated[
        bool, typer.Option("--keep-failed", help="Keep the frozen container of every trial that did not end ok.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Let an agent solve tasks in isolated containers; seal what it leaves as submissions."""
    from bench.task import open_solver_inputs
    from harness.agents.catalogue import find_agent
    from harness.models import Conditions, ModelWish, model_settings, open_egress
    from harness.packages import check_registries
    from harness.run import SolveSettings
    from harness.run import solve as solve_entry
    from sandboxes.canary import check_no_egress
    from sandboxes.docker_sandbox import DockerSandbox, kill_open_sandboxes
    from sandboxes.engine import wait_until_up
    from sandboxes.gateway.policy import Caps
    from sandboxes.images import image_tag
    from sandboxes.packs.store import need_pack
    from sandboxes.reap import reap

    chosen = find_agent(agent, model)
    allowed = tuple(sorted({address(text) for text in allow_private or []}))
    conditions = Conditions(egress, hosted_tools, media, frozen, tuple(block or ()), allowed, packages, side_models)
    conditions.check()
    if packages == "mirror":
        check_registries()
    wish = ModelWish(
        gateway, upstream, Caps(usd=max_usd or None, tokens=max_tokens or None, requests=max_requests or None)
    )
    identity = wish.describe(chosen)
    if chosen.pack:
        need_pack(chosen.pack).check()
    tasks = open_solver_inputs(dataset, case_ids(only))
    reap()
    check_no_egress(image_tag("base"))
    image = image_tag("solver")
    with (
        model_settings(chosen, wish, conditions) as models,
        open_egress(conditions, image=image, run=out.name or "run") as way_out,
    ):
        settings = SolveSettings(
            out=out,
            image=image,
            submissions=submissions,
            attempt=attempt,
            timeout_s=timeout,
            concurrency=concurrency,
            keep_failed=keep_failed,
            run_usd=run_usd or None,
            spent_usd=spent_usd,
            retry=retry,
            await_engine=lambda give_up: wait_until_up(ENGINE_BACK_S, give_up),
            conditions=conditions,
            models=models,
            model_check=model_check,
            egress=way_out,
            model_identity=identity,
        )
        summary = solve_entry(tasks, chosen, settings, DockerSandbox, progress, kill_open_sandboxes)
    found = {"entry": str(summary.entry), "submissions": str(summary.submissions), "outcomes": summary.outcomes}
    answer(as_json, found, [f"{len(summary.outcomes)} trials; submissions in {summary.submissions}"])
    if not summary.complete:
        raise typer.Exit(3)


def run_config(
    config: Annotated[Path, typer.Argument(help="The run as one YAML file (docs/runs.md, configs/runs/).")],
    retry: Annotated[
        str | None, typer.Option(help="Only what is unscored for this reason: infra, judge, or one case's name.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run and what it may cost; start nothing.")
    ] = False,
    only: Only = "",
    as_json: Json = False,
) -> None:
    """Run a whole matrix from one file: solve, judge, score, compare, report. The same command goes on."""
    from runner.conduct import conduct
    from runner.config import read_config
    from runner.preview import lines as preview_lines
    from runner.preview import preview

    wanted = read_config(config)
    if only:
        wanted.dataset.only = list(case_ids(only))
    for warning in wanted.warnings():
        progress(f"warning: {warning}")
    if dry_run:
        foreseen = preview(wanted)
        answer(as_json, foreseen, preview_lines(foreseen))
        return
    result = conduct(wanted, config, retry)
    rows = [f"{name}: {told['label']}" for name, told in result.scores.items()]
    answer(as_json, result.as_json(), [*rows, f"report: {result.report}"])
    if not result.complete:
        raise typer.Exit(3)


def status(
    run: Annotated[Path, typer.Argument(help="The run's folder, as `cdb run` writes it.")], as_json: Json = False
) -> None:
    """How a run stands: cases, phases, ages, spending, last events; from any shell, running or not."""
    from runner.standing import lines, standing

    found = standing(run)
    answer(as_json, found.as_json(), lines(found))
    if any(one.stuck for one in found.busy):
        raise typer.Exit(3)


@agents_app.callback(invoke_without_command=True)
def agents(context: typer.Context, as_json: Json = False) -> None:
    """The agents there are: what each needs, passes natively, and whether it is installed."""
    if context.invoked_subcommand:
        return
    from harness.agents.overview import lines, overview

    rows = overview()
    answer(as_json, {"agents": rows}, lines(rows))


@agents_app.command("install")
def agents_install(
    names: Annotated[list[str], typer.Argument(help="Agents to install, or `all`.")],
    again: Annotated[bool, typer.Option("--again", help="Install anew what is installed already.")] = False,
    as_json: Json = False,
) -> None:
    """Install pinned command lines once, as packs that containers see read-only."""
    from sandboxes.packs.install import install_all

    found = install_all(names, progress, again=again)
    lines = [f"{pack.recipe.name} {pack.record.version}: {pack.folder}" for pack in found.installed]
    lines += [f"{name} skipped: {reason}" for name, reason in found.skipped.items()]
    told = {pack.recipe.name: pack.record.model_dump(mode="json", by_alias=True) for pack in found.installed}
    answer(as_json, {"installed": told, "skipped": found.skipped}, lines)
