"""What the overview shows of each entry: its name, numbers in every column, coverage, bounds and flags.

The numbers are those of scores.json as they stand: the page never computes a score of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluator.records import COLUMNS, Column
from evaluator.report.anchors import anchor, page_name
from evaluator.report.reading import Json, Results, mapping, number
from evaluator.report.sections import Shown, read_sections
from evaluator.report.words import ATTACHMENT_WORDS, duration, in_words

METRICS = ("strict", "graded", "full")


@dataclass(frozen=True)
class Metric:
    """A percentage with its interval; None where scores.json does not say."""

    name: str
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Entry:
    """One agent × model × attempt with its results. `metrics[column]` follows METRICS."""

    slug: str
    label: str
    about: str
    results: Results = field(repr=False)
    metrics: dict[Column, list[Metric]]
    coverage: str
    unscored: int
    incomplete: bool
    bounds: list[str]
    flags: list[tuple[str, int]]
    identity: list[tuple[str, str]]
    cost_usd: float | None
    """What solving one task cost on the average; None: unknown, or no model was asked."""
    spend: list[tuple[str, str]]
    sections: list[Shown]
    digests: list[str]
    """A line for each submission that was judged."""

    @property
    def page(self) -> str:
        """Its page below the site's folder."""
        return f"agents/{page_name(self.slug)}.html"

    def strict(self, column: Column) -> float:
        """The number the column is ranked by; an entry without one comes last."""
        mean = self.metrics[column][0].mean
        return -1.0 if mean is None else mean


@dataclass(frozen=True)
class Group:
    """Entries that may stand in one table: same dataset, scope, judge and conditions."""

    title: str
    entries: list[Entry]

    def ranked(self, column: Column) -> list[tuple[int, Entry]]:
        """(rank, entry), best Strict first; equal numbers share a rank."""
        order = sorted(self.entries, key=lambda entry: -entry.strict(column))
        return [(1 + sum(e.strict(column) > entry.strict(column) for e in order), entry) for entry in order]

    def attachments(self) -> list[tuple[str, int, list[list[Metric] | None]]]:
        """(attachment in words, tasks, per entry its metrics or None), in the order of the card's list."""
        found = {name for entry in self.entries for name in mapping(entry.results.scores.get("by_attachment"))}
        order = [name for name in ATTACHMENT_WORDS if name in found] + sorted(found - ATTACHMENT_WORDS.keys())
        rows = []
        for name in order:
            cells = [mapping(mapping(e.results.scores.get("by_attachment")).get(name)) for e in self.entries]
            tasks = max(int(number(cell.get("tasks")) or 0) for cell in cells)
            values = [_metrics(cell) if cell else None for cell in cells]
            rows.append((ATTACHMENT_WORDS.get(name, name), tasks, values))
        return rows


def make_entries(all_results: Sequence[Results]) -> list[Entry]:
    """One entry per results folder, with labels that tell them apart, best Strict of `witnessed` first."""
    labels = _labels(all_results)
    entries = [_entry(results, label, i) for i, (results, label) in enumerate(zip(all_results, labels, strict=True))]
    return sorted(entries, key=lambda entry: -entry.strict("witnessed"))


def group(entries: Iterable[Entry]) -> list[Group]:
    """Entries of unlike judging or conditions apart, in the order of their best entry.

    Two groups are titled by what is not the same in all of them.
    """
    by_key: dict[str, list[Entry]] = {}
    told: list[list[tuple[str, str]]] = []
    every = list(entries)
    capped = {json.dumps(_circumstances(e.results)): _caps(e.results) for e in reversed(every) if _caps(e.results)}
    for entry in every:
        lines = _circumstances(entry.results)
        # An agent without a model has no caps: it stands beside those that have some.
        lines += _caps(entry.results) or capped.get(json.dumps(lines), [])
        if (key := json.dumps(lines)) not in by_key:
            told.append(lines)
        by_key.setdefault(key, []).append(entry)
    shared = {line for line in told[0] if all(line in lines for lines in told)}
    titles = [" · ".join(f"{name} {value}" for name, value in lines if (name, value) not in shared) for lines in told]
    return [Group(title, members) for title, members in zip(titles, by_key.values(), strict=True)]


def _circumstances(results: Results) -> list[tuple[str, str]]:
    """What must be the same for two entries to stand in one table, as (name, value): of the judging from its lock, of
    the solving from what cases.json kept of the solve entry's."""
    lock = results.lock
    solve = mapping(mapping(results.scores.get("settings")).get("solve"))
    dataset, scope = mapping(lock.get("dataset")), mapping(lock.get("scope"))
    lines = [(f"dataset {key}", _flat(dataset.get(key))) for key in ("name", "digest")]
    lines += [("scope", _flat(scope.get("label"))), ("cases", _flat(scope.get("cases")))]
    lines += [(f"judge {in_words(key)}", _flat(value)) for key, value in sorted(mapping(lock.get("judge")).items())]
    lines += [(f"refuter {in_words(k)}", _flat(value)) for k, value in sorted(mapping(lock.get("refuter")).items())]
    lines += [(in_words(key), _flat(value)) for key, value in sorted(mapping(lock.get("conditions")).items())]
    lines += [("plans", _flat(lock.get("plans_sha256"))), ("evidence", _flat(lock.get("evidence")))]
    for key in ("conditions", "limits"):
        lines += [(f"solving: {in_words(k)}", _flat(value)) for k, value in sorted(mapping(solve.get(key)).items())]
    return [*lines, ("solving: time limit", _flat(solve.get("timeout_s")))]


