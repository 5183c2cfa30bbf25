"""A solve entry of a bundle: its journal's chain, its seals, and what its lock says of who made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.journal import JournalStream, Record
from bench.strict_json import read_json
from bench.submission import check_seal, read_manifest
from evaluator.bundle.findings import Findings
from evaluator.bundle.layout import ENTRIES

_SEAL = ".manifest.json"


@dataclass
class Solved:
    """Digests of an entry's sealed submissions, and of an entry of ours lock, trials and the chain's head."""

    sealed: dict[str, str] = field(default_factory=dict)
    lock: dict[str, Any] | None = None
    trials: dict[str, Record] = field(default_factory=dict)
    head: str | None = None
    named_by_hand: bool = False
    """Its submissions have an entry.json, which says who made them whatever the lock says."""


def check_entries(found: Findings) -> dict[str, Solved]:
    """Every entry by its name."""
    folder = found.folder / ENTRIES
    entries = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return {entry.name: _check_entry(found, entry) for entry in entries}


def _check_entry(found: Findings, entry: Path) -> Solved:
    solved = Solved()
    here, submissions = f"{ENTRIES}/{entry.name}", entry / "submissions"
    seals = sorted(submissions.glob(f"*{_SEAL}")) if submissions.is_dir() else []
    for seal in seals:
        case = seal.name.removesuffix(_SEAL)
        with found.at(f"{here}/submissions/{case}"):
            manifest = read_manifest(submissions, case)
            if manifest is not None:
                solved.sealed[case] = manifest.digest
                check_seal(submissions, manifest)
    folders = {path.name for path in submissions.iterdir() if path.is_dir()} if submissions.is_dir() else set()
    for case in sorted(folders - {seal.name.removesuffix(_SEAL) for seal in seals}):
        found.fault(f"{here}/submissions/{case}", "it has no seal beside it")
    solved.named_by_hand = (submissions / "entry.json").is_file()
    if (entry / "journal.jsonl").is_file():
        journal = read_chain(found, f"{here}/journal.jsonl")
        solved.head = journal.head
        solved.trials = {str(r.get("case")): r for r in journal.records if r.get("type") == "trial"}
        with found.at(f"{here}/lock.json"):
            solved.lock = dict(read_json(entry / "lock.json"))
    for case, trial in solved.trials.items():
        if trial.get("digest") and case in solved.sealed and trial["digest"] != solved.sealed[case]:
            told = f"its seal is of {solved.sealed[case]}, its trial sealed {trial['digest']}"
            solved.trials[case] = {**trial, "fault": told}
    return solved


@dataclass
class Chain:
    records: list[Record] = field(default_factory=list)
    head: str | None = None
    """sha256 of the last line; None when the chain is broken."""


def read_chain(found: Findings, place: str) -> Chain:
    """The records of a journal up to the first line that breaks its chain, which is a fault."""
    chain = Chain()
    stream = JournalStream(found.folder / place)
    with found.at(place):
        for record in stream:
            chain.records.append(record)
        chain.head = stream.last_hash
        if stream.torn_bytes:
            found.fault(place, f"its last line is torn ({stream.torn_bytes} bytes without a line's end)")
    return chain
