"""One judging of a bundle: cases, lock, journal, evidence, verdicts and scores, each against the others."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.journal import Record
from bench.strict_json import read_json
from bench.task import scope_of
from bench.tree import digest, file_sha256, list_tree
from evaluator.adjudicate import probe_agrees
from evaluator.bundle.check_entry import Chain, Solved, read_chain
from evaluator.bundle.check_verdict import faults_of
from evaluator.bundle.findings import Findings
from evaluator.bundle.layout import CARD, ENTRIES, RESULTS, START, BundleCard, ResultCard
from evaluator.cases import Case, Cases, read_cases, what_is_judged
from evaluator.exports.entry import overrides_of
from evaluator.plans import plans_digest
from evaluator.prepare import RESEALED
from evaluator.probes.proving import new_quotes
from evaluator.records import CasePlan, CaseRecord, CriterionRecord, SubResult
from evaluator.run_card import run_card
from evaluator.score import score, settings_beside
from evaluator.spend import spend
from evaluator.witness import load_witness

Key = tuple[str, int]
RECORD_TYPES = ("run", "case", "criterion", "end")
"""What the journal of a judging holds."""


@dataclass
class Result:
    """A judging that could be read: its cases, and the record that counts for each criterion."""

    name: str
    folder: Path
    cases: Cases
    last: dict[Key, CriterionRecord]


def check_result(found: Findings, name: str, card: BundleCard | None, solved: dict[str, Solved]) -> Result | None:
    """None when cases.json or journal cannot be read; then the rest cannot be checked."""
    here, folder = f"{RESULTS}/{name}", found.folder / RESULTS / name
    cases: Cases | None = None
    with found.at(f"{here}/cases.json"):
        cases = read_cases(folder / "cases.json")
        if outside := _outside(found.folder, folder, cases):
            found.fault(f"{here}/cases.json", f"{outside} leads out of the bundle; nothing more of it was read")
            return None
    chain = read_chain(found, f"{here}/journal.jsonl")
    told = next((one for one in card.results if one.name == name), None) if card else None
    if told:
        _check_heads(found, here, told, chain, solved)
    if cases is None:
        return None
    _check_lock(found, here, folder, cases)
    for case in cases.cases:
        _check_submission(found, here, case, cases, solved)
    result = Result(name, folder, cases, _check_records(found, here, cases, chain.records))
    by_id = {case.case: case for case in cases.cases}
    for record in result.last.values():
        _check_evidence(found, here, folder, record)
        _check_citations(found, f"{here}/journal.jsonl", folder, by_id[record.case], record)
    _check_unbound(found, here, folder, result.last)
    _check_scores(found, here, folder, cases, told)
    return result


def _outside(bundle: Path, folder: Path, cases: Cases) -> str | None:
    """The first path of cases.json that does not lead to its place within the bundle."""
    for case in cases.cases:
        if case.case in ("", ".", "..") or "/" in case.case or "\0" in case.case:
            return f"the case {case.case!r}"
        paths = {case.project: f"{START}/{case.case}/project"}
        if case.submission:
            place = _place_of(case)
            paths[case.submission.folder] = f"{ENTRIES}/{place}/submissions/{case.case}"
        for path, expected in paths.items():
            if os.path.normpath(folder / path) != os.path.normpath(bundle / expected):
                return path
    return None


def _place_of(case: Case) -> str:
    """The entry a case's submission lies in, by its path; "" for a path of another form."""
    parts = case.submission.folder.split("/") if case.submission else []
    return parts[-3] if len(parts) == 6 and parts[:3] == ["..", "..", ENTRIES] else ""


def _check_heads(found: Findings, here: str, told: ResultCard, chain: Chain, solved: dict[str, Solved]) -> None:
    if chain.head is not None and chain.head != told.journal_sha256:
        found.fault(f"{here}/journal.jsonl", "its last line is not the one that bundle.json names")
    own = solved.get(told.entry or "")
    if told.entry is not None and own is None:
        found.fault(CARD, f"it names the entry {told.entry!r}, which is not there")
    elif own and own.head != told.solve_journal_sha256:
        found.fault(f"{ENTRIES}/{told.entry}/journal.jsonl", "its last line is not the one that bundle.json names")


def _check_lock(found: Findings, here: str, folder: Path, cases: Cases) -> None:
    place = f"{here}/lock.json"
    with found.at(place):
        lock = read_json(folder / "lock.json")
        for key, value in what_is_judged(cases).items():
            if lock[key] != value:
                found.fault(place, f"its {key} is not that of cases.json")
    _check_scope(found, f"{here}/cases.json", cases)
    plans = [CasePlan(case=case.case, criteria=case.plan) for case in cases.cases]
    if plans_digest(plans) != cases.plans_sha256:
        found.fault(f"{here}/cases.json", "its plans do not have the digest it gives for them")


