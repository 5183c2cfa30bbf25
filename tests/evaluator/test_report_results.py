"""Results folders made up for the report's tests, and how the report reads good, torn and foreign ones."""

from __future__ import annotations

import functools
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from bench.errors import UsageError
from evaluator.records import COLUMNS
from evaluator.report.reading import read_results

Paint = Callable[[str, str], bytes]
"""(case, what it shows) → picture file."""
Spell = Callable[[str], str]

CASES: list[tuple[str, str, str, str, list[str]]] = [
    (
        "booking",
        "Table booking form",
        "audio",
        "Please listen to project/_attachments/note.mp3. The form should ask for what I say there, and nobody "
        "must be able to book a table in the past. I circled where the new field goes.",
        [
            "The booking form has a field for allergies, placed under the number of guests, as the voice note asks.",
            "A date before today is refused with a message beside the date field.",
            "After booking, a confirmation names the guest, the date and the number of guests.",
            "The confirmation stays after the page is loaded again.",
            "The opening hours and the menu are shown as before.",
        ],
    ),
    (
        "kanban",
        "Kanban board",
        "video",
        "Watch the recording: cards should move the way I drag them there, and each column should count its cards.",
        [
            "A card dragged from one column to another stays in the new column.",
            "Each column's heading shows the number of its cards and follows every move.",
            "Columns over their limit of four cards are marked.",
            "Cards can be moved with the keyboard as the recording shows at the end.",
            "Adding and renaming a card works as before.",
        ],
    ),
    (
        "invoices",
        "Invoice list",
        "document",
        "The PDF has our new tax rules. Apply them to the totals, and let me sort by due date.",
        [
            "Totals use the reduced rate of 7 % for books, as on page 2 of the document.",
            "A click on 'Due' sorts the list by due date, a second one reverses it.",
            "Overdue invoices are marked and counted above the list.",
            "The export contains the tax column.",
            "Searching by customer works as before.",
        ],
    ),
    (
        "player",
        "Podcast player",
        "image",
        "Make the player look like the sketch and remember where I stopped.",
        [
            "The play button sits left of the title, as in the sketch.",
            "Playback continues at the remembered time after a reload.",
            "The speed can be set to 1×, 1.5× and 2×.",
            "The elapsed and remaining time are shown at either end of the bar.",
            "The list of episodes is unchanged.",
        ],
    ),
    (
        "dashboard",
        "Energy dashboard",
        "none",
        "Show last week beside this week, and warn when a day uses more than 12 kWh.",
        [
            "The chart has a second series for last week with its own label.",
            "A day above 12 kWh is marked in the chart and listed under it.",
            "Switching the unit to € changes every number on the page.",
            "The chart can be read by a screen reader: it has a name and a table.",
            "The room filter works as before.",
        ],
    ),
]

SKILL = {
    "gold": ["PPPPP"] * 5,
    "partial": ["PPHPP", "PHFPP", "HPPFP", "PPPPP", "PFHPP"],
    "stub": ["FFFFP", "FFFFP", "FFFFF", "FFFFP", "FFFFP"],
}
VERDICTS = {"P": "PASS", "H": "PARTIAL", "F": "FAIL"}
RULES_OF = {"PASS": "all_hold", "PARTIAL": "core_holds", "FAIL": "core_missing"}


@functools.cache
def paint(case: str, what: str) -> bytes:
    """A small JPEG, unlike for unlike arguments."""
    colour = hashlib.sha256(f"{case}/{what}".encode()).digest()
    image = Image.new("RGB", (64, 40), (colour[0], colour[1], colour[2]))
    ImageDraw.Draw(image).rectangle((4, 4, 40, 12), fill=(colour[3], colour[4], colour[5]))
    stream = io.BytesIO()
    image.save(stream, "JPEG")
    return stream.getvalue()


