"""A trajectory (ATIF) as a timeline: what the agent said, called and got back, and when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evaluator.report.pictures import Picture, Shelf
from evaluator.report.reading import Json, items, mapping, number

MAX_BYTES = 64 * 1024 * 1024
MAX_STEPS = 300
MAX_CHARS = 1500
MAX_PICTURES = 40


@dataclass(frozen=True)
class Call:
    """One tool call with what came back."""

    name: str
    arguments: str
    result: str


@dataclass(frozen=True)
class Moment:
    """One step. `at_s` since the first step, `lasted_s` until the next; None where the file has no times."""

    number: int
    who: str
    at_s: float | None
    lasted_s: float | None
    text: str
    thought: str
    calls: list[Call]
    pictures: list[Picture]
    tokens: str

    @property
    def title(self) -> str:
        """The step in a few words, for the list's closed state."""
        if self.calls:
            return ", ".join(dict.fromkeys(call.name for call in self.calls))
        return self.text.strip().split("\n", 1)[0][:120] or "(no text)"


@dataclass(frozen=True)
class Bar:
    """One step in the drawing, in percent of the whole time."""

    number: int
    who: str
    left: float
    width: float


@dataclass(frozen=True)
class Timeline:
    moments: list[Moment]
    bars: list[Bar]
    total_s: float | None
    not_shown: int
    note: str
    """Why there is nothing to show; empty otherwise."""


def read_timeline(trial: Path, shelf: Shelf) -> Timeline:
    """The trajectory of the trial whose folder is `trial`. Whatever it holds, nothing is raised."""
    path = trial / "trajectory.json"
    try:
        if path.stat().st_size > MAX_BYTES:
            return _nothing(
                f"The trajectory is longer than {MAX_BYTES // 1024 // 1024} MiB; it is in the trial's folder."
            )
        told = mapping(json.loads(path.read_text(encoding="utf-8", errors="replace")))
    except FileNotFoundError:
        return _nothing(_why_none(trial))
    except (OSError, ValueError, RecursionError) as error:
        return _nothing(f"trajectory.json could not be read: {error.__class__.__name__}")
    steps = items(told.get("steps"))
    times = [_time(step.get("timestamp")) for step in steps]
    first = next((t for t in times if t is not None), None)
    moments: list[Moment] = []
    pictures = 0
    for place, step in enumerate(steps[:MAX_STEPS]):
        now, after = times[place], next((t for t in times[place + 1 :] if t is not None), None)
        lasted = None if now is None or after is None else max(0.0, after - now)
        at = None if now is None or first is None else max(0.0, now - first)
        moment = _moment(place + 1, step, at, lasted, trial, shelf if pictures < MAX_PICTURES else None)
        pictures += len(moment.pictures)
        moments.append(moment)
    known = [t for t in times if t is not None]
    total = max(known) - min(known) if known else None
    return Timeline(
        moments, _bars(moments, total), total, len(steps) - len(moments), "" if moments else "It is empty."
    )


def _nothing(note: str) -> Timeline:
    return Timeline([], [], None, 0, note)


def _why_none(trial: Path) -> str:
    try:
        told = (trial / "trajectory-error.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "No trajectory: this agent asked no model through the gateway."
    return f"No trajectory: {told[:MAX_CHARS]}"


def _moment(
    place: int, step: Json, at_s: float | None, lasted_s: float | None, trial: Path, shelf: Shelf | None
) -> Moment:
    text, names = _content(step.get("message"))
    results: dict[str, list[str]] = {}
    loose: list[str] = []
    for result in items(mapping(step.get("observation")).get("results")):
        words, more = _content(result.get("content"))
        names += more
        owner = result.get("source_call_id")
        (results.setdefault(owner, []) if isinstance(owner, str) else loose).append(words)
    calls = [
        Call(
            str(call.get("function_name") or "?"),
            _short(json.dumps(call.get("arguments"), ensure_ascii=False, indent=1)),
            _short("\n".join(results.get(str(call.get("tool_call_id")), []))),
        )
        for call in items(step.get("tool_calls"))
    ]
    if loose:
        calls.append(Call("result", "", _short("\n".join(loose))))
    metrics = mapping(step.get("metrics"))
    return Moment(
        place, str(step.get("source") or "?"), at_s, lasted_s, _short(text),
        _short(str(step.get("reasoning_content") or "")), calls,
        [shelf.take_inside(trial, name) for name in names] if shelf else [], _tokens(metrics),
    )  # fmt: skip


def _content(value: object) -> tuple[str, list[str]]:
    """(text, names of pictures) of ATIF content: a string, or parts."""
    if isinstance(value, str):
        return value, []
    texts, names = [], []
    for part in items(value):
        source = mapping(part.get("source"))
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") == "image" and isinstance(source.get("path"), str):
            names.append(source["path"])
        else:
            texts.append(f"({part.get('type')})")
    return "\n".join(texts), names


def _tokens(metrics: Json) -> str:
    sent, got, usd = (number(metrics.get(k)) for k in ("prompt_tokens", "completion_tokens", "cost_usd"))
    parts = [f"{sent:,.0f} tokens in"] if sent is not None else []
    parts += [f"{got:,.0f} out"] if got is not None else []
    parts += [f"{usd:.4f} USD"] if usd is not None else []
    return ", ".join(parts)


def _bars(moments: list[Moment], total_s: float | None) -> list[Bar]:
    if not total_s:
        return []
    bars = []
    for moment in moments:
        if moment.at_s is None:
            continue
        width = 100 * (moment.lasted_s or 0) / total_s
        bars.append(Bar(moment.number, moment.who, round(100 * moment.at_s / total_s, 3), round(max(width, 0.25), 3)))
    return bars


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]} … ({len(text) - MAX_CHARS} more characters)"


def _time(value: object) -> float | None:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
