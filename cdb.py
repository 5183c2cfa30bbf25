"""The command line: one verb per step, each run by the side it belongs to.

Nothing heavy is imported until a verb runs: a test holds which modules `cdb --help` may load.
Exit codes: 0 done, 1 failed, 2 usage, 3 incomplete (something unscored), 130/143 interrupted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from bench.errors import CdbError, UsageError
from bench.exit_codes import told

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    help="Run coding agents on Co-Design Bench and judge them with verdicts that replay.",
)
dataset_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="A downloaded release: check, extract, describe."
)
app.add_typer(dataset_app, name="dataset")
agents_app = typer.Typer(rich_markup_mode=None, help="The agents there are; install their command lines.")
app.add_typer(agents_app, name="agents")

Json = Annotated[bool, typer.Option("--json", help="Machine output on standard output, progress on standard error.")]
Only = Annotated[str, typer.Option(help="Case ids, separated by commas; the result is then a declared subset.")]
ENGINE_BACK_S = 120.0
"""How long a trial that infrastructure failed waits for the engine before it is tried again."""
Retry = Annotated[
    str | None, typer.Option(help="Only what is unscored for this reason: infra, judge, or one case's name.")
]
Frozen = Annotated[
    Path | None, typer.Option(help="Recorded resources (`cdb dataset freeze`) for what applications ask elsewhere.")
]
Concurrency = Annotated[int, typer.Option(min=1, max=256, help="How many at a time.")]


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
        _progress(f"note: {note}")
    if as_json or not found["faults"]:
        counts = f"{found['tasks']} tasks, {found['criteria']} criteria, {found['files']} files"
        _answer(as_json, found, [f"{release}: {counts}: all good"])
    require_faultless(release, found)


def _verify_leaks(place: Path, as_json: bool) -> None:
    from evaluator.leaks import find_leaks

    report = find_leaks(place, _progress)
    _answer(as_json, report.as_json(), report.lines())
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

    solver, evaluation = extract(open_release(release), out, progress=_progress)
    _answer(
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
        _progress(f"note: {note}")
    criteria = "an undeclared number of" if found["criteria"] is None else found["criteria"]
    head = f"{found['name']} {found['version']}: {found['tasks']} tasks, {criteria} criteria"
    _answer(as_json, found, [head, *table_lines(found)])


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
    report = preflight(dataset, file, only=_ids(only), concurrency=concurrency, frozen=frozen, progress=_progress)
    found = {**report.model_dump(mode="json", by_alias=True), "ok": report.ok, "report": str(file)}
    _answer(as_json, found, [*report.lines(), f"report: {file}"])
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
    fetch = OpenFetch(allowed=frozenset(_address(text) for text in allow_private or []))
    found = freeze(dataset, store, only=_ids(only), concurrency=concurrency, fetch=fetch, progress=_progress)
    _answer(as_json, found.as_json(), found.lines())
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
    found = [f for f in lint_cases(case_folders(folder), _progress) if f.code not in (allow or [])]
    errors = sum(f.level == "error" for f in found)
    lines = [*(f.line() for f in found), f"{errors} errors, {len(found) - errors} warnings"]
    answer: dict[str, Any] = {"findings": [f.as_json() for f in found], "errors": errors, "release": None}
    if out is not None and not lint and not errors:
        _, about = pack_own_cases(folder, out)
        answer["release"] = str(out)
        lines.append(f"{about.name} {about.version}: {out}")
    _answer(as_json, answer, lines)
    if errors:
        raise typer.Exit(1)


@app.command()
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
    allowed = tuple(sorted({_address(text) for text in allow_private or []}))
    conditions = Conditions(egress, hosted_tools, media, frozen, tuple(block or ()), allowed)
    conditions.check()
    wish = ModelWish(
        gateway, upstream, Caps(usd=max_usd or None, tokens=max_tokens or None, requests=max_requests or None)
    )
    identity = wish.describe(chosen)
    if chosen.pack:
        need_pack(chosen.pack).check()
    tasks = open_solver_inputs(dataset, _ids(only))
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
            egress=way_out,
            model_identity=identity,
        )
        summary = solve_entry(tasks, chosen, settings, DockerSandbox, _progress, kill_open_sandboxes)
    found = {"entry": str(summary.entry), "submissions": str(summary.submissions), "outcomes": summary.outcomes}
    _answer(as_json, found, [f"{len(summary.outcomes)} trials; submissions in {summary.submissions}"])
    if not summary.complete:
        raise typer.Exit(3)


@app.command("run")
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
        wanted.dataset.only = list(_ids(only))
    for warning in wanted.warnings():
        _progress(f"warning: {warning}")
    if dry_run:
        foreseen = preview(wanted)
        _answer(as_json, foreseen, preview_lines(foreseen))
        return
    result = conduct(wanted, config, retry)
    rows = [f"{name}: {told['label']}" for name, told in result.scores.items()]
    _answer(as_json, result.as_json(), [*rows, f"report: {result.report}"])
    if not result.complete:
        raise typer.Exit(3)


@app.command()
def status(
    run: Annotated[Path, typer.Argument(help="The run's folder, as `cdb run` writes it.")], as_json: Json = False
) -> None:
    """How a run stands: cases, phases, ages, spending, last events; from any shell, running or not."""
    from runner.standing import lines, standing

    found = standing(run)
    _answer(as_json, found.as_json(), lines(found))
    if any(one.stuck for one in found.busy):
        raise typer.Exit(3)


@app.command()
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

    found = prepare_cases(dataset, submissions, out, plans=plans, only=_ids(only), progress=_progress)
    missing = [case.case for case in found.cases if case.submission is None]
    lines = [f"{len(found.cases)} cases, {len(missing)} without a submission: {out / 'cases.json'}"]
    lines += [f"missing: {case}" for case in missing]
    _answer(as_json, {"cases": len(found.cases), "missing": missing, "file": str(out / "cases.json")}, lines)


@app.command()
def plan(
    dataset: Annotated[Path, typer.Option(help="The extracted evaluation inputs.")],
    out: Annotated[Path, typer.Option(help="Where CASE/plan.json and plans.json are written.")],
    model: Annotated[
        str | None, typer.Option(help="Who plans: PROVIDER/MODEL, a YAML file, or relay:FOLDER.")
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", help="Open each plan in $VISUAL or $EDITOR, then freeze.")] = False,
    vision: Annotated[bool, typer.Option(help="Show pictures to the model.")] = True,
    only: Only = "",
    as_json: Json = False,
) -> None:
    """Take every criterion apart once, blind to all submissions, and freeze the plans."""
    import os

    from evaluator.judges.catalogue import find_chat
    from evaluator.plan_maker import make_plans

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") if edit else None
    if not model and not edit:
        raise UsageError("who plans? Pass --model PROVIDER/MODEL, or --edit to write plans by hand")
    if edit and not editor:
        raise UsageError("--edit needs an editor: set VISUAL or EDITOR")
    chat = find_chat(model, vision=vision) if model else None
    done = make_plans(dataset, out, chat, editor=editor, only=_ids(only), progress=_progress)
    found = {"made": done.made, "kept": done.kept, "failed": done.failed, "usage": done.usage.model_dump()}
    lines = [
        f"{len(done.made)} made, {len(done.kept)} kept, {len(done.failed)} failed; frozen in {out}: {done.sha256}"
    ]
    _answer(as_json, {**found, "sha256": done.sha256}, lines)
    if done.failed:
        raise typer.Exit(3)


@app.command()
def judge(
    cases: Annotated[Path, typer.Option(help="cases.json as `cdb prepare` wrote it.")],
    out: Annotated[Path, typer.Option(help="The results folder.")],
    model: Annotated[str, typer.Option(help="The judge: `recorded`, PROVIDER/MODEL, a YAML file, or relay:FOLDER.")],
    refuter_model: Annotated[
        str | None, typer.Option(help="A model that attacks every credit; without it only mechanical probes do.")
    ] = None,
    vision: Annotated[bool, typer.Option(help="Show pictures to the models.")] = True,
    digests: Annotated[Path | None, typer.Option(help="Words about the attachments, CASE.md each.")] = None,
    samples: Annotated[int, typer.Option(min=1, max=9, help="Conversations a criterion; the majority counts.")] = 1,
    case_usd: Annotated[float, typer.Option(min=0, help="What judging one case may cost; 0 lifts the cap.")] = 2.0,
    case_minutes: Annotated[
        float, typer.Option(min=0, help="How long models may work on one case; 0: no cap.")
    ] = 20.0,
    run_usd: Annotated[float, typer.Option(min=0, help="What the whole judging may cost; 0: no cap.")] = 0.0,
    witnesses: Annotated[Path | None, typer.Option(help="Recorded witnesses, CASE/witnesses.json each.")] = None,
    start_replays: Annotated[
        Path | None, typer.Option(help="Share what witnesses do on start applications with other judgings of a run.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.")] = False,
    frozen: Frozen = None,
    concurrency: Concurrency = 2,
    retry: Retry = None,
    as_json: Json = False,
) -> None:
    """Build, serve and judge every case; each verdict with evidence that replays."""
    from evaluator.judges.catalogue import find_judges
    from evaluator.judges.model.settings import Caps
    from evaluator.judging import judge_all
    from sandboxes.reap import reap

    caps = Caps(case_usd=case_usd or None, case_minutes=case_minutes or None, run_usd=run_usd or None)
    chosen = find_judges(
        model,
        refuter_model,
        witnesses=witnesses,
        vision=vision,
        caps=caps,
        digests=digests,
        samples=samples,
    )
    if dry_run:
        from evaluator.cases import read_cases
        from evaluator.judges.model.estimate import estimate, lines

        wanted = estimate(read_cases(cases), cases.parent, chosen)
        _answer(as_json, wanted, lines(wanted))
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
        progress=_progress,
    )
    found = {"results": str(out), "cases": summary.cases, "criteria": summary.criteria, "unscored": summary.unscored}
    _answer(
        as_json,
        found,
        [f"{summary.criteria} criteria of {summary.cases} cases, {summary.unscored} unscored; results: {out}"],
    )
    if summary.unscored:
        raise typer.Exit(3)


@app.command()
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
        _progress(f"warning: {warning}")
    _answer(as_json, found, lines(found))
    if found["incomplete"]:
        raise typer.Exit(3)


@app.command()
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
    _answer(as_json, found, lines)
    if again.now.verdict is None and again.now.outcome != "ok":
        raise typer.Exit(3)
    if not again.holds:
        raise typer.Exit(1)


@app.command()
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
    _answer(as_json, {"manifest": str(path), "digest": manifest.digest}, [f"sealed {submission}: {manifest.digest}"])


@app.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Results folders, one for each entry.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report/index.html"),
    title: Annotated[str | None, typer.Option()] = None,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page about one or more judged entries."""
    from evaluator.report import write_report

    page = write_report(results, out, title=title)
    _answer(as_json, {"report": str(page.resolve())}, [f"report: {page.resolve()}"])


