"""Results of ME-96's size made up on the spot, to measure the report: 96 cases, 521 criteria, some entries.

    python -m scripts.make_full_size_results OUT [--entries 4] [--seed 1]

Writes OUT/results/ENTRY/ as `cdb judge` and `cdb score` leave it, and OUT/runs/ENTRY/ with trials, patches and
trajectories. Nothing in it was judged. Pictures are few and repeated, with bytes appended that make each its own.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from bench.atomic import write_json

CASES, CRITERIA = 96, 521
KINDS = ("audio", "video", "document", "image", "none")
VERDICTS = ("PASS", "PARTIAL", "FAIL")
RULES = {"PASS": "all_hold", "PARTIAL": "core_holds", "FAIL": "core_missing"}
COLUMNS = ("judge", "card", "witnessed")
MODELS = ("alpha-large", "alpha-small", "beta-pro", "gamma-7b", "delta-2", "epsilon-mini")


def make(out: Path, *, entries: int = 4, distinct: bool = True, seed: int = 1) -> list[Path]:
    """The results folders, best first. The same arguments give the same files.

    Without `distinct` the same few pictures stand everywhere, which takes a fraction of the time and the disk.
    """
    cases, criteria = CASES, CRITERIA
    drawn = random.Random(seed)
    counts = [criteria // cases + (i < criteria % cases) for i in range(cases)]
    names = [f"case-{i + 1:03d}" for i in range(cases)]
    project = out / "project"
    _save(project / "_annotations/annotated.jpg", _picture(0, 1280, 800))
    return [_Entry(out, place, names, counts, drawn, distinct).make() for place in range(entries)]


class _Entry:
    def __init__(
        self, out: Path, place: int, names: list[str], counts: list[int], drawn: random.Random, distinct: bool
    ) -> None:
        self.distinct = distinct
        self.model = MODELS[place % len(MODELS)]
        self.name = f"agent-{place + 1}__{self.model}__1"
        self.results, self.run = out / "results" / self.name, out / "runs" / self.name
        self.place, self.names, self.counts, self.drawn = place, names, counts, drawn
        self.skill = 0.75 - 0.13 * place
        self.pictures = 0

    def make(self) -> Path:
        records, rows, listed, trials = [], [], [], []
        for at, (case, count) in enumerate(zip(self.names, self.counts, strict=True)):
            verdicts = [self._verdict() for _ in range(count)]
            records += [self._criterion(case, i, v) for i, v in enumerate(verdicts, start=1)]
            shots = {}
            for name, size in (("desktop", (1280, 800)), ("phone", (390, 844))):
                for app in ("start", "submission"):
                    shots[f"{app}_{name}"] = self._shot(f"evidence/{case}/{app}-{name}.jpg", app, *size)
            records.append({"type": "case", "case": case, "outcome": "ok", "shots": shots, "changed_files": 3})
            kind = KINDS[at % 5]
            rows.append(self._row(case, kind, verdicts))
            listed.append(self._listed(case, kind, count))
            trials.append(self._trial(case))
        _journal(self.results / "journal.jsonl", records)
        _journal(self.run / "journal.jsonl", trials)
        self._write_rest(rows, listed)
        return self.results

    def _verdict(self) -> str:
        luck = self.drawn.random()
        return "PASS" if luck < self.skill else "PARTIAL" if luck < self.skill + 0.12 else "FAIL"

    def _shot(self, name: str, app: str, width: int, height: int) -> str:
        self.pictures += 1
        own = b"" if app == "start" or not self.distinct else f"{self.name}/{name}".encode()
        _save(self.results / name, _picture(self.pictures % 24, width, height) + own)
        return name

    def _criterion(self, case: str, index: int, verdict: str) -> dict[str, Any]:
        folder = f"evidence/{case}/{index:02d}"
        frames = {app: self._shot(f"{folder}/a-{app}/04.jpg", app, 1280, 800) for app in ("start", "submission")}
        holds = verdict != "FAIL"
        columns = {column: {"verdict": verdict, "rule": RULES[verdict]} for column in COLUMNS}
        lowered = verdict == "FAIL" and self.drawn.random() < 0.2
        if lowered:
            columns["judge"] = {"verdict": "PASS", "rule": "all_hold"}
        part = {
            "id": "a", "text": f"What criterion {index} of {case} asks for is there and works.", "core": True,
            "witness": None, "replays": [
                _replay("submission", "propose", holds, frames["submission"]),
                _replay("submission", "repeat", holds, None),
                _replay("start", "vacuity", False, frames["start"]),
                _replay("submission", "vary", holds, None),
            ],
            "reason": "The change is in the page's own script and follows what is typed.",
            "refutation": {"outcome": "downgrade" if lowered else "uphold", "reason": "Tried with other inputs."},
            "proposed": holds or lowered, "card": holds, "witnessed": holds,
            "lowered_by": "attempt_failed" if lowered else "",
        }  # fmt: skip
        return {
            "type": "criterion", "case": case, "criterion_index": index, "rubric_id": f"{case}-{index}",
            "criterion": _criterion_text(case, index), "kind": "behaviour", "outcome": "ok",
            "verdict": verdict, "columns": columns, "sub_requirements": [part], "start_frame": frames["start"],
            "submission_frame": frames["submission"], "flags": ["lowered"] if lowered else [], "duration_s": 31.5,
        }  # fmt: skip

    def _row(self, case: str, kind: str, verdicts: list[str]) -> dict[str, Any]:
        passed, partial, n = verdicts.count("PASS"), verdicts.count("PARTIAL"), len(verdicts)
        return {
            "case": case, "attachment": kind, "outcome": "ok", "strict": 100 * passed / n,
            "graded": 100 * (passed + partial / 2) / n, "full": 100.0 * (passed == n),
        }  # fmt: skip

    def _listed(self, case: str, kind: str, count: int) -> dict[str, Any]:
        return {
            "case": case, "title": f"Application {case[-3:]}", "attachment": kind,
            "annotation": "../../project/_annotations/annotated.jpg", "project": "../../project", "attachments": [],
            "request": f"Please change {case} as I drew it. " + "It should remember what I typed and say so. " * 8,
            "criteria": [
                {"criterion_index": i, "rubric_id": f"{case}-{i}", "criterion": _criterion_text(case, i)}
                for i in range(1, count + 1)
            ],
            "submission": {
                "folder": f"../../runs/{self.name}/submissions/{case}", "changed_files": 3, "outcome": "ok",
            },
        }  # fmt: skip

    def _trial(self, case: str) -> dict[str, Any]:
        folder = self.run / "trials" / case / "1"
        _save(folder / "changes.patch", _patch(case).encode())
        write_json(folder / "trajectory.json", _trajectory(self.model, 40))
        usd = round(self.drawn.uniform(0.4, 3.0) / (1 + self.place), 4)
        seal = {
            "case": case, "outcome": "ok", "digest": "sha256:" + "ab" * 32, "changed_files": 3, "duration_s": 412.5,
            "usage": {"calls": 40, "tokens": {"input": 800_000, "output": 24_000}, "cost_usd": usd},
        }  # fmt: skip
        write_json(self.run / "submissions" / f"{case}.manifest.json", seal)
        return {
            "type": "trial",
            "case": case,
            "outcome": "ok",
            "reason": "",
            "logs": f"trials/{case}/1",
            "exit_code": 0,
        }

    def _write_rest(self, rows: list[dict[str, Any]], listed: list[dict[str, Any]]) -> None:
        means = {m: sum(row[m] for row in rows) / len(rows) for m in ("strict", "graded", "full")}
        column = {m: {"mean": v, "low": max(0.0, v - 6), "high": min(100.0, v + 6)} for m, v in means.items()}
        strata = {}
        for kind in KINDS:
            own = [row for row in rows if row["attachment"] == kind]
            strata[kind] = {"tasks": len(own), **{m: sum(r[m] for r in own) / max(1, len(own)) for m in means}}
        criteria = sum(self.counts)
        dataset = {"name": "Full size", "digest": "sha256:" + "cd" * 32, "tasks": len(rows), "criteria": criteria}
        entry = {"agent": f"agent-{self.place + 1}", "model": self.model, "harness": "cdb", "attempt": 1}
        coverage = {"tasks_scored": len(rows), "tasks": len(rows), "criteria_scored": criteria, "criteria": criteria}
        scope = {"label": "Full size, all tasks", "whole": True, "cases": self.names}
        write_json(self.results / "cases.json", {"schema": "cdb.cases/1", "dataset": dataset, "cases": listed})
        write_json(
            self.results / "scores.json",
            {"schema": "cdb.scores/1", "columns": dict.fromkeys(COLUMNS, column), "coverage": coverage,
             "by_attachment": strata, "cases": rows, "incomplete": False, "bounds": None, "flags": {}},
        )  # fmt: skip
        write_json(
            self.results / "lock.json",
            {"schema": "cdb.lock/1", "entry": entry, "dataset": dataset, "scope": scope,
             "judge": {"name": "made up", "model": None}, "conditions": {"egress": "none"}},
        )  # fmt: skip
        usage = {"calls": 3840, "cost_usd": round(140 / (1 + self.place) ** 1.5, 2)}
        write_json(
            self.results / "spend.json",
            {"schema": "cdb.spend/1", "solve": {"duration_s": 39600.0, "usage": usage},
             "judge": {"duration_s": 20000.0, "usage": {}}},
        )  # fmt: skip


def _criterion_text(case: str, index: int) -> str:
    return (
        f"Criterion {index} of {case}: the page shows what was asked for beside the heading, follows every change, "
        "and still shows it after the page was loaded again."
    )


def _replay(app: str, purpose: str, held: bool, frame: str | None) -> dict[str, Any]:
    texts = ["Open /", "Click the button “Add”", "Fill “Name” with “Ana”", "See that .toast contains “Ana”"]
    steps: list[dict[str, Any]] = [
        {"index": i, "text": text, "ok": held or i < 3, "ms": 120} for i, text in enumerate(texts)
    ]
    steps[3]["frame"] = frame
    reason = "" if held else "no element matches .toast within 2.0 s"
    return {
        "app": app, "purpose": purpose, "outcome": "held" if held else "failed", "steps": steps,
        "failed_step": None if held else 3, "reason": reason, "duration_s": 1.9,
    }  # fmt: skip


def _patch(case: str) -> str:
    parts = []
    for name in ("index.html", "js/main.js", "css/base.css"):
        lines = [f"-  const before{i} = '{case}';\n+  const after{i} = '{case}';\n   keep({i});\n" for i in range(30)]
        parts.append(
            f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1,60 +1,60 @@\n" + "".join(lines)
        )
    return "".join(parts)


def _trajectory(model: str, steps: int) -> dict[str, Any]:
    began = datetime(2026, 1, 5, 9, tzinfo=UTC)
    made: list[dict[str, Any]] = [
        {"step_id": 1, "source": "user", "timestamp": began.isoformat(), "message": "Please."}
    ]
    for i in range(2, steps + 1):
        call = {"tool_call_id": f"c{i}", "function_name": "bash", "arguments": {"command": f"sed -n {i}p js/main.js"}}
        at = (began + timedelta(seconds=10 * i)).isoformat()
        made.append(
            {"step_id": i, "source": "agent", "timestamp": at, "model_name": model, "message": "I look.",
             "tool_calls": [call],
             "observation": {"results": [{"source_call_id": f"c{i}", "content": "keep();\n" * 12}]},
             "metrics": {"prompt_tokens": 20_000, "completion_tokens": 600, "cost_usd": 0.03}}
        )  # fmt: skip
    return {"schema_version": "ATIF-v1.8", "agent": {"name": "made up", "version": "1"}, "steps": made}


_painted: dict[tuple[int, int, int], bytes] = {}


def _picture(kind: int, width: int, height: int) -> bytes:
    """A JPEG that looks like a page and weighs like one."""
    key = (kind, width, height)
    if key not in _painted:
        drawn = random.Random(kind)
        image = Image.new("RGB", (width, height), (246, 246 - kind, 240))
        draw = ImageDraw.Draw(image)
        for row in range(20, height - 60, 70):
            for column in range(20, width - 100, 180):
                colour = (drawn.randrange(256), drawn.randrange(256), drawn.randrange(256))
                draw.rounded_rectangle((column, row, column + 160, row + 54), 10, fill=colour)
                draw.text((column + 10, row + 14), f"Item {drawn.randrange(10_000)}", fill="white", font_size=18)
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=85)
        _painted[key] = stream.getvalue()
    return _painted[key]


def _save(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _journal(path: Path, records: list[dict[str, Any]]) -> None:
    previous, lines = "0" * 64, []
    for seq, record in enumerate(records, start=1):
        at = "2026-01-05T12:00:00+00:00"
        line = json.dumps({"schema": "cdb.journal/1", "seq": seq, "prev": previous, "at": at, **record})
        previous = hashlib.sha256(line.encode()).hexdigest()
        lines.append(line + "\n")
    _save(path, "".join(lines).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--entries", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for folder in make(given.out, entries=given.entries, seed=given.seed):
        print(folder)


if __name__ == "__main__":
    main()