def _check_scope(found: Findings, place: str, cases: Cases) -> None:
    """What the result calls itself follows from the cases it has: a case that was taken out shows."""
    with found.at(place):
        criteria = sum(len(case.criteria) for case in cases.cases)
        told = (cases.dataset["tasks"], cases.dataset["criteria"])
        if told != (len(cases.cases), criteria):
            found.fault(
                place,
                f"it speaks of {told[0]} tasks and {told[1]} criteria, it has {len(cases.cases)} and {criteria}",
            )
        names, declared = [case.case for case in cases.cases], int(cases.scope["declared"])
        if cases.scope != scope_of(str(cases.dataset["name"]), names, declared):
            found.fault(place, f"its scope {cases.scope.get('label')!r} is not that of its {len(names)} cases")


def _check_submission(found: Findings, here: str, case: Case, cases: Cases, solved: dict[str, Solved]) -> None:
    """The submission that was judged is the one that is sealed here, and the one that its trial left."""
    if case.submission is None:
        sealed = [name for name, own in solved.items() if own.trials.get(case.case, {}).get("digest")]
        if sealed and cases.entry.get("harness") == "cdb" and len(solved) == 1:
            found.fault(f"{here}/cases.json", f"{case.case} has no submission, though its trial sealed one")
        return
    place = f"{ENTRIES}/{_place_of(case)}/submissions/{case.case}"
    own = solved.get(_place_of(case), Solved())
    if case.case not in own.sealed:
        found.fault(place, "its seal is missing")
    elif own.sealed[case.case] != case.submission.digest:
        found.fault(place, f"its seal is of {own.sealed[case.case]}, judged was {case.submission.digest}")
    trial = own.trials.get(case.case, {})
    if "fault" in trial and RESEALED not in case.submission.flags:
        found.fault(place, str(trial["fault"]))
    if own.lock and not own.named_by_hand:
        who = {key: value for key, value in cases.entry.items() if key != "reportable"}
        if who != own.lock.get("entry"):
            found.fault(
                f"{here}/cases.json", f"it says {who} made the submissions, {ENTRIES}'s lock {own.lock.get('entry')}"
            )
        solved_of = own.lock.get("scope", {}).get("declared")
        if solved_of != cases.scope.get("declared"):
            found.fault(
                f"{here}/cases.json",
                f"its release has {cases.scope.get('declared')} cases, that of the solve entry's lock {solved_of}",
            )
        for key, value in cases.solve.items():
            if key != "caps" and own.lock.get(key) != value:
                found.fault(f"{here}/cases.json", f"its solve.{key} is not that of the solve entry's lock")


def _check_records(found: Findings, here: str, cases: Cases, records: list[Record]) -> dict[Key, CriterionRecord]:
    known = {case.case: case for case in cases.cases}
    last: dict[Key, CriterionRecord] = {}
    lines: dict[Key, int] = {}
    for record in records:
        place = f"{here}/journal.jsonl, line {record['seq']}"
        case = known.get(str(record.get("case")))
        if record.get("type") not in RECORD_TYPES:
            found.fault(place, f"no judging writes a record of type {record.get('type')!r}")
        if record.get("type") not in ("criterion", "case"):
            continue
        if case is None:
            found.fault(place, f"cases.json has no case {record.get('case')!r}")
            continue
        with found.at(place):
            if record["type"] == "case":
                _check_case(found, place, CaseRecord.model_validate(_fields(record, CaseRecord)), case)
                continue
            judged = CriterionRecord.model_validate(_fields(record, CriterionRecord))
            for fault in faults_of(judged, case):
                found.fault(place, f"{judged.case} criterion {judged.criterion_index}: {fault}")
            key = judged.case, judged.criterion_index
            if fault := _second(last.get(key), lines.get(key), record.get("supersedes")):
                found.fault(place, f"{judged.case} criterion {judged.criterion_index}: {fault}")
            last[key], lines[key] = judged, record["seq"]
    return last


def _second(before: CriterionRecord | None, line: int | None, superseded: object) -> str:
    """What is wrong with a record that follows `before`, of line `line`: only an undecided one is judged again."""
    if superseded != line:
        return f"it supersedes {superseded}, its criterion's record before it is {line}"
    if before is not None and before.verdict is not None:
        return f"it replaces the verdict of line {line}, and a verdict is never judged again"
    return ""


def _fields(record: Record, model: type[CaseRecord] | type[CriterionRecord]) -> Record:
    return {key: value for key, value in record.items() if key in model.model_fields}


def _check_case(found: Findings, place: str, record: CaseRecord, case: Case) -> None:
    judged = case.submission.digest if case.submission else None
    if record.outcome != "infra_error" and record.submission_digest != judged:
        found.fault(place, f"it judged {record.submission_digest}, cases.json has {judged}")


