"""What is checked after a judging: by people who label blind, for leaks, and against another judging."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.errors import UsageError
from verbs.options import Json, answer, progress

if TYPE_CHECKING:
    from evaluator.records import Column

audit_app = typer.Typer(no_args_is_help=True, help="Check a judging: people's labels, leaks, another judging.")
_Column = Annotated[str, typer.Option(help="judge, card or witnessed.")]


@audit_app.command("sample")
def sample(
    results: Annotated[list[Path], typer.Argument(help="Results folders; the page does not tell them apart.")],
    out: Annotated[Path, typer.Option(help="Where the page and, apart from it, the design are written.")],
    labels: Annotated[int, typer.Option(min=1, help="How many criteria are drawn, over all results.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The same seed draws the same criteria.")] = 0,
    column: _Column = "witnessed",
    as_json: Json = False,
) -> None:
    """Draw criteria and write a page on which people label them blind."""
    from evaluator.audit.page import sample as draw_sample

    made = draw_sample(results, out, column=_known(column), labels=labels, seed=seed)
    found = {
        "audit": made.design.audit, "items": len(made.design.items), "page": str(made.page),
        "design": str(made.design_file), "pictures_left_out": made.left_out,
    }  # fmt: skip
    lines = [f"{len(made.design.items)} items: send {made.page} to labellers; keep {made.design_file} from them"]
    if made.left_out:
        lines.append(f"{made.left_out} pictures could not be put into the page")
    answer(as_json, found, lines)


@audit_app.command("report")
def report(
    design: Annotated[Path, typer.Argument(help="design.json, as `cdb audit sample` wrote it.")],
    labels: Annotated[list[Path], typer.Argument(help="The labellers' files, one each.")],
    as_json: Json = False,
) -> None:
    """Agreement of people and judge, and the score that people would give, with intervals."""
    from evaluator.audit.report import audit_report, lines

    found = audit_report(design, labels)
    answer(as_json, found, lines(found))
    if any(one["why_not"] for one in found["results"]):
        raise typer.Exit(3)


@audit_app.command("leaks")
def leaks(
    results: Annotated[Path, typer.Argument(help="A results folder.")],
    as_json: Json = False,
) -> None:
    """Look for the rubric, the dataset, hosted tools and words to the judge in every trial; write leak_audit.json."""
    from evaluator.audit.leak_audit import audit_leaks, lines
    from evaluator.scoring import rewrite_run_card

    found = audit_leaks(results, progress)
    rewrite_run_card(results)
    answer(as_json, found, lines(found))
    if found["statuses"]["CLEAN"] < len(found["trials"]):
        raise typer.Exit(3)


@audit_app.command("diff")
def diff(
    first: Annotated[Path, typer.Argument(help="Results folder of one judging.")],
    second: Annotated[Path, typer.Argument(help="Results folder of another judging of the same submissions.")],
    out: Annotated[Path | None, typer.Option(help="A page to write, HTML.")] = None,
    column: _Column = "witnessed",
    as_json: Json = False,
) -> None:
    """Two judgings of the same submissions: agreement, flips with their evidence, score difference."""
    from evaluator.audit.rejudge import lines, rejudge_diff
    from evaluator.audit.rejudge_page import write_diff_page

    found = rejudge_diff(first, second, _known(column))
    told = lines(found)
    if out:
        told.append(f"page: {write_diff_page(found, out).resolve()}")
    answer(as_json, found, told)


def calibrate(
    results: Annotated[list[Path], typer.Argument(help="Results of the sample's recorded edits, all by one judge.")],
    as_json: Json = False,
) -> None:
    """Measure a judge against the truth about the sample's edits: confusion, false credit by kind of application."""
    from evaluator.audit.calibrate import calibrate as measure
    from evaluator.audit.calibrate import lines

    found = measure(results)
    answer(as_json, found, lines(found))
    if found["columns"]["witnessed"]["unscored"]:
        raise typer.Exit(3)


def _known(column: str) -> Column:
    from evaluator.records import COLUMNS

    chosen = next((name for name in COLUMNS if name == column), None)
    if chosen is None:
        raise UsageError(f"--column {column!r} is not known; choose one of {', '.join(COLUMNS)}")
    return chosen
