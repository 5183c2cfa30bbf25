"""Scoring a journal of 10⁶ records against plainly parsing it, in processes of their own."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.journal import GENESIS, SCHEMA

RECORDS = 1_000_000
TASKS, CRITERIA = 96, 521
RUNS = 2

PARSE = """
import json, resource, sys, time
began = time.process_time()
with open(sys.argv[1], "rb") as stream:
    for line in stream:
        json.loads(line)
print(json.dumps({"cpu_s": time.process_time() - began}))
"""

SCORE = """
import json, re, sys, time
from pathlib import Path
from bench.atomic import write_json
from evaluator.cases import read_cases
from evaluator.score import score
began = time.process_time()
found = score(read_cases(Path(sys.argv[2])), Path(sys.argv[1]), settings={}, attempts=True)
write_json(Path(sys.argv[3]), found)
assert found["coverage"]["criteria_scored"] == int(sys.argv[4]), found["coverage"]
rss_mb = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps({"cpu_s": time.process_time() - began, "rss_mb": rss_mb}))
"""


def measure(records: int = RECORDS) -> dict[str, float]:
    """`ratio`: CPU time of scoring (reading cases.json and writing scores.json included) over that of `json.loads`
    line by line, the worse of a chained journal of ours and a foreign one with case, criterion and verdict only;
    `rss_mb`: peak memory of the whole scoring process. Best of two runs each, alternating.

    The journal has the public set's shape, 96 tasks with 521 criteria, and as many attempts as fill it.
    """
    with tempfile.TemporaryDirectory(prefix="cdb-measure-") as scratch:
        folder = Path(scratch)
        names = _write_cases(folder / "cases.json")
        figures: dict[str, float] = {"records": records}
        for kind, lines in (("own", _own), ("foreign", _foreign)):
            journal = folder / f"{kind}.jsonl"
            with journal.open("wb") as stream:
                stream.writelines(lines(names, records))
            figures |= {f"{kind}_{key}": value for key, value in _compare(journal, folder, records).items()}
            journal.unlink()
    figures["ratio"] = max(figures["own_ratio"], figures["foreign_ratio"])
    figures["rss_mb"] = max(figures["own_rss_mb"], figures["foreign_rss_mb"])
    return figures


def _compare(journal: Path, folder: Path, records: int) -> dict[str, float]:
    parse, scoring = [], []
    for _ in range(RUNS):
        parse.append(_child(PARSE, journal)["cpu_s"])
        scoring.append(_child(SCORE, journal, folder / "cases.json", folder / "scores.json", records))
    best = min(run["cpu_s"] for run in scoring)
    return {
        "parse_s": round(min(parse), 3),
        "score_s": round(best, 3),
        "ratio": round(best / min(parse), 3),
        "rss_mb": round(max(run["rss_mb"] for run in scoring), 1),
    }


def _child(program: str, *arguments: object) -> dict[str, float]:
    argv = [sys.executable, "-c", program, *map(str, arguments)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def _write_cases(path: Path) -> list[tuple[str, int]]:
    """A cases.json of the public set's size; gives case and index of every criterion."""
    names, cases = [], []
    for task in range(TASKS):
        criteria = [
            {"criterion_index": i, "rubric_id": f"case-{task:03d}-{i}", "criterion": f"Criterion {i} of task {task}."}
            for i in range(1, CRITERIA // TASKS + (task < CRITERIA % TASKS) + 1)
        ]
        names += [(f"case-{task:03d}", int(str(c["criterion_index"]))) for c in criteria]
        cases.append(
            {
                "case": f"case-{task:03d}", "request": "r", "attachment": ("audio", "video", "none")[task % 3],
                "attachments": [], "annotation": None, "project": "p", "start_digest": "sha256:0",
                "serve_plan": None, "criteria": criteria, "plan": [], "planned": False,
                "submission": {"folder": "s", "digest": "sha256:1", "changed_files": 1, "outcome": "ok"},
            }
        )  # fmt: skip
    whole: dict[str, Any] = {
        "schema": "cdb.cases/1", "dataset": {"name": "measured"}, "scope": {"label": "measured"},
        "entry": {"agent": "a"}, "plans_sha256": "sha256:0", "cases": cases,
    }  # fmt: skip
    path.write_text(json.dumps(whole), encoding="utf-8")
    return names


def _verdicts(names: list[tuple[str, int]], records: int) -> Iterator[tuple[str, int, int, str]]:
    chance = random.Random(0)
    for number in range(records):
        case, index = names[number % len(names)]
        yield case, index, number // len(names) + 1, chance.choice(("PASS", "PARTIAL", "FAIL"))


def _foreign(names: list[tuple[str, int]], records: int) -> Iterator[bytes]:
    for case, index, attempt, verdict in _verdicts(names, records):
        record = {"case": case, "criterion": index, "verdict": verdict, "attempt": attempt}
        yield json.dumps(record).encode() + b"\n"


def _own(names: list[tuple[str, int]], records: int) -> Iterator[bytes]:
    """Chained lines with the fields of a criterion record, its replays left out: they would favour us."""
    previous = GENESIS
    for seq, (case, index, attempt, verdict) in enumerate(_verdicts(names, records), start=1):
        column = {"verdict": verdict, "rule": "all_hold"}
        record = {
            "schema": SCHEMA, "seq": seq, "prev": previous, "at": "2026-11-30T12:00:00.000+00:00",
            "type": "criterion", "case": case, "criterion_index": index, "attempt": attempt, "outcome": "ok",
            "reason": "", "verdict": verdict, "columns": {"judge": column, "card": column, "witnessed": column},
            "flags": [],
        }  # fmt: skip
        line = json.dumps(record).encode()
        previous = hashlib.sha256(line).hexdigest()
        yield line + b"\n"
