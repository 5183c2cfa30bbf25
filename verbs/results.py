"""What is made of judged results: report, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.errors import UsageError
from verbs.options import Json, answer


def report(
    results: Annotated[list[Path], typer.Argument(help="Results folders, one for each entry.")],
    out: Annotated[
        Path, typer.Option(help="The page to open; the other pages go into NAME-files/ beside it.")
    ] = Path("report/index.html"),
    title: Annotated[str | None, typer.Option()] = None,
    as_json: Json = False,
) -> None:
    """Write a site of HTML pages about one or more judged entries."""
    from evaluator.report import write_report

    page = write_report(results, out, title=title)
    answer(as_json, {"report": str(page.resolve())}, [f"report: {page.resolve()}"])


def compare(
    results: Annotated[
        list[Path], typer.Argument(help="Results folders; those of one agent and model are attempts.")
    ],
    column: Annotated[str, typer.Option(help="judge, card or witnessed: the same for all.")] = "witnessed",
    as_json: Json = False,
) -> None:
    """Compare entries, paired by task, under the same plans and conditions."""
    from evaluator.compare import compare as compare_results
    from evaluator.compare import lines
    from evaluator.records import COLUMNS

    chosen = next((name for name in COLUMNS if name == column), None)
    if chosen is None:
        raise UsageError(f"--column {column!r} is not known; choose one of {', '.join(COLUMNS)}")
    found = compare_results(results, chosen)
    answer(as_json, found, lines(found))
    if any(entrant["incomplete"] for entrant in found["entrants"]):
        raise typer.Exit(3)