@app.command()
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
    _answer(as_json, found, lines(found))
    if any(entrant["incomplete"] for entrant in found["entrants"]):
        raise typer.Exit(3)


@app.command()
def doctor(
    escape_suite: Annotated[
        bool, typer.Option("--escape-suite", help="Try to get out of a container instead, in over a hundred ways.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What this machine can do and enforce, each fault with its remedy."""
    if escape_suite:
        return _escape_suite(as_json)
    from sandboxes.doctor import run_checks

    found = run_checks()
    lines = [
        f"{'ok  ' if c.ok else 'FAIL'} {c.name}: {c.detail}" + (f"\n     {c.remedy}" if not c.ok else "")
        for c in found
    ]
    _answer(as_json, {"checks": [c._asdict() for c in found]}, lines)
    if not all(c.ok for c in found):
        raise typer.Exit(1)


def _escape_suite(as_json: bool) -> None:
    from sandboxes.escape.suite import run_suite

    found = run_suite()
    counts = {came: sum(f.came == came for f in found) for came in ("contained", "escaped", "unproved")}
    lines = [f"{f.came:<9} {f.group:<10} {f.name:<28} {f.what}\n{'':21}{f.evidence}" for f in found]
    lines.append(f"{len(found)} attempts: " + ", ".join(f"{number} {came}" for came, number in counts.items()))
    _answer(as_json, {"attempts": [f._asdict() for f in found], **counts}, lines)
    if counts["escaped"] or counts["unproved"]:
        raise typer.Exit(1)


@app.command()
def clean(
    everything: Annotated[bool, typer.Option("--all", help="Also what belongs to runs that are alive.")] = False,
    kept: Annotated[bool, typer.Option("--kept", help="Also what `solve --keep-failed` kept.")] = False,
    as_json: Json = False,
) -> None:
    """Remove containers, volumes and networks of dead runs; nothing that is not labelled as ours."""
    from sandboxes.reap import reap

    removed = reap(all_mine=everything, kept=kept)
    lines = [f"removed {thing.kind} {thing.name}" for thing in removed]
    _answer(as_json, {"removed": [thing._asdict() for thing in removed]}, lines or ["nothing to remove"])


@agents_app.callback(invoke_without_command=True)
def agents(context: typer.Context, as_json: Json = False) -> None:
    """The agents there are: what each needs, passes natively, and whether it is installed."""
    if context.invoked_subcommand:
        return
    from harness.agents.overview import lines, overview

    rows = overview()
    _answer(as_json, {"agents": rows}, lines(rows))


@agents_app.command("install")
def agents_install(
    names: Annotated[list[str], typer.Argument(help="Agents to install, or `all`.")],
    again: Annotated[bool, typer.Option("--again", help="Install anew what is installed already.")] = False,
    as_json: Json = False,
) -> None:
    """Install pinned command lines once, as packs that containers see read-only."""
    from sandboxes.packs.install import install_all

    found = install_all(names, _progress, again=again)
    lines = [f"{pack.recipe.name} {pack.record.version}: {pack.folder}" for pack in found.installed]
    lines += [f"{name} skipped: {reason}" for name, reason in found.skipped.items()]
    told = {pack.recipe.name: pack.record.model_dump(mode="json", by_alias=True) for pack in found.installed}
    _answer(as_json, {"installed": told, "skipped": found.skipped}, lines)


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="Where everything is written; default runs/demo-TIME.")] = None,
    concurrency: Concurrency = 3,
    as_json: Json = False,
) -> None:
    """The whole way on the sample release: three recorded agents solved, judged, scored, reported."""
    from evaluator.demo import run_demo

    found = run_demo(out, concurrency=concurrency, progress=_progress)
    _answer(as_json, found.as_json(), found.lines())


