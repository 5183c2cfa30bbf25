"""Judgings as they lie on disk, made up: real journals, records and pictures, without engine or browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image

from bench.journal import Journal
from evaluator.cases import Case, Cases, CriterionText, SubmissionFacts, what_is_judged, write_cases
from evaluator.records import CaseRecord, CriterionRecord

Verdicts = dict[str, list[str | None]]
AGENT, MODEL, SAID = "secret-agent-x", "secret-model-y", "the judge's own reason"


def make_judging(
    folder: Path, verdicts: Verdicts, *, text: str = "", flagged: frozenset[tuple[str, int]] = frozenset(),
    judge: str = "one", plan: str = "behaviour", digest: str = "d", settled: str = "",
) -> Path:  # fmt: skip
    """A results folder: case → verdict of each criterion. `text` stands in every text; `settled`: a case not built."""
    folder.mkdir(parents=True)
    who = {"agent": AGENT, "model": MODEL, "harness": "cdb", "attempt": 1, "reportable": True}
    listed = [_case(case, given, plan, text, digest, number) for number, (case, given) in enumerate(verdicts.items())]
    cases = Cases(
        dataset={"name": "D"}, scope={"label": "D", "whole": True}, entry=who, plans_sha256=plan, cases=listed
    )
    write_cases(cases, folder / "cases.json")
    lock = {"step": "judge", **what_is_judged(cases), "judge": {"name": judge}, "conditions": {"egress": "none"}}
    (folder / "lock.json").write_text(json.dumps(lock))
    for name, colour in (("start.png", (20, 60, 200)), ("submission.png", (200, 60, 20))):
        Image.new("RGB", (1400, 700), colour).save(folder / name)
    with Journal(folder / "journal.jsonl") as journal:
        for case, given in verdicts.items():
            rule = "build_failed" if case == settled else "core_holds"
            for index, verdict in enumerate(given, start=1):
                flags = ["flaky"] if (case, index) in flagged else []
                journal.append(_record(case, index, verdict, rule, text, flags))
            outcome = "build_failed" if case == settled else "ok"
            shots = {"start_desktop": "start.png", "submission_desktop": "submission.png"}
            journal.append(CaseRecord(case=case, outcome=outcome, shots=shots).model_dump(mode="json"))
    return folder


def _case(case: str, given: list[str | None], plan: str, text: str, digest: str, number: int) -> Case:
    return Case.model_validate({
        "case": case, "request": f"request of {case} {text}", "attachment": ("audio", "none")[number % 2],
        "attachments": [], "annotation": None, "project": "p", "start_digest": "s", "serve_plan": None, "planned": True,
        "criteria": [
            CriterionText(criterion_index=i, rubric_id=f"{case}{i}", criterion=f"criterion {i} of {case} {text}").model_dump()
            for i in range(1, len(given) + 1)
        ],
        "plan": [
            {"criterion_index": i, "kind": plan, "sub_requirements": [{"id": "a", "text": "t"}]}
            for i in range(1, len(given) + 1)
        ],
        "submission": SubmissionFacts(folder="f", digest=f"{digest}-{case}", changed_files=1, outcome="ok").model_dump(),
    })  # fmt: skip


def _record(case: str, index: int, verdict: str | None, rule: str, text: str, flags: list[str]) -> dict[str, Any]:
    decided = {"verdict": verdict, "rule": rule}
    held = verdict == "PASS"
    step = {
        "index": 0,
        "text": f"Click the button {text}",
        "ok": held,
        "note": f"saw {text}",
        "frame": "submission.png",
    }
    replay = {
        "app": "submission",
        "purpose": "propose",
        "outcome": "held" if held else "failed",
        "reason": "it-did-not-hold",
        "steps": [step],
    }
    sub = {
        "id": "a", "text": f"part {text}", "core": True, "witness": None, "replays": [replay], "reason": SAID,
        "proposed": held, "card": held, "witnessed": held,
    }  # fmt: skip
    return CriterionRecord.model_validate({
        "case": case, "criterion_index": index, "rubric_id": f"{case}{index}", "criterion": f"criterion {index}",
        "kind": "behaviour", "outcome": "ok" if verdict else "judge_error", "reason": SAID, "verdict": verdict,
        "columns": dict.fromkeys(("judge", "card", "witnessed"), decided) if verdict else {},
        "sub_requirements": [] if rule == "build_failed" else [sub],
        "start_frame": "start.png", "submission_frame": "submission.png", "flags": flags,
    }).model_dump(mode="json")  # fmt: skip
