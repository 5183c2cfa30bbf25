"""The verbs on a release before anything is solved: check, extract, describe, record, pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bench.errors import UsageError
from verbs.options import Concurrency, Frozen, Json, Only, address, answer, case_ids, progress

dataset_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="A downloaded release: check, extract, describe."
)


@dataset_app.command("verify")
def dataset_verify(
    release: Path,
    leaks: Annotated[
        bool, typer.Option("--leaks", help="Look for criterion text in what solvers get; nothing else is checked.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check every file of a release: checksums, manifest, archives, indexes against rubrics.

    With --leaks: a release, or the folder it was extracted into. Exit 1: a leak; 3: something could not be read.
    """
    from evaluator.verify import require_faultless, verify_release

    if leaks:
        return _verify_leaks(release, as_json)

    found = verify_release(release)
    for note in found["notes"]:
        progress(f"note: {note}")
    if as_json or not found["faults"]:
        counts = f"{found['tasks']} tasks, {found['criteria']} criteria, {found['files']} files"
        answer(as_json, found, [f"{release}: {counts}: all good"])
    require_faultless(release, found)


def _verify_leaks(place: Path, as_json: bool) -> None:
    from evaluator.leaks import find_leaks

    report = find_leaks(place, progress)
    answer(as_json, report.as_json(), report.lines())
    if report.hits:
        raise typer.Exit(1)
    if report.not_read:
        raise typer.Exit(3)


@dataset_app.command("extract")
def dataset_extract(
    release: Path,
    out: Annotated[Path, typer.Option(help="Where solver-inputs/ and evaluation-inputs/ are made.")] = Path("work"),
    as_json: Json = False,
) -> None:
    """Verify a release, then extract solver and evaluation inputs apart."""
    from bench.release import extract, open_release

    solver, evaluation = extract(open_release(release), out, progress=progress)
    answer(
        as_json,
        {"solver": str(solver), "evaluation": str(evaluation)},
        [f"solver inputs: {solver}", f"evaluation inputs: {evaluation}"],
    )


@dataset_app.command("info")
def dataset_info(release: Path, as_json: Json = False) -> None:
    """What a release holds: tasks by primary attachment, criteria, checksums."""
    from evaluator.verify import describe_release, table_lines

    found = describe_release(release)
    for note in found["notes"]:
        progress(f"note: {note}")
    criteria = "an undeclared number of" if found["criteria"] is None else found["criteria"]
    head = f"{found['name']} {found['version']}: {found['tasks']} tasks, {criteria} criteria"
    answer(as_json, found, [head, *table_lines(found)])


@dataset_app.command("preflight")
def dataset_preflight(
    dataset: Annotated[Path, typer.Option(help="The extracted solver inputs; no rubric is needed.")],
    out: Annotated[Path | None, typer.Option(help="The report; default preflight.json beside the dataset.")] = None,
    only: Only = "",
    concurrency: Concurrency = 2,
    frozen: Frozen = None,
    as_json: Json = False,
) -> None:
    """Build, serve and open every start application once. Exit 0: all ok; 3: some is not. Goes on where it ended."""
    from evaluator.preflight import preflight
    from sandboxes.reap import reap

    reap()
    file = out or dataset.resolve().parent / "preflight.json"
    report = preflight(dataset, file, only=case_ids(only), concurrency=concurrency, frozen=frozen, progress=progress)
    found = {**report.model_dump(mode="json", by_alias=True), "ok": report.ok, "report": str(file)}
    answer(as_json, found, [*report.lines(), f"report: {file}"])
    if not report.ok:
        raise typer.Exit(3)


@dataset_app.command("freeze")
def dataset_freeze(
    dataset: Annotated[Path, typer.Option(help="The extracted solver inputs.")],
    store: Annotated[Path, typer.Option(help="Where the recorded resources are kept, best beside the release.")],
    only: Only = "",
    concurrency: Concurrency = 2,
    allow_private: Annotated[
        list[str] | None,
        typer.Option(
            help="ADDRESS:PORT that may be asked although it is not public: a mirror of your own. Recorded."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Record what start applications load from other addresses. Exit 3: something could not be fetched just now."""
    from evaluator.freeze import freeze
    from sandboxes.open_fetch import OpenFetch
    from sandboxes.reap import reap

    reap()
    fetch = OpenFetch(allowed=frozenset(address(text) for text in allow_private or []))
    found = freeze(dataset, store, only=case_ids(only), concurrency=concurrency, fetch=fetch, progress=progress)
    answer(as_json, found.as_json(), found.lines())
    if not found.complete:
        raise typer.Exit(3)


@dataset_app.command("pack")
def dataset_pack(
    folder: Annotated[Path, typer.Argument(help="Your cases, FOLDER/cases/ID/ each (docs/own-dataset.md).")],
    out: Annotated[Path | None, typer.Option(help="The release's folder.")] = None,
    lint: Annotated[bool, typer.Option("--lint", help="Only look for faults; write nothing.")] = False,
    allow: Annotated[list[str] | None, typer.Option(help="A finding's code that is no error here.")] = None,
    as_json: Json = False,
) -> None:
    """Check your own cases and pack them as a release in the card's layout. Exit 1: an error was found."""
    from evaluator.lint import lint as lint_cases
    from evaluator.own_cases import case_folders
    from evaluator.pack import pack_own_cases

    if out is None and not lint:
        raise UsageError("name the release's folder with --out, or pass --lint to look for faults only")
    found = [f for f in lint_cases(case_folders(folder), progress) if f.code not in (allow or [])]
    errors = sum(f.level == "error" for f in found)
    lines = [*(f.line() for f in found), f"{errors} errors, {len(found) - errors} warnings"]
    told: dict[str, Any] = {"findings": [f.as_json() for f in found], "errors": errors, "release": None}
    if out is not None and not lint and not errors:
        _, about = pack_own_cases(folder, out)
        told["release"] = str(out)
        lines.append(f"{about.name} {about.version}: {out}")
    answer(as_json, told, lines)
    if errors:
        raise typer.Exit(1)