def _caps(results: Results) -> list[tuple[str, str]]:
    """What an agent's model calls might cost, of one trial."""
    solve = mapping(mapping(results.scores.get("settings")).get("solve"))
    return [(f"solving: {in_words(k)}", _flat(value)) for k, value in sorted(mapping(solve.get("caps")).items())]


def _labels(all_results: Sequence[Results]) -> list[str]:
    """The agent's name, with as much of model, attempt and folder as it takes to be unlike the others."""
    ways = [_name_parts(results) for results in all_results]
    for length in range(1, 4):
        labels = [" · ".join(part for part in parts[:length] if part) for parts in ways]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{label} ({i})" for i, label in enumerate(labels, start=1)]


def _name_parts(results: Results) -> tuple[str, str, str]:
    entry = mapping(results.lock.get("entry"))
    attempt = entry.get("attempt")
    return (
        str(entry.get("agent") or "unknown"),
        str(entry.get("model") or ""),
        f"attempt {attempt}" if attempt else "",
    )


def _entry(results: Results, label: str, place: int) -> Entry:
    entry, scores = mapping(results.lock.get("entry")), results.scores
    coverage = mapping(scores.get("coverage"))
    done, total = number(coverage.get("criteria_scored")), number(coverage.get("criteria"))
    tasks_done, tasks = number(coverage.get("tasks_scored")), number(coverage.get("tasks"))
    about = [str(entry[key]) for key in ("model", "harness") if entry.get(key)]
    if entry.get("attempt"):
        about.append(f"attempt {entry['attempt']}")
    if not entry.get("agent"):
        about.append("origin unknown, not reportable")
    said = "coverage unknown"
    if done is not None and total is not None:
        said = f"{done:.0f} of {total:.0f} criteria scored"
        if tasks_done is not None and tasks is not None:
            said += f", {tasks_done:.0f} of {tasks:.0f} tasks"
    flags = [(in_words(str(k)), int(number(v) or 0)) for k, v in sorted(mapping(scores.get("flags")).items())]
    return Entry(
        slug=anchor(f"e{place + 1}", label),
        label=label,
        about=" · ".join(about),
        results=results,
        metrics={column: _metrics(mapping(mapping(scores.get("columns")).get(column))) for column in COLUMNS},
        coverage=said,
        unscored=int((total or 0) - (done or 0)),
        incomplete=scores.get("incomplete") is True,
        bounds=_bounds(mapping(scores.get("bounds"))),
        flags=[(name, count) for name, count in flags if count],
        identity=_identity(results),
        cost_usd=_cost(results, tasks),
        spend=_spend(results),
        sections=read_sections(results),
        digests=[f"{case}  {digest}" for case, digest in mapping(results.lock.get("submissions")).items()],
    )


def _cost(results: Results, tasks: float | None) -> float | None:
    spent = number(mapping(mapping(results.spend.get("solve")).get("usage")).get("cost_usd"))
    return spent / tasks if spent is not None and tasks else None


def _spend(results: Results) -> list[tuple[str, str]]:
    """What solving and judging took, as (name, value): time, money, tokens."""
    lines = []
    for step in ("solve", "judge"):
        told = mapping(results.spend.get(step))
        seconds = number(told.get("duration_s"))
        if seconds is not None:
            lines.append((f"{step}: time", duration(seconds)))
        lines += [(f"{step}: {in_words(str(k))}", _flat(v)) for k, v in mapping(told.get("usage")).items()]
    return lines


def _metrics(values: Json) -> list[Metric]:
    """METRICS from `{name: mean}` or `{name: {"mean", "low", "high"}}`."""
    found = []
    for name in METRICS:
        value = values.get(name)
        parts = mapping(value) or {"mean": value}
        mean, low, high = (number(parts.get(key)) for key in ("mean", "low", "high"))
        found.append(Metric(name, mean, low, high))
    return found


def _bounds(bounds: Json, prefix: str = "") -> list[str]:
    """Every (low, high) pair in scores.json's bounds as "Strict 40.0–60.0", whatever it is nested in."""
    lines = []
    for key, value in bounds.items():
        name = f"{prefix} {in_words(str(key))}".strip().capitalize()
        ends = value if isinstance(value, list) else [mapping(value).get("low"), mapping(value).get("high")]
        low, high = (number(end) for end in ends) if len(ends) == 2 else (None, None)
        if low is not None and high is not None:
            lines.append(f"{name} {low:.1f}–{high:.1f}")
        else:
            lines += _bounds(mapping(value), name)
    return lines


def _identity(results: Results) -> list[tuple[str, str]]:
    """What the lock says of how this was made, as (name, value) lines."""
    lines = [("results folder", Path(results.folder).name)]
    for section, content in results.lock.items():
        if section == "submissions":
            continue
        if isinstance(content, dict):
            lines += [(f"{section}: {in_words(str(key))}", _flat(value)) for key, value in content.items()]
        else:
            lines.append((in_words(section), _flat(content)))
    if results.judged_at:
        lines.append(("judged until", results.judged_at))
    return lines


def _flat(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{in_words(str(key))} {_flat(item)}" for key, item in value.items())
    return (
        {None: "–", True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool | None) else str(value)
    )
