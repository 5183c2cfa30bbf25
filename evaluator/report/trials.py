"""One entry on one case: how the trial went, what it changed, how it was built, and how both applications look."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from evaluator.records import CaseRecord
from evaluator.report.patch import FilePatch, read_patch
from evaluator.report.pictures import Kept, Picture, Shelf
from evaluator.report.reading import Json, Results, items, mapping, number, read_text
from evaluator.report.solved import Trial
from evaluator.report.timeline import Timeline, read_timeline
from evaluator.report.words import SHOT_WORDS, TRIAL_WORDS, duration, in_words

PATCH_BYTES = 4 * 1024 * 1024
LOG_BYTES = 60_000


@dataclass(frozen=True)
class Pair:
    """Start and submission at one size of window."""

    name: str
    start: Picture | None
    submission: Picture | None


@dataclass(frozen=True)
class Log:
    """A command of the build, or a text the trial left; `failed` marks what went wrong."""

    title: str
    text: str
    failed: bool = False


@dataclass(frozen=True)
class TrialView:
    """What one trial's page shows."""

    outcome: str
    ended: str
    reason: str
    flags: list[str]
    facts: list[tuple[str, str]]
    pairs: list[Pair]
    patch: list[FilePatch]
    patch_file: Kept | None
    patch_note: str
    changes: list[str]
    timeline: Timeline
    build: list[Log]
    build_facts: list[tuple[str, str]]
    logs: list[Log]
    cost_usd: float | None
    took: str
    """How long solving took, in words; empty where nobody knows."""


@dataclass(frozen=True)
class _Seen:
    """What a trial is read from."""

    results: Results
    case: str
    trial: Trial
    record: CaseRecord | None


def make_trial(results: Results, case: str, trial: Trial, shelf: Shelf) -> TrialView:
    """Everything that is at hand of this trial; what is not, is said in words."""
    seen = _Seen(results, case, trial, results.case_records.get(case))
    usage = mapping(trial.seal.get("usage")) or mapping(trial.record.get("account"))
    solving = str(trial.seal.get("outcome") or trial.record.get("outcome") or trial.missing.get("outcome") or "")
    patch, patch_file, patch_note = _patch(trial, shelf)
    seconds = number(trial.seal.get("duration_s")) or number(trial.record.get("duration_s"))
    reasons = [
        seen.record.reason if seen.record else "",
        str(trial.record.get("reason") or trial.missing.get("reason") or ""),
    ]
    return TrialView(
        outcome=in_words(seen.record.outcome) if seen.record else "not judged yet",
        ended=TRIAL_WORDS.get(solving, solving),
        reason="; ".join(dict.fromkeys(filter(None, reasons))),
        flags=_flags(seen),
        facts=_facts(seen, usage, seconds),
        pairs=_pairs(seen, shelf),
        patch=patch,
        patch_file=patch_file,
        patch_note=patch_note,
        changes=[str(line) for line in trial.seal.get("changes") or ()][:2000],
        timeline=read_timeline(trial.folder, shelf) if trial.folder else _no_timeline(trial),
        build=_build_logs(results.folder, case),
        build_facts=_build_facts(results.folder, case),
        logs=_trial_logs(trial.folder),
        cost_usd=number(usage.get("cost_usd")),
        took="" if seconds is None else duration(seconds),
    )


def _flags(seen: _Seen) -> list[str]:
    names = [*(seen.record.flags if seen.record else ()), *(seen.trial.seal.get("flags") or ())]
    return [in_words(str(name)) for name in dict.fromkeys(names)]


def _facts(seen: _Seen, usage: Json, seconds: float | None) -> list[tuple[str, str]]:
    seal, record = seen.trial.seal, seen.trial.record
    facts = []
    if seconds is not None:
        facts.append(("solved in", duration(seconds)))
    for key, name, form in (("calls", "model calls", "{:,.0f}"), ("cost_usd", "cost", "{:.2f} USD")):
        value = number(usage.get(key))
        if value is not None:
            facts.append((name, form.format(value)))
        elif key == "cost_usd" and usage:
            facts.append((name, "unknown"))
    tokens = mapping(usage.get("tokens"))
    facts += [(f"tokens: {in_words(str(k))}", f"{count:,.0f}") for k, v in tokens.items() if (count := number(v))]
    changed = number(seal.get("changed_files")) or (seen.record.changed_files if seen.record else None)
    if changed is not None:
        facts.append(("changed files", f"{changed:.0f}"))
    if record.get("exit_code") is not None:
        facts.append(("exit code", str(record["exit_code"])))
    if seen.record and seen.record.duration_s:
        facts.append(("judged in", duration(seen.record.duration_s)))
    for key, name in (("digest", "submission"), ("image", "image"), ("started_at", "began")):
        if seal.get(key):
            facts.append((name, str(seal[key])))
    for key, name in (("left_out", "left out"), ("refused", "refused"), ("altered", "altered")):
        told = [f"{item.get('path')} ({item.get('reason')})" for item in items(seal.get(key))]
        if told:
            facts.append((name, "; ".join(told[:20]) + (f" and {len(told) - 20} more" if len(told) > 20 else "")))
    return facts