def make_results(folder: Path, agent: str, *, paint: Paint = paint, spell: Spell = str) -> Path:
    """One entry's results for CASES; `spell` changes every free text on its way in."""
    folder.mkdir(parents=True)
    records: list[dict[str, Any]] = []
    for place, (case, *_, criteria) in enumerate(CASES):
        _save(folder / f"evidence/{case}/annotation.jpg", paint(case, "annotation"))
        letters = SKILL[agent][place]
        for index, text in enumerate(criteria, start=1):
            records.append(_criterion(folder, agent, case, index, text, letters[index - 1], paint, spell))
        shots = {}
        for name in ("start_desktop", "start_phone", "submission_desktop", "submission_phone"):
            shots[name] = f"evidence/{case}/{name}.jpg"
            _save(folder / shots[name], paint(case, name if name.startswith("start") else f"{agent} {name}"))
        records.append(
            {"type": "case", "case": case, "outcome": "ok", "shots": shots, "reason": spell("Judged in full.")}
        )
    previous = "0" * 64
    lines = []
    for seq, record in enumerate([{"type": "run"}, *records, {"type": "end"}], start=1):
        at = f"2026-03-02T09:{seq:02d}:00+00:00"
        line = json.dumps({"schema": "cdb.journal/1", "seq": seq, "prev": previous, "at": at, **record})
        previous = hashlib.sha256(line.encode()).hexdigest()
        lines.append(line + "\n")
    (folder / "journal.jsonl").write_text("".join(lines))
    _write(folder / "cases.json", _cases_json(folder, agent, spell))
    _solve_side(folder.parent / "runs" / agent, agent, spell)
    (folder / "run_card.md").write_text(spell("# Run card"))
    _write(folder / "spend.json", {"solve": {"duration_s": 60.0, "usage": {"cost_usd": 5.0}}})
    for name in ("leak_audit.json", "audit_queue.json"):
        findings = [{"kind": "rubric", "place": spell("stdout.log"), "what": spell("criterion 1")}]
        rows = [{"case": "booking", "status": spell("FLAGGED"), "findings": findings}]
        _write(folder / name, {"note": spell("noted"), "statuses": {"CLEAN": 4}, "trials": rows, "criteria": rows})
    _save(folder / "evidence/booking/build/1-install.log", spell("added 14 packages").encode("utf-8", "replace"))
    _save(folder / "evidence/booking/01/a-propose/trace.zip", b"PK")
    _write(folder / "lock.json", _lock_json(agent, spell))
    _write(folder / "scores.json", _scores_json(agent))
    return folder


