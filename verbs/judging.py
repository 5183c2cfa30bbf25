"""The evaluator's side: prepare, plan, judge, score, replay, seal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bench.errors import CdbError, UsageError
from verbs.options import Concurrency, Frozen, Json, Only, Retry, answer, case_ids, progress


def prepare(
    dataset: Annotated[Path, typer.Option(help="The extracted evaluation inputs.")],
    submissions: Annotated[Path, typer.Option(help="The folder with one folder for each case.")],
    out: Annotated[Path, typer.Option(help="Where cases.json is written.")],
    plans: Annotated[Path | None, typer.Option(help="Criterion plans, CASE/plan.json each.")] = None,
    only: Only = "",
    as_json: Json = False,
) -> None:
    """Check seals, read rubrics, learn how each application is served; write cases.json."""
    from evaluator.prepare import prepare as prepare_cases

    found = prepare_cases(dataset, submissions, out, plans=plans, only=case_ids(only), progress=progress)
    missing = [case.case for case in found.cases if case.submission is None]
    lines = [f"{len(found.cases)} cases, {len(missing)} without a submission: {out / 'cases.json'}"]
    lines += [f"missing: {case}" for case in missing]
    answer(as_json, {"cases": len(found.cases), "missing": missing, "file": str(out / "cases.json")}, lines)


def plan(
    dataset: Annotated[Path, typer.Option(help="The extracted evaluation inputs.")],
    out: Annotated[Path, typer.Option(help="Where CASE/plan.json and plans.json are written.")],
    model: Annotated[
        str | None, typer.Option(help="Who plans: PROVIDER/MODEL, opus …, a YAML file, or relay:FOLDER.")
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", help="Open each plan in $VISUAL or $EDITOR, then freeze.")] = False,
    vision: Annotated[bool, typer.Option(help="Show pictures to the model.")] = True,
    only: Only = "",
    as_json: Json = False,
) -> None:
    """Take every criterion apart once, blind to all submissions, and freeze the plans."""
    import os
    from contextlib import closing, nullcontext

    from evaluator.judges.catalogue import find_chat
    from evaluator.plan_maker import make_plans

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") if edit else None
    if not model and not edit:
        raise UsageError("who plans? Pass --model PROVIDER/MODEL, or --edit to write plans by hand")
    if edit and not editor:
        raise UsageError("--edit needs an editor: set VISUAL or EDITOR")
    chat = find_chat(model, vision=vision) if model else None
    with closing(chat) if chat else nullcontext():
        done = make_plans(dataset, out, chat, editor=editor, only=case_ids(only), progress=progress)
    found = {"made": done.made, "kept": done.kept, "failed": done.failed, "usage": done.usage.model_dump()}
    lines = [
        f"{len(done.made)} made, {len(done.kept)} kept, {len(done.failed)} failed; frozen in {out}: {done.sha256}"
    ]
    answer(as_json, {**found, "sha256": done.sha256}, lines)
    if done.failed:
        raise typer.Exit(3)


def judge(
    cases: Annotated[Path, typer.Option(help="cases.json as `cdb prepare` wrote it.")],
    out: Annotated[Path, typer.Option(help="The results folder.")],
    model: Annotated[
        str, typer.Option(help="The judge: `recorded`, PROVIDER/MODEL, opus …, a YAML file, or relay:FOLDER.")
    ],
    refuter_model: Annotated[
        str | None, typer.Option(help="A model that attacks every credit; without it only mechanical probes do.")
    ] = None,
    vision: Annotated[bool, typer.Option(help="Show pictures to the models.")] = True,
    digests: Annotated[Path | None, typer.Option(help="Words about the attachments, CASE.md each.")] = None,
    samples: Annotated[int, typer.Option(min=1, max=9, help="Conversations a criterion; the majority counts.")] = 1,
    advocate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of FAILs that an advocate looks at again; only reported.")
    ] = 0.1,
    case_usd: Annotated[float, typer.Option(min=0, help="What judging one case may cost; 0 lifts the cap.")] = 2.0,
    case_minutes: Annotated[
        float, typer.Option(min=0, help="How long models may work on one case; 0: no cap.")
    ] = 20.0,
    run_usd: Annotated[float, typer.Option(min=0, help="What the whole judging may cost; 0: no cap.")] = 0.0,
    witnesses: Annotated[Path | None, typer.Option(help="Recorded witnesses, CASE/witnesses.json each.")] = None,
    start_replays: Annotated[
        Path | None, typer.Option(help="Share what witnesses do on start applications with other judgings of a run.")
    ] = None,
    evidence: Annotated[
        str, typer.Option(help="How closely to look and how much to keep: minimal, standard or full.")
    ] = "minimal",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.")] = False,
    frozen: Frozen = None,
    concurrency: Concurrency = 2,
    retry: Retry = None,
    as_json: Json = False,
) -> None:
    """Build, serve and judge every case; each verdict with evidence that replays."""
    from evaluator.evidence.levels import level_named
    from evaluator.judges.catalogue import find_judges
    from evaluator.judges.model.settings import Caps
    from evaluator.judging import judge_all
    from sandboxes.reap import reap

    level = level_named(evidence)
    caps = Caps(case_usd=case_usd or None, case_minutes=case_minutes or None, run_usd=run_usd or None)
    chosen = find_judges(
        model,
        refuter_model,
        witnesses=witnesses,
        vision=vision,
        caps=caps,
        digests=digests,
        samples=samples,
        advocate=advocate,
    )
    if dry_run:
        from evaluator.cases import read_cases
        from evaluator.judges.model.estimate import estimate, lines

        wanted = estimate(read_cases(cases), cases.parent, chosen)
        answer(as_json, wanted, lines(wanted))
        return
    reap()
    summary = judge_all(
        cases,
        out,
        chosen.judge,
        concurrency=concurrency,
        start_replays=start_replays,
        refuter=chosen.refuter,
        frozen=frozen,
        retry=retry,
        evidence=level,
        progress=progress,
    )
    found = {"results": str(out), "cases": summary.cases, "criteria": summary.criteria, "unscored": summary.unscored}
    answer(
        as_json,
        found,
        [f"{summary.criteria} criteria of {summary.cases} cases, {summary.unscored} unscored; results: {out}"],
    )
    if summary.unscored:
        raise typer.Exit(3)


def score(
    cases: Annotated[Path, typer.Option(help="cases.json as `cdb prepare` wrote it.")],
    results: Annotated[Path, typer.Option(help="The judging's journal.jsonl, or a foreign one.")],
    out: Annotated[Path, typer.Option(help="Where scores.json is written; run_card.md and spend.json beside it.")],
    attempts: Annotated[
        bool, typer.Option("--attempts", help="The journal's `attempt` numbers are independent attempts (pass@k).")
    ] = False,
    overrides: Annotated[
        Path | None, typer.Option(help="Verdicts a person has overruled, with author and reason.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score a journal: Strict, Graded and Full with intervals, coverage and scope."""
    from evaluator.scoring import lines, score_files

    found = score_files(cases, results, out, attempts=attempts, overrides=overrides)
    for warning in found["warnings"]:
        progress(f"warning: {warning}")
    answer(as_json, found, lines(found))
    if found["incomplete"]:
        raise typer.Exit(3)


