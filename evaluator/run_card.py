"""`run_card.md`, beside every scores.json: what the number is about, how it was made, and what it does not say."""

from __future__ import annotations

from typing import Any

from evaluator.metrics import METRICS

CAVEATS = (
    "Public ME-96 is 96 of the paper's 273 tasks. A result over it is reported apart from the paper's full set.",
    "The public protocol is a starting point: the leaderboard also needs the paper's infrastructure and evidence "
    "audits. This number does not replace them.",
    "The three columns are never mixed: `card` is what the card's judge-then-refute protocol reports, `witnessed` "
    "credits only what replayed evidence carries, and ranks.",
)
_TITLES = {"strict": "Strict", "graded": "Graded", "full": "Full"}


def run_card(scores: dict[str, Any], leaks: dict[str, Any] | None = None) -> str:
    """Markdown from scores.json and leak_audit.json (None: not made) alone, so that the same give the same card."""
    parts = [
        f"# {_who(scores['entry'])}: {_text(scores['label'])}",
        _warning(scores),
        _numbers(scores),
        _list("Scope", _scope(scores)),
        _list("Entry", _entry(scores["entry"])),
        _list("Evaluator", _evaluator(scores["settings"])),
        _list("Conditions", _flat("", scores["settings"].get("conditions", {})) or ["not recorded"]),
        _list("Coverage", _coverage(scores)),
        _list("Flagged", [f"{_text(flag)}: {n}" for flag, n in scores["flags"].items()] or ["nothing"]),
        _list("Leak audit", _leaks(leaks)),
        _list("Warnings", [_text(line) for line in scores["warnings"]] or ["none"]),
        _list("What this number does not say", list(CAVEATS)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _who(entry: dict[str, Any]) -> str:
    model = f" with {_text(entry['model'])}" if entry.get("model") else ""
    return f"{_text(entry.get('agent') or 'unknown')}{model}, attempt {_text(entry.get('attempt') or 1)}"


def _warning(scores: dict[str, Any]) -> str:
    lines = []
    if scores["partial"]:
        lines.append("**PARTIAL: the judging is not finished; this number will change.**")
    if scores["incomplete"]:
        bounds = "; ".join(f"{_TITLES[m]} {b['low']:.1f} to {b['high']:.1f}" for m, b in scores["bounds"].items())
        lines.append(f"**INCOMPLETE: something is unscored. With the unscored as FAIL and as PASS: {bounds}.**")
    if not scores["entry"].get("reportable"):
        lines.append("**Not reportable: who made the submissions, or that they are unchanged, is not known.**")
    return "\n".join(lines)


def _numbers(scores: dict[str, Any]) -> str:
    rows = ["| column | Strict | Graded | Full |", "| --- | --- | --- | --- |"]
    for column, metrics in scores["columns"].items():
        name = f"**{column}** (ranks)" if column == scores["headline"] else column
        rows.append(f"| {name} | " + " | ".join(_interval(metrics[m]) for m in METRICS) + " |")
    noop = scores["noop"]
    rows.append("| no-op (untouched application) | " + " | ".join(f"{noop[m]:.1f}" for m in METRICS) + " |")
    note = "Percent, mean over tasks with equal weight, 95 % interval (bootstrap over tasks; Wilson for Full)."
    return "\n".join(rows) + f"\n\n{note}"


def _interval(metric: dict[str, float | None]) -> str:
    if metric["mean"] is None:
        return "none"
    return f"{metric['mean']:.1f} [{metric['low']:.1f}, {metric['high']:.1f}]"


def _scope(scores: dict[str, Any]) -> list[str]:
    dataset = scores["dataset"]
    lines = [f"{key}: {_text(dataset[key])}" for key in ("name", "digest", "tasks", "criteria") if key in dataset]
    lines.append(f"scope: {_text(scores['scope'].get('label'))}")
    for kind, values in scores["by_attachment"].items():
        numbers = ", ".join(f"{_TITLES[m]} {values[m]:.1f}" for m in METRICS if m in values)
        lines.append(f"{kind}: {values['tasks']} tasks" + (f", {numbers}" if numbers else ""))
    return lines


def _entry(entry: dict[str, Any]) -> list[str]:
    return [f"{key}: {_text(value)}" for key, value in entry.items()] or ["unknown"]


def _evaluator(settings: dict[str, Any]) -> list[str]:
    shown = {key: value for key, value in settings.items() if key != "conditions"}
    return _flat("", shown) or ["foreign journal: its judge is not known here"]


def _coverage(scores: dict[str, Any]) -> list[str]:
    c = scores["coverage"]
    lines = [
        f"{c['tasks_scored']} of {c['tasks']} tasks scored whole, {c['criteria_scored']} of {c['criteria']} criteria"
    ]
    lines += [f"{_text(outcome)}: {n}" for outcome, n in scores["outcomes"].items()]
    for o in scores["overrides"]:
        raw = o["raw"][scores["headline"]] or "no verdict"
        lines.append(
            f"overruled by {_text(o['author'])}: {_text(o['case'])} criterion {o['criterion_index']}, "
            f"{raw} → {o['verdict']}: {_text(o['reason'])}"
        )
    return lines


def _leaks(found: dict[str, Any] | None) -> list[str]:
    """Trials by status, then those that a person has to look at; leak_audit.json has every place."""
    if found is None:
        return ["not made: `cdb audit leaks` on the results folder"]
    said = [f"{status}: {n} of {len(found['trials'])} trials" for status, n in found["statuses"].items()]
    for trial in found["trials"]:
        if trial["status"] != "CLEAN":
            kinds = sorted({finding["kind"] for finding in trial["findings"]})
            reasons = [part["reason"] for part in trial["not_looked_into"][:1]]
            said.append(f"{trial['status']} {_text(trial['case'])}: {_text(', '.join(kinds or reasons))}")
    return said


def _flat(prefix: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [line for key, inner in sorted(value.items()) for line in _flat(f"{prefix}{key}.", inner)]
    return [f"{prefix.rstrip('.')}: {_text(value)}"]


def _list(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines)


def _text(value: object) -> str:
    """One line of plain text: no markup and no line break of somebody else's gets into the card."""
    flat = " ".join(str(value).split())
    return "".join(f"\\{c}" if c in "\\`*<>[]|#!" else c for c in flat if c.isprintable())