def _solve_side(entry: Path, agent: str, spell: Spell) -> None:
    """The entry's trials: one patch, one trajectory, one seal for each case."""
    records = []
    for case, *_ in CASES:
        source = "one\ntwo\n" + spell("const saved = true;").replace("\n", " ") + "\nfour\n"
        _save(entry / f"submissions/{case}/js/app.js", source.encode("utf-8", "replace"))
        seal = {
            "outcome": "ok",
            "flags": [spell("blind")],
            "duration_s": 12.0,
            "usage": {"calls": 3, "cost_usd": 1.0},
        }
        _write(entry / f"submissions/{case}.manifest.json", seal | {"changes": [spell("changed: js/app.js")]})
        trial = entry / f"trials/{case}/1"
        name = spell("js/app.js").replace("\n", " ")
        patch = f"diff --git a/{name} b/{name}\n@@ -1,2 +1,2 @@\n-{spell('old')}\n+{spell('new')}\n same\n"
        _save(trial / "changes.patch", patch.encode("utf-8", "replace"))
        _save(trial / "stdout.log", spell("agent said").encode("utf-8", "replace"))
        call = {"tool_call_id": "c1", "function_name": spell("bash"), "arguments": {"command": spell("ls")}}
        steps = [
            {"step_id": 1, "source": "user", "timestamp": "2026-03-02T09:00:00+00:00", "message": spell("Do it.")},
            {
                "step_id": 2, "source": "agent", "timestamp": "2026-03-02T09:00:04+00:00", "message": spell("Doing it."),
                "reasoning_content": spell("Think."), "tool_calls": [call],
                "observation": {"results": [{"source_call_id": "c1", "content": spell("app.js")}]},
            },
            {"step_id": 3, "source": "agent", "timestamp": "2026-03-02T09:00:10+00:00", "message": spell("Done.")},
        ]  # fmt: skip
        _write(trial / "trajectory.json", {"schema_version": "ATIF-v1.8", "steps": steps})
        records.append({"type": "trial", "case": case, "outcome": "ok", "reason": "", "logs": f"trials/{case}/1"})
    (entry / "journal.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))


def _save(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _criterion(
    folder: Path, agent: str, case: str, index: int, text: str, letter: str, paint: Paint, spell: Spell
) -> dict[str, Any]:
    verdict = VERDICTS[letter]
    claimed = "PASS" if agent == "stub" and index % 2 else verdict
    kind = "preservation" if index == 5 else "behaviour"
    start, submission = f"evidence/{case}/{index}/start.jpg", f"evidence/{case}/{index}/submission.jpg"
    _save(folder / start, paint(case, f"start {index}"))
    _save(folder / submission, paint(case, f"{agent} {index}"))
    witness = f"evidence/{case}/{index}/witness.json"
    _write(
        folder / witness,
        {"schema": "cdb.witness/1", "steps": [{"expect": "visible", "target": {"text": spell("A")}}]},
    )
    parts = []
    for sub, core in (("a", True), ("b", False)):
        holds = letter == "P" or (letter == "H" and core)
        rule = "" if holds or claimed != "PASS" else "attempt_failed"
        parts.append(
            {
                "id": sub,
                "text": spell(f"{'The change is there' if core else 'It also holds for other inputs'} (part {sub})."),
                "core": core,
                "witness": witness,
                "replays": _replays(holds, kind, submission, spell),
                "proposed": holds or claimed == "PASS",
                "card": holds or claimed == "PASS",
                "witnessed": holds,
                "lowered_by": rule,
                "reason": spell("The script saves it."),
                "citations": [{"path": "js/app.js", "quote": spell("const saved = true;")[:2000], "line": 3}],
                "refutation": {"outcome": "uphold", "reason": spell("Tried twice."), "inputs": {"name": spell("Li")}},
            }
        )
    columns = {column: {"verdict": claimed, "rule": RULES_OF[claimed]} for column in COLUMNS}
    columns["witnessed"] = {"verdict": verdict, "rule": RULES_OF[verdict] if claimed == verdict else "attempt_failed"}
    return {
        "type": "criterion",
        "case": case,
        "criterion_index": index,
        "rubric_id": f"{case}-{index}",
        "criterion": spell(text),
        "kind": kind,
        "outcome": "ok",
        "reason": spell("The field is drawn but nothing reads it.") if letter == "F" else "",
        "verdict": verdict,
        "columns": columns,
        "sub_requirements": parts,
        "start_frame": start,
        "submission_frame": submission,
        "flags": [spell("lowered")] if claimed != verdict else [],
        "duration_s": 4.2,
    }


def _replays(holds: bool, kind: str, frame: str, spell: Spell) -> list[dict[str, Any]]:
    def replay(app: str, purpose: str, held: bool, **more: Any) -> dict[str, Any]:
        texts = [
            "Open /",
            "Click the button “Add”",
            "Fill “Name” with “Ana Ruiz”",
            "Expect the text of .toast to contain “Ana Ruiz”",
        ]
        steps: list[dict[str, Any]] = [
            {"index": i, "text": spell(text), "ok": held or i < 3, "ms": 40} for i, text in enumerate(texts)
        ]
        steps[3] |= {"note": "" if held else spell("no element matches .toast"), "frame": frame}
        outcome = {"outcome": "held" if held else "failed", "failed_step": None if held else 3}
        why = {"reason": "" if held else spell("no element matches .toast within 2.0 s"), "steps": steps}
        return {"app": app, "purpose": purpose, "duration_s": 1.3, **outcome, **why, **more}

    console = [spell("error: Uncaught TypeError: cannot read properties of null"), spell("log: ready")]
    first = replay("submission", "propose", holds, console=console, refused_requests=[spell("GET fonts")])
    again = replay("submission", "repeat", holds)
    start = replay("start", "vacuity", kind == "preservation")
    other = replay("submission", "vary", holds, inputs={"name": spell("Bo Li")})
    return [first, again, start, other]


def _cases_json(folder: Path, agent: str, spell: Spell) -> dict[str, Any]:
    cases = []
    _save(folder / "digest/digest.md", spell("what it says").encode("utf-8", "replace"))
    for name in ("note.mp3", "page.html", spell("n")[:60].replace("/", "_").replace("\0", "_") + ".txt"):
        _save(folder / "project/_attachments" / name, spell("text").encode("utf-8", "replace"))
    for case, title, attachment, request, criteria in CASES:
        listed = [
            {"criterion_index": i, "rubric_id": f"{case}-{i}", "criterion": spell(text)}
            for i, text in enumerate(criteria, start=1)
        ]
        texts = {"title": spell(title), "request": spell(request)}
        picture = f"evidence/{case}/annotation.jpg"
        files = sorted(path.name for path in (folder / "project/_attachments").iterdir())
        solved = {"folder": f"../runs/{agent}/submissions/{case}", "changed_files": 1, "outcome": "ok"}
        more = {
            "project": "project", "submission": solved,
            "attachments": [{"path": f"_attachments/{n}", "kind": "audio" if n == "note.mp3" else "text", "bytes": 4, "digest": "digest"} for n in files],
        }  # fmt: skip
        told = {"attachment": attachment, "annotation": picture, "criteria": listed}
        cases.append({"case": case, **texts, **told, **more})
    return {"schema": "cdb.cases/1", "dataset": "sample", "cases": cases}


def _lock_json(agent: str, spell: Spell) -> dict[str, Any]:
    return {
        "schema": "cdb.lock/1",
        "entry": {"agent": spell(agent), "model": None, "harness": spell("replay"), "attempt": 1},
        "dataset": {"name": spell("sample"), "digest": "sha256:" + "ab12" * 16, "tasks": 5, "criteria": 25},
        "scope": {"label": spell("whole sample release"), "cases": [case for case, *_ in CASES]},
        "judge": {"name": spell("recorded"), "model": None},
        "browser": {"version": spell("Chromium 140.0"), "sandbox": True},
        "versions": {"cdb": "0.1.0", "python": "3.11"},
        "conditions": {"egress": "none", "media": spell("native")},
    }


def _scores_json(agent: str) -> dict[str, Any]:
    credit = {"P": 1.0, "H": 0.5, "F": 0.0}
    rows = []
    for (case, _, attachment, *_), letters in zip(CASES, SKILL[agent], strict=True):
        n = len(letters)
        rows.append(
            {
                "case": case,
                "attachment": attachment,
                "outcome": "ok",
                "strict": 100 * letters.count("P") / n,
                "graded": 100 * sum(credit[letter] for letter in letters) / n,
                "full": 100.0 * (set(letters) == {"P"}),
            }
        )
    column = {}
    for metric in ("strict", "graded", "full"):
        mean = sum(float(row[metric]) for row in rows) / len(rows)
        column[metric] = {"mean": mean, "low": max(0.0, mean - 14), "high": min(100.0, mean + 14)}
    columns: dict[str, Any] = {name: dict(column) for name in COLUMNS}
    if agent == "stub":
        for name in ("judge", "card"):
            columns[name]["strict"] = {"mean": 56.0, "low": 40.0, "high": 72.0}
    counts = {"tasks_scored": 5, "tasks": 5, "criteria_scored": 25, "criteria": 25}
    return {
        "schema": "cdb.scores/1",
        "columns": columns,
        "headline": "witnessed",
        "coverage": counts,
        "incomplete": False,
        "bounds": None,
        "by_attachment": {
            row["attachment"]: {"tasks": 1, **{m: row[m] for m in ("strict", "graded", "full")}} for row in rows
        },
        "cases": rows,
        "flags": {"lowered": 14} if agent == "stub" else {},
    }


def test_a_results_folder_is_read_whole_without_a_note(tmp_path: Path) -> None:
    results = read_results(make_results(tmp_path / "gold", "gold"))
    assert results.notes == []
    assert len(results.criteria) == 25
    assert list(results.case_records) == [case for case, *_ in CASES]
    assert results.judged_at == "2026-03-02T09:32:00+00:00"


def test_an_edited_journal_is_shown_with_a_note_on_its_broken_chain(tmp_path: Path) -> None:
    folder = make_results(tmp_path / "stub", "stub")
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"verdict": "FAIL"', '"verdict": "PASS"', 1))
    results = read_results(folder)
    assert len(results.criteria) == 25
    assert any("hash chain is broken" in note for note in results.notes)


def test_a_foreign_journal_needs_only_case_criterion_and_verdict(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"case": "x", "criterion": 2, "verdict": "PARTIAL"}\nnot json\n')
    results = read_results(tmp_path)
    assert results.criteria[("x", 2)].verdict == "PARTIAL"
    assert "journal.jsonl, line 2 is not JSON and was skipped" in results.notes


def test_a_second_verdict_counts_only_when_it_says_it_supersedes(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    first = '{"case": "x", "criterion": 1, "verdict": "FAIL"}\n'
    journal.write_text(first + '{"case": "x", "criterion": 1, "verdict": "PASS"}\n')
    assert read_results(tmp_path).criteria[("x", 1)].verdict == "FAIL"
    journal.write_text(first + '{"case": "x", "criterion": 1, "verdict": "PASS", "supersedes": 1}\n')
    assert read_results(tmp_path).criteria[("x", 1)].verdict == "PASS"


def test_a_folder_without_any_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no results folder"):
        read_results(tmp_path)
