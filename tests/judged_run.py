"""A whole judged run made without an engine: a dataset, a sealed solve entry, and results as `cdb judge` leaves them.

Everything is written by the project's own code but the runs of the witnesses, which are made up.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.atomic import write_json
from bench.journal import Journal
from bench.lockfile import hold_identity
from bench.submission import SubmissionManifest, describe_tree, seal
from bench.task import open_dataset
from bench.tree import digest, list_tree
from evaluator.adjudicate import decide, decide_sub, decide_whole, facts_of_runs
from evaluator.cases import Case, Cases, moved, read_cases, what_is_judged, write_cases
from evaluator.criterion import about
from evaluator.prepare import prepare
from evaluator.records import CaseRecord, CriterionPlan, CriterionRecord, Replay, StepResult, SubResult, Usage
from evaluator.scoring import score_files
from evaluator.witness import load_witness

CASES = ("clock", "list", "shop")
RUBRIC = ["The heading says “after”.", "The page keeps its footer."]
ODD_NAME = b"odd\n\xff.txt"
"""A line break and a byte that is no UTF-8: names that a sealed tree may have."""
SECRET = "sk-ant-api03-Zm9vYmFyMTIzNDU2Nzg5MFhZWg0"
Ran = Literal["held", "failed", "error"]


@dataclass(frozen=True)
class JudgedRun:
    root: Path

    @property
    def dataset(self) -> Path:
        return self.root / "work/evaluation-inputs"

    @property
    def entry(self) -> Path:
        return self.root / "runs/editor__none__1"

    @property
    def results(self) -> Path:
        return self.root / "results/editor"


def make_judged_run(root: Path) -> JudgedRun:
    """Case `clock` is PASS and FAIL, `list` is PASS and PARTIAL, `shop` has no submission."""
    run = JudgedRun(root)
    _dataset(run.dataset)
    _solved(run)
    prepare(run.dataset, run.entry / "submissions", root / "evaluation", plans=root / "plans")
    _judged(run, root / "evaluation/cases.json")
    score_files(run.results / "cases.json", run.results / "journal.jsonl", run.results / "scores.json")
    return run


def _dataset(root: Path) -> None:
    for case in CASES:
        project = root / "cases" / case / "project"
        (project / "_annotations").mkdir(parents=True)
        (project / "index.html").write_text(f"<!doctype html><title>{case}</title><h1>before</h1><footer>f</footer>")
        (project / "_annotations/shot.png").write_bytes(b"\x89PNG" + case.encode())
        write_json(root / "cases" / case / "user_queries.json", [{"text": f"Change {case}: say “after” – bitte."}])
        write_json(root / "cases" / case / "rubric.json", RUBRIC)
        subs = [
            [{"id": "a", "text": "says after", "core": True}, {"id": "b", "text": "in full", "core": False}],
            [{"id": "a", "text": "a footer", "core": True}],
        ]
        criteria = [
            {"criterion_index": 1, "kind": "content", "sub_requirements": subs[0]},
            {"criterion_index": 2, "kind": "preservation", "sub_requirements": subs[1]},
        ]
        write_json(root.parent.parent / "plans" / case / "plan.json", {"case": case, "criteria": criteria})
    card = {
        "schema": "cdb.dataset/1",
        "name": "Small",
        "version": "1",
        "track": "t",
        "archive_sha256": "0" * 64,
        "case_ids": list(CASES),
        "tasks": 3,
        "criteria": 6,
    }
    write_json(root / "dataset.json", card)


def _solved(run: JudgedRun) -> None:
    who = {"agent": "editor", "model": None, "harness": "cdb", "attempt": 1}
    scope = open_dataset(run.dataset).scope
    hold_identity(run.entry, {"step": "solve", "entry": who, "scope": scope, "timeout_s": 60})
    with Journal(run.entry / "journal.jsonl") as journal:
        journal.append({"type": "run", "step": "solve", "waiting": 3, "done": 0})
        for case in CASES:
            sealed = _sealed(run, case) if case != "shop" else None
            logs = f"trials/{case}/1"
            (run.entry / logs).mkdir(parents=True)
            (run.entry / logs / "stdout.log").write_text(f"working on {case}\n")
            write_json(run.entry / logs / "trajectory.json", trajectory(case))
            journal.append(
                {
                    "type": "trial",
                    "case": case,
                    "outcome": "ok" if sealed else "workspace_too_large",
                    "reason": "" if sealed else "too large",
                    "digest": sealed,
                    "changed_files": 2,
                    "exit_code": 0,
                    "duration_s": 12.5,
                    "try": 1,
                    "logs": logs,
                    "account": {"calls": 2, "cost_usd": 0.25, "tokens": 900},
                }
            )
        journal.append({"type": "end", "step": "solve", "outcomes": {}})


def trajectory(case: str) -> dict[str, Any]:
    """ATIF with a picture beside it, as the harness writes it."""
    steps = [
        {"step_id": 1, "source": "user", "message": f"Change {case}."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Done.",
            "model_name": "m",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "index.html"}]},
        },
    ]
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": case,
        "agent": {"name": "editor", "version": "1"},
        "steps": steps,
    }


def _sealed(run: JudgedRun, case: str) -> str:
    start = list_tree(run.dataset / "cases" / case / "project")
    staged = run.entry / "staged"
    (staged / "_annotations").mkdir(parents=True)
    (staged / "index.html").write_text(f"<!doctype html><title>{case}</title><h1>after</h1>API_KEY={SECRET}")
    (staged / "_annotations/shot.png").write_bytes(b"\x89PNG" + case.encode())
    (staged / "also.html").symlink_to("index.html")
    with open(os.path.join(os.fsencode(staged), ODD_NAME), "wb") as stream:
        stream.write(b"odd")
    (staged / "run.sh").write_text("#!/bin/sh\n")
    (staged / "run.sh").chmod(0o755)
    manifest = SubmissionManifest(
        case=case,
        agent="editor",
        outcome="ok",
        duration_s=12.5,
        usage={"cost_usd": 0.25},
        **describe_tree(staged, start),
    )
    seal(staged, run.entry / "submissions", manifest)
    return manifest.digest


def _judged(run: JudgedRun, cases_file: Path) -> None:
    cases = read_cases(cases_file)
    identity = {"step": "judge", **what_is_judged(cases), "judge": {"name": "made up", "model": None}}
    hold_identity(run.results, {**identity, "conditions": {"egress": "none"}, "versions": {"cdb": "0"}})
    write_cases(moved(cases, cases_file.parent, run.results), run.results / "cases.json")
    with Journal(run.results / "journal.jsonl") as journal:
        journal.append({"type": "run", "step": "judge", "waiting": 3})
        for case in cases.cases:
            for record in _criteria(run.results, case):
                journal.append(record.model_dump(mode="json"))
            journal.append(_case_record(run.results, case).model_dump(mode="json"))
        journal.append({"type": "end", "step": "judge"})
    built = run.results / "built/clock"
    (built / "app").mkdir(parents=True)
    (built / "app/index.html").write_text("<h1>after</h1>")
    write_json(built / "BUILT.json", {"outcome": "ok", "log_tail": f"Authorization: Bearer {SECRET}"})
    (run.results / "built/.clock.lock").write_text("")


def _case_record(results: Path, case: Case) -> CaseRecord:
    if case.submission is None:
        return CaseRecord(case=case.case, outcome="missing", reason="too large")
    folder = results / "evidence" / case.case
    (folder / "submission-desktop.jpg").write_bytes(b"\xff\xd8 desktop")
    write_json(folder / "submission.json", {"console": [f"x-api-key: {SECRET}"], "refused_requests": [], "error": ""})
    shots = {"submission_desktop": f"evidence/{case.case}/submission-desktop.jpg"}
    return CaseRecord(
        case=case.case,
        outcome="ok",
        submission_digest=case.submission.digest,
        changed_files=2,
        shots=shots,
        duration_s=3,
    )


def _criteria(results: Path, case: Case) -> list[CriterionRecord]:
    if case.submission is None:
        whole = decide_whole("FAIL", "missing")
        return [CriterionRecord(**about(case, p), outcome="ok", verdict="FAIL", columns=whole) for p in case.plan]
    holds = {"clock": [[True, True], [False]], "list": [[True, False], [True]]}[case.case]
    return [_criterion(results, case, plan, held) for plan, held in zip(case.plan, holds, strict=True)]


def _criterion(results: Path, case: Case, plan: CriterionPlan, holds: list[bool]) -> CriterionRecord:
    folder = results / "evidence" / case.case / f"{plan.criterion_index:02d}"
    preservation = plan.kind == "preservation"
    subs, decisions = [], []
    for part, held in zip(plan.sub_requirements, holds, strict=True):
        steps = [{"expect": "text", "target": {"role": "heading"}, "contains": "after"}]
        witness = load_witness({"schema": "cdb.witness/1", "steps": steps})
        write_json(folder / f"{part.id}.witness.json", witness.model_dump(mode="json", by_alias=True))
        frame = folder / f"{part.id}-propose/00.jpg"
        frame.parent.mkdir()
        frame.write_bytes(b"\xff\xd8" + part.id.encode())
        runs = _runs(results, frame, held, preservation)
        facts = facts_of_runs(
            runs,
            core=part.core,
            preservation=preservation,
            has_witness=True,
            claimed=held,
            examined=True,
            refutation=None,
        )
        decided = decide_sub(facts)
        decisions.append(decided)
        subs.append(
            SubResult(
                id=part.id,
                text=part.text,
                core=part.core,
                witness=str((folder / f"{part.id}.witness.json").relative_to(results)),
                witness_sha256=witness.digest(),
                replays=runs,
                reason="=1+1" if held else "no",
                proposed=decided.judge,
                card=decided.card,
                witnessed=decided.witnessed,
            )
        )
    columns = decide(decisions)
    return CriterionRecord(
        **about(case, plan),
        outcome="ok",
        verdict=columns["witnessed"].verdict,
        columns=columns,
        sub_requirements=subs,
        evidence_digest=digest(list_tree(folder)),
        usage={"judge": Usage(calls=1, input_tokens=10, cost_usd=0.01)},
        submission_frame=subs[0].replays[0].steps[0].frame,
        duration_s=1.5,
    )


def _runs(results: Path, frame: Path, held: bool, preservation: bool) -> list[Replay]:
    ran: Ran = "held" if held else "failed"
    step = StepResult(index=0, text="See the heading", ok=held, frame=str(frame.relative_to(results)))
    runs = [Replay(app="submission", purpose="propose", outcome=ran, steps=[step])]
    if held:
        runs.append(Replay(app="start", purpose="vacuity", outcome="held" if preservation else "failed"))
        runs.append(Replay(app="submission", purpose="repeat", outcome="held"))
    return runs


def rewrite_journal(path: Path, change: Any) -> None:
    """Put every record through `change` (None drops it, a list stands for several) and chain the journal afresh, as a
    forger would."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.unlink()
    with Journal(path) as journal:
        for record in records:
            made = change({key: value for key, value in record.items() if key not in ("schema", "seq", "prev")})
            for one in made if isinstance(made, list) else [made] if made is not None else []:
                journal.append(one)
    path.with_suffix(".lock").unlink()


def rewrite_cases(path: Path, change: Any) -> None:
    cases = read_cases(path)
    changed: Cases = change(cases)
    write_cases(changed, path)