def _say_exit_codes() -> None:
    """End the help of every verb with its exit codes."""
    for group, prefix in ((app, ""), *((g.typer_instance, f"{g.name} ") for g in app.registered_groups)):
        for command in group.registered_commands if group else ():
            name = command.name or (command.callback.__name__ if command.callback else "")
            command.epilog = told(prefix + name)


_say_exit_codes()


def main() -> None:
    """Run the command line; our own errors become one message and their exit code."""
    from bench.parent import end_with_parent

    end_with_parent()
    try:
        app()
    except CdbError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}; check the path, its permissions and the disk", 1)


def _fail(message: str, exit_code: int) -> NoReturn:
    from bench.terminal import safe

    print(f"cdb: {safe(message)}", file=sys.stderr)
    raise SystemExit(exit_code)


def _ids(only: str) -> tuple[str, ...]:
    ids = tuple(part.strip() for part in only.split(",") if part.strip())
    if only and not ids:
        raise UsageError(f"--only {only!r} names no case")
    return ids


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"--allow-private {text!r} is no ADDRESS:PORT")
    return host.strip("[]"), int(port)


def _progress(line: str) -> None:
    from bench.terminal import safe

    print(safe(line), file=sys.stderr, flush=True)


def _answer(as_json: bool, found: Any, lines: list[str]) -> None:
    from bench.terminal import safe

    if as_json:
        print(json.dumps(found, ensure_ascii=False, sort_keys=True))
    else:
        for line in lines:
            print(safe(line))


def _replay_lines(again: Any) -> list[str]:
    lines = [again.recorded.criterion, f"recorded: {again.recorded.verdict}; now: {again.now.verdict or 'undecided'}"]
    for sub in again.now.sub_requirements:
        for run in sub.replays:
            lines.append(
                f"  {sub.id} {run.purpose} on {run.app}: {run.outcome}" + (f": {run.reason}" if run.reason else "")
            )
    lines.append("the verdict holds" if again.holds else f"the verdict does NOT hold {again.now.reason}".rstrip())
    return lines


if __name__ == "__main__":
    main()
