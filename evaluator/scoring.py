"""`cdb score`: from the files of a judging to scores.json, run_card.md and spend.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.atomic import write_bytes, write_json
from bench.strict_json import read_json
from evaluator.audit.leak_audit import read_leak_audit
from evaluator.cases import read_cases
from evaluator.overrides import read_overrides
from evaluator.run_card import run_card
from evaluator.score import score, settings_beside
from evaluator.spend import spend


def score_files(
    cases_file: Path, journal: Path, out: Path, *, attempts: bool = False, overrides: Path | None = None
) -> dict[str, Any]:
    """Score `journal` and write `out` with its run card and spending beside it; gives what scores.json holds."""
    cases = read_cases(cases_file)
    found = score(
        cases,
        journal,
        settings=settings_beside(journal, cases),
        attempts=attempts,
        overrides=read_overrides(overrides) if overrides else (),
    )
    write_json(out, found)
    _write_run_card(found, out.parent, read_leak_audit(journal.parent))
    write_json(out.with_name("spend.json"), spend(cases, cases_file.parent, journal))
    return found


def rewrite_run_card(results: Path) -> None:
    """The run card of a results folder that was scored, after something beside its scores has changed."""
    if (results / "scores.json").is_file():
        _write_run_card(read_json(results / "scores.json"), results, read_leak_audit(results))


def _write_run_card(found: dict[str, Any], folder: Path, leaks: dict[str, Any] | None) -> None:
    write_bytes(folder / "run_card.md", run_card(found, leaks).encode("utf-8", "backslashreplace"))


def lines(found: dict[str, Any]) -> list[str]:
    """What `cdb score` prints without --json."""
    coverage, submissions = found["coverage"], found["submissions"]
    said = [
        f"{found['scope']['label']}; {coverage['tasks_scored']}/{coverage['tasks']} tasks scored whole, "
        f"{submissions['present']}/{submissions['of']} with a submission"
    ]
    if submissions["missing"]:
        said.append(f"every criterion of a missing submission counts as FAIL: {', '.join(submissions['missing'])}")
    if found["partial"]:
        said.append("PARTIAL: the judging is not finished; these numbers will change")
    for column, metrics in found["columns"].items():
        numbers = [f"{name} {_interval(m)}" for name, m in metrics.items()]
        said.append(f"{column:<10} " + "   ".join(numbers))
    if found["incomplete"]:
        bounds = "  ".join(f"{m} {b['low']:.1f} to {b['high']:.1f}" for m, b in found["bounds"].items())
        said.append(f"INCOMPLETE: not a result of the whole scope. With the unscored as FAIL and as PASS: {bounds}")
    return said


def _interval(metric: dict[str, float | None]) -> str:
    if metric["mean"] is None:
        return "none"
    return f"{metric['mean']:.1f} [{metric['low']:.1f}, {metric['high']:.1f}]"
