"""Results taken elsewhere and checked there: bundles, tables, Inspect logs, Harbor tasks; Harbor jobs brought in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verbs.options import Frozen, Json, Only, answer, case_ids, progress

export_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Judged results for others: bundle, tables, Inspect, Harbor."
)
import_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What other harnesses made, to be judged.")

Results = Annotated[list[Path], typer.Argument(help="Results folders that were scored, one for each entry.")]
Folder = Annotated[Path, typer.Option(help="The folder to write to.")]


@export_app.command("bundle")
def export_bundle(
    results: Results,
    out: Annotated[Path, typer.Option(help="The archive to write (tar.gz).")],
    start: Annotated[
        bool, typer.Option("--start", help="Put the starting applications in, where the dataset's terms allow it.")
    ] = False,
    built: Annotated[
        bool, typer.Option("--built/--no-built", help="Built applications, so that replays need no registry.")
    ] = True,
    trajectories: Annotated[
        bool, typer.Option("--trajectories", help="Prompts, output and trajectories, too.")
    ] = False,
    keep_suspected: Annotated[
        bool,
        typer.Option("--keep-suspected", help="Go on although something that cannot be redacted looks like a key."),
    ] = False,
    as_json: Json = False,
) -> None:
    """One archive with all that a result stands on, for `cdb verify`. It holds the criteria."""
    from evaluator.bundle.write import write_bundle

    card = write_bundle(
        results, out, start=start, built=built, trajectories=trajectories, keep_suspected=keep_suspected
    )
    lines = [f"{out}: {len(card.members)} files of {len(card.results)} results"]
    lines += [f"left out: {one['what']} ({one['why']})" for one in card.left_out]
    lines += [f"redacted: {path}" for path in card.redacted]
    lines.append(f"digest {card.digest} (publish it beside the result)")
    answer(as_json, {"bundle": str(out), **card.model_dump(mode="json", by_alias=True, exclude={"members"})}, lines)


@export_app.command("parquet")
def export_parquet(results: Results, out: Folder, as_json: Json = False) -> None:
    """criteria.parquet and trials.parquet: one row a criterion, one row a trial."""
    _tables(results, out, "parquet", as_json)


@export_app.command("csv")
def export_csv(results: Results, out: Folder, as_json: Json = False) -> None:
    """criteria.csv and trials.csv; a text that a spreadsheet would run as a formula begins with an apostrophe."""
    _tables(results, out, "csv", as_json)


@export_app.command("jsonl")
def export_jsonl(results: Results, out: Folder, as_json: Json = False) -> None:
    """criteria.jsonl and trials.jsonl: an object a line."""
    _tables(results, out, "jsonl", as_json)


def _tables(results: list[Path], out: Path, kind: str, as_json: bool) -> None:
    from evaluator.exports.tables import write_tables

    counts = write_tables(results, out, kind)
    files = {name: str(out / f"{name}.{kind}") for name in counts}
    answer(as_json, {"rows": counts, "files": files}, [f"{files[name]}: {n} rows" for name, n in counts.items()])


@export_app.command("inspect")
def export_inspect(results: Results, out: Folder, as_json: Json = False) -> None:
    """One Inspect log (.eval) for each entry, for `inspect view`. It holds the criteria."""
    from evaluator.exports.inspect_log import write_logs

    logs = [str(path) for path in write_logs(results, out)]
    answer(as_json, {"logs": logs}, logs)


@export_app.command("harbor")
def export_harbor(
    dataset: Annotated[Path, typer.Argument(help="Extracted inputs, best the solver's.")],
    out: Folder,
    only: Only = "",
    image: Annotated[
        str, typer.Option(help="What the environments are built from; needs node and git.")
    ] = "node:22-bookworm",
    rubrics: Annotated[
        Path | None, typer.Option(help="A folder apart for the rubrics; needs the evaluation inputs.")
    ] = None,
    entry: Annotated[
        list[Path] | None, typer.Option(help="A solve entry (runs/RUN/ENTRY) whose trajectories go beside the tasks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A Harbor task directory for each task, without its rubric."""
    from evaluator.exports.harbor_tasks import write_tasks

    found = write_tasks(dataset, out, only=case_ids(only), image=image, rubrics=rubrics, entries=entry)
    lines = [f"{out / 'tasks'}: {found['tasks']} tasks"]
    lines += [f"{out / 'trajectories'}: {found['trajectories']} trajectories"] if entry else []
    answer(as_json, {**found, "out": str(out)}, lines)


@import_app.command("harbor")
def import_harbor(
    job: Annotated[Path, typer.Argument(help="A Harbor job's folder.")],
    dataset: Annotated[Path, typer.Option(help="Extracted inputs: its tasks, and what changed against their start.")],
    out: Annotated[Path, typer.Option(help="Where AGENT__MODEL__ATTEMPT/ are made, a submissions folder each.")],
    source: Annotated[
        str, typer.Option(help="The folder in Harbor's container that held the application.")
    ] = "/workspace",
    as_json: Json = False,
) -> None:
    """Seal what a Harbor job's trials left as submissions made elsewhere. Exit 3: a trial left none."""
    from evaluator.exports.harbor_job import import_job

    found = import_job(job, dataset, out, source=source)
    none = [one for one in found if one.digest is None]
    entries = sorted({one.entry for one in found if one.digest})
    lines = [
        f"{out / name}: {sum(o.entry == name and o.digest is not None for o in found)} submissions"
        for name in entries
    ]
    lines += [f"no submission: {one.trial} ({one.case or 'unknown task'}): {one.reason}" for one in none]
    told = {"submissions": [str(out / name) for name in entries], "trials": [vars(one) for one in found]}
    answer(as_json, told, lines)
    if none:
        raise typer.Exit(3)


def verify(
    bundle: Annotated[Path, typer.Argument(help="A bundle, or the folder it was unpacked into.")],
    replays: Annotated[int, typer.Option(min=0, help="How many verdicts to replay; 0 needs no engine.")] = 0,
    seed: Annotated[int, typer.Option(help="Draws which.")] = 0,
    dataset: Annotated[
        Path | None,
        typer.Option(help="Extracted evaluation inputs: compared, and replays take start applications there."),
    ] = None,
    digest: Annotated[
        str | None, typer.Option(help="The digest that was published; the bundle's must be the same.")
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Replay on builds made anew, not on the bundle's.")
    ] = False,
    frozen: Frozen = None,
    as_json: Json = False,
) -> None:
    """Check a bundle: members, hash chains, seals, evidence, verdicts, scores; replay some. Trusts nothing in it."""
    from evaluator.bundle.verify import verify_bundle

    if replays:
        from sandboxes.reap import reap

        reap()
    found = verify_bundle(
        bundle,
        replays=replays,
        seed=seed,
        dataset=dataset,
        digest_wanted=digest,
        rebuild=rebuild,
        frozen=frozen,
        progress=progress,
    )
    answer(as_json, found.as_json(), found.lines())
    if found.faults:
        raise typer.Exit(1)
    if found.untold:
        raise typer.Exit(3)