def replay(results: Path, case: str, criterion: int, frozen: Frozen = None, as_json: Json = False) -> None:
    """Run a judged criterion's witnesses again; exit 0 only if the recorded verdict holds."""
    from evaluator.rerun import rerun

    again = rerun(results, case, criterion, frozen)
    lines = [*again.notes, *_replay_lines(again)]
    found = {
        "holds": again.holds,
        "recorded": again.recorded.verdict,
        "now": again.now.verdict,
        "reason": again.now.reason,
        "notes": list(again.notes),
    }
    answer(as_json, found, lines)
    if again.now.verdict is None and again.now.outcome != "ok":
        raise typer.Exit(3)
    if not again.holds:
        raise typer.Exit(1)


def _replay_lines(again: Any) -> list[str]:
    lines = [again.recorded.criterion, f"recorded: {again.recorded.verdict}; now: {again.now.verdict or 'undecided'}"]
    for sub in again.now.sub_requirements:
        for run in sub.replays:
            lines.append(
                f"  {sub.id} {run.purpose} on {run.app}: {run.outcome}" + (f": {run.reason}" if run.reason else "")
            )
    lines.append("the verdict holds" if again.holds else f"the verdict does NOT hold {again.now.reason}".rstrip())
    return lines


def seal(
    submission: Annotated[Path, typer.Argument(help="One submission's folder, named after its case.")],
    again: Annotated[bool, typer.Option("--again", help="Replace a seal that is there already.")] = False,
    as_json: Json = False,
) -> None:
    """Seal a folder that was made or changed by hand; it is then a submission of unknown origin."""
    from bench.submission import manifest_path, seal_in_place

    submission = submission.resolve()
    if not submission.is_dir():
        raise UsageError(f"{submission} is no folder; pass one submission, the folder named after its case")
    path = manifest_path(submission.parent, submission.name)
    if path.exists() and not again:
        raise CdbError(f"{submission} is sealed already; pass --again to seal what lies there now")
    manifest = seal_in_place(submission, None, who={})
    answer(as_json, {"manifest": str(path), "digest": manifest.digest}, [f"sealed {submission}: {manifest.digest}"])