def _pairs(seen: _Seen, shelf: Shelf) -> list[Pair]:
    shots = dict(seen.record.shots) if seen.record else {}

    def shot(name: str) -> Picture | None:
        path = shots.pop(name, None)
        return shelf.take_inside(seen.results.folder, path) if path else None

    pairs = []
    for size in ("desktop", "phone"):
        start, submission = shot(f"start_{size}"), shot(f"submission_{size}")
        if start or submission:
            pairs.append(Pair(size, start, submission))
    pairs += [Pair(SHOT_WORDS.get(name, in_words(name)), None, shot(name)) for name in sorted(shots)]
    return pairs


def _patch(trial: Trial, shelf: Shelf) -> tuple[list[FilePatch], Kept | None, str]:
    if trial.folder is None:
        return [], None, "The trial's folder is not at hand, so neither is its patch."
    path = trial.folder / "changes.patch"
    if not path.is_file():
        error = read_text(trial.folder / "patch-error.txt", 2000).strip()
        return (
            [],
            None,
            f"git could not make a patch: {error}" if error else "There is no patch: nothing was changed.",
        )
    files = read_patch(read_text(path, PATCH_BYTES))
    not_shown = read_text(trial.folder / "changes-not-shown.txt", 20_000).strip()
    note = f"Not in the patch, because binary or large:\n{not_shown}" if not_shown else ""
    return files, shelf.keep(path, "changes.patch"), note


def _no_timeline(trial: Trial) -> Timeline:
    who = "The trial's folder is not at hand" if trial.submission else "There is no submission"
    return Timeline([], [], None, 0, f"{who}, so there is no trajectory.")


def _build_logs(results: Path, case: str) -> list[Log]:
    """The build's phases, each with its log; without a record of them, whatever logs there are."""
    folder = _inside(results, "evidence", case, "build")
    if folder is None:
        return []
    phases = {str(p.get("log")): p for p in items(_built(results, case).get("phases"))}
    logs = []
    for path in sorted(folder.glob("*.log")):
        phase = phases.get(path.name, {})
        code, seconds = phase.get("exit_code"), number(phase.get("duration_s"))
        words = [" ".join(map(str, phase.get("command") or ())) or path.name]
        if code is not None:
            words.append(f"exit code {code}")
        if seconds is not None:
            words.append(f"{seconds:.1f} s")
        logs.append(Log(", ".join(words), _tail(path), failed=bool(code)))
    return logs


def _build_facts(results: Path, case: str) -> list[tuple[str, str]]:
    built = _built(results, case)
    facts = [(in_words(key), str(built[key])) for key in ("outcome", "code", "reason") if built.get(key)]
    node = mapping(built.get("node"))
    if node.get("version"):
        facts.append(("node", str(node["version"])))
    if built.get("lock_mismatch"):
        facts.append(("lock file", "did not fit package.json, resolved anew"))
    facts += [("flag", in_words(str(flag))) for flag in built.get("flags") or ()]
    if built.get("reused"):
        facts.append(("build", "taken over: the same tree was built before"))
    return facts


def _built(results: Path, case: str) -> Json:
    folder = _inside(results, "built", case)
    try:
        return mapping(json.loads((folder / "BUILT.json").read_text(encoding="utf-8"))) if folder else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _trial_logs(folder: Path | None) -> list[Log]:
    if folder is None:
        return []
    names = ("error.txt", "stderr.log", "stdout.log", "request.md")
    found = [(name, _tail(folder / name)) for name in names]
    return [Log(name, text, failed=name == "error.txt") for name, text in found if text]


def _tail(path: Path) -> str:
    """The end of a log; what was wrong stands there."""
    try:
        with path.open("rb") as stream:
            size = path.stat().st_size
            stream.seek(max(0, size - LOG_BYTES))
            text = stream.read().decode("utf-8", "replace").strip("\n")
    except (OSError, ValueError):
        return ""
    return f"({size - LOG_BYTES} bytes before this not shown)\n{text}" if size > LOG_BYTES else text


def _inside(root: Path, *parts: str) -> Path | None:
    try:
        path = root.joinpath(*parts).resolve()
        return path if path.is_dir() and path.is_relative_to(root.resolve()) else None
    except (OSError, ValueError):
        return None