def _check_evidence(found: Findings, here: str, folder: Path, record: CriterionRecord) -> None:
    inner = f"evidence/{record.case}/{record.criterion_index:02d}"
    evidence = folder / inner
    if record.evidence_digest is not None:
        now = digest(list_tree(evidence)) if evidence.is_dir() else "gone"
        if now != record.evidence_digest:
            found.fault(f"{here}/{inner}", f"the journal has {record.evidence_digest} of it, it is {now}")
    for sub in record.sub_requirements:
        with found.at(f"{here}/{inner}"):
            _check_witness(found, here, folder, inner, sub)
    frames = [
        step.frame for sub in record.sub_requirements for run in sub.replays for step in run.steps if step.frame
    ]
    frames += [picture for sub in record.sub_requirements if sub.pair for picture in sub.pair.pictures]
    for frame in frames:
        with found.at(f"{here}/{inner}"):
            if not _is_below(frame, f"evidence/{record.case}") or not (folder / frame).is_file():
                found.fault(f"{here}/{frame[:200]}", "the journal speaks of this picture, and it is not there")


def _check_citations(found: Findings, place: str, folder: Path, case: Case, record: CriterionRecord) -> None:
    """What a refuter cited where that took a credit away stands in the submission. Its probe needs a replay."""
    for sub in record.sub_requirements:
        told = sub.refutation
        if told is None or case.submission is None or not probe_agrees(told):
            continue
        if not new_quotes(folder / case.submission.folder, folder / case.project, told.citations):
            where = f"{record.case} criterion {record.criterion_index}, part {sub.id}"
            found.fault(place, f"{where}: nothing that its refuter cites is in the submission")


def _check_witness(found: Findings, here: str, folder: Path, inner: str, sub: SubResult) -> None:
    told = sub.refutation
    kept = [(sub.witness, sub.witness_sha256), *([(told.counter_witness, told.counter_sha256)] if told else [])]
    for name, sha256 in kept:
        if name is None:
            continue
        if not _is_below(name, inner):
            found.fault(f"{here}/{inner}", f"part {sub.id} names {name!r} as its witness, which lies elsewhere")
            continue
        witness = load_witness(folder / name)
        if witness.digest() != sha256:
            found.fault(f"{here}/{name}", "it is not the witness that was judged")
        varied = sum(run.purpose == "vary" for run in sub.replays)
        if name == sub.witness and sub.witnessed and varied < len(witness.vary):
            found.fault(f"{here}/{name}", "credited without the runs with other inputs that it names")


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/") and os.path.normpath(path) == path


def _check_unbound(found: Findings, here: str, folder: Path, last: dict[Key, CriterionRecord]) -> None:
    """Evidence of a criterion that no record is bound to: nothing would show a change in it."""
    bound = {(case, f"{index:02d}") for (case, index), record in last.items() if record.evidence_digest}
    for evidence in sorted((folder / "evidence").glob("*/[0-9][0-9]")) if (folder / "evidence").is_dir() else []:
        if evidence.is_dir() and (evidence.parent.name, evidence.name) not in bound:
            place = f"{here}/evidence/{evidence.parent.name}/{evidence.name}"
            found.notes.append(f"{place}: no record of the journal gives its digest; only bundle.json covers it")


def _check_scores(found: Findings, here: str, folder: Path, cases: Cases, told: ResultCard | None) -> None:
    """Score again and compare byte for byte."""
    place = f"{here}/scores.json"
    with found.at(place):
        before: dict[str, Any] = read_json(folder / "scores.json")
        if before["overrides"]:
            found.notes.append(
                f"{place}: {len(before['overrides'])} verdicts were overruled by a person, by their word"
            )
        if told and (told.label, told.scores_sha256) != (before["label"], file_sha256(folder / "scores.json")):
            found.fault(place, "it is not the one that bundle.json names")
        again = score(
            cases,
            folder / "journal.jsonl",
            settings=settings_beside(folder / "journal.jsonl", cases),
            attempts=before["attempts"] is not None,
            overrides=overrides_of(before),
        )
        if (folder / "scores.json").read_bytes() != _json_bytes(again):
            found.fault(place, f"scored again it differs in {', '.join(_differing(before, again)) or 'its form'}")
        if (folder / "run_card.md").read_bytes() != run_card(again).encode("utf-8", "backslashreplace"):
            found.fault(f"{here}/run_card.md", "made again from the scores it differs")
        if (folder / "spend.json").read_bytes() != _json_bytes(spend(cases, folder, folder / "journal.jsonl")):
            found.fault(f"{here}/spend.json", "summed again from the journals it differs")


def _json_bytes(value: Any) -> bytes:
    """As `bench.atomic.write_json` writes it."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def _differing(before: Any, again: dict[str, Any]) -> list[str]:
    told = before if isinstance(before, dict) else {}
    return sorted(key for key in told.keys() | again.keys() if told.get(key) != again.get(key))
