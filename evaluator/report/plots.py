"""The overview's plots, each as SVG, PNG and CSV to download. Numbers are those of scores.json and spend.json."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from evaluator.records import COLUMNS
from evaluator.report.cases import CaseView
from evaluator.report.drawing import Drawing
from evaluator.report.entries import Entry, Group, Metric
from evaluator.report.put import Site

NAME_CHARS = 26
VERDICT_ROLES = {"PASS": "pass", "PARTIAL": "partial", "FAIL": "fail", None: "none"}


@dataclass(frozen=True)
class Plot:
    """One plot: what the page shows, and its files below the site's folder by kind."""

    name: str
    title: str
    svg: Markup
    files: dict[str, str]


def leaderboard(group: Group) -> Drawing:
    """One row an entry, three panels: mean and 95 % interval of Strict, Graded and Full (witnessed column)."""
    ranked = [entry for _, entry in group.ranked("witnessed")]
    drawing = Drawing(
        880, 64 + 30 * len(ranked), "Leaderboard",
        "Mean and 95 % interval of Strict, Graded and Full, witnessed column: "
        + "; ".join(f"{e.label} {', '.join(f'{m.name} {_said(m)}' for m in e.metrics['witnessed'])}" for e in ranked),
    )  # fmt: skip
    for panel in range(3):
        left = 220 + 220 * panel
        drawing.text(left, 18, ("Strict", "Graded", "Full")[panel], bold=True)
        _axis(drawing, left, 190, 28, 30 * len(ranked))
        for row, entry in enumerate(ranked):
            _interval(drawing, left, 190, 44 + 30 * row, entry.metrics["witnessed"][panel])
    for row, entry in enumerate(ranked):
        drawing.text(206, 48 + 30 * row, _short(entry.label), anchor="end")
    return drawing


def strata(group: Group) -> Drawing:
    """Strict by primary attachment, an entry a row."""
    rows = group.attachments()
    height = sum(30 + 22 * len(group.entries) for _ in rows)
    drawing = Drawing(880, 40 + height, "Strict by attachment", "; ".join(_stratum(group, row) for row in rows))
    y = 18.0
    for name, tasks, values in rows:
        drawing.text(0, y + 4, name.capitalize(), bold=True)
        drawing.text(206, y + 4, f"{tasks} {'case' if tasks == 1 else 'cases'}", "soft", anchor="end")
        _axis(drawing, 220, 620, y - 8, 22 * len(group.entries) + 18, labels=False)
        for entry, metrics in zip(group.entries, values, strict=True):
            y += 22
            drawing.text(206, y + 4, _short(entry.label), "soft", anchor="end")
            if metrics and metrics[0].mean is not None:
                x = 220 + 6.2 * metrics[0].mean
                drawing.line(220, y, x, y, "span", 8)
                drawing.circle(x, y, 5, "pass")
                drawing.text(
                    x + 10 if x < 800 else x - 10,
                    y + 4,
                    f"{metrics[0].mean:.1f}",
                    anchor="start" if x < 800 else "end",
                )
        y += 30
    for tick in (0, 50, 100):
        drawing.text(220 + 6.2 * tick, y + 2, str(tick), "soft", size=12, anchor="middle")
    return drawing


def _stratum(group: Group, row: tuple[str, int, list[list[Metric] | None]]) -> str:
    name, _, values = row
    told = [f"{e.label} {_said(m[0]) if m else '–'}" for e, m in zip(group.entries, values, strict=True)]
    return f"{name}: {', '.join(told)}"


def cost(entries: Sequence[Entry]) -> Drawing | None:
    """Strict (witnessed) against USD a task of solving, logarithmic; None when no entry's cost is known."""
    known = [
        (e, e.cost_usd, e.metrics["witnessed"][0])
        for e in entries
        if e.cost_usd and e.metrics["witnessed"][0].mean is not None
    ]
    if not known:
        return None
    costs = [usd for _, usd, _ in known if usd]
    low, high = math.floor(math.log10(min(costs)) * 2) / 2, math.ceil(math.log10(max(costs)) * 2) / 2
    if high - low < 1:
        low, high = low - 0.5, high + 0.5
    drawing = Drawing(
        880, 400, "Score against cost",
        "; ".join(f"{e.label}: Strict {_said(m)} at {usd:.2f} USD a task" for e, usd, m in known),
    )  # fmt: skip
    left, top, wide, tall = 56, 20, 800, 320
    for tick in range(0, 101, 25):
        y = top + tall * (1 - tick / 100)
        drawing.line(left, y, left + wide, y)
        drawing.text(left - 8, y + 4, str(tick), "soft", size=12, anchor="end")
    for tick in range(math.floor(low), math.ceil(high) + 1):
        for step in (1, 2, 5):
            at = tick + math.log10(step)
            if low <= at <= high:
                x = left + wide * (at - low) / (high - low)
                drawing.line(x, top, x, top + tall)
                drawing.text(x, top + tall + 18, f"{10**tick * step:g}", "soft", size=12, anchor="middle")
    drawing.text(left + wide / 2, 386, "USD a task, solving only (logarithmic)", "soft", anchor="middle")
    drawing.text(left, 12, "Strict, percent", "soft", size=12)
    placed: list[tuple[float, float]] = []
    for entry, usd, metric in sorted(known, key=lambda item: -(item[2].mean or 0)):
        assert usd is not None and metric.mean is not None
        x, y = left + wide * (math.log10(usd) - low) / (high - low), top + tall * (1 - metric.mean / 100)
        if metric.low is not None and metric.high is not None:
            drawing.line(x, top + tall * (1 - metric.low / 100), x, top + tall * (1 - metric.high / 100), "span", 6)
        drawing.circle(x, y, 6, "pass")
        label = y + 4
        while any(abs(label - other) < 16 and abs(x - where) < 180 for where, other in placed):
            label += 16
        placed.append((x, label))
        right = x < left + wide - 190
        drawing.text(x + 12 if right else x - 12, label, _short(entry.label), anchor="start" if right else "end")
    return drawing


def heat(cases: Sequence[CaseView], entries: Sequence[Entry]) -> Drawing:
    """Every verdict of the witnessed column: a row a case, a group of cells an entry."""
    most = max((len(case.criteria) for case in cases), default=1)
    group = 14 * most + 12
    drawing = Drawing(
        240 + group * len(entries), 44 + 16 * len(cases), "Verdicts",
        f"{len(cases)} cases, {len(entries)} entries, witnessed column; the CSV file has every one",
    )  # fmt: skip
    for column, entry in enumerate(entries):
        drawing.text(230 + group * column, 20, _short(entry.label, max(6, group // 7)), bold=True, size=12)
    for row, case in enumerate(cases):
        y = 34 + 16 * row
        drawing.text(222, y + 10, _short(case.title, 32), size=11, anchor="end")
        for column, standing in enumerate(case.standings):
            for place, finding in enumerate(standing.findings):
                x, verdict = 230 + group * column + 14 * place, finding.verdict("witnessed")
                drawing.rect(x, y, 12, 12, VERDICT_ROLES[verdict])
                if verdict == "FAIL":
                    drawing.line(x + 3.5, y + 3.5, x + 8.5, y + 8.5, "fail-ink", 1.5)
                    drawing.line(x + 3.5, y + 8.5, x + 8.5, y + 3.5, "fail-ink", 1.5)
    return drawing


def scores_csv(entries: Iterable[Entry]) -> bytes:
    rows = [
        [entry.label, column, metric.name, metric.mean, metric.low, metric.high]
        for entry in entries
        for column in COLUMNS
        for metric in entry.metrics[column]
    ]
    return _csv(["entry", "column", "metric", "mean", "low", "high"], rows)


def strata_csv(group: Group) -> bytes:
    rows = [
        [name, tasks, entry.label, metric.name, metric.mean]
        for name, tasks, values in group.attachments()
        for entry, metrics in zip(group.entries, values, strict=True)
        for metric in metrics or ()
    ]
    return _csv(["attachment", "cases", "entry", "metric", "mean"], rows)


def cost_csv(entries: Iterable[Entry]) -> bytes:
    rows = [[e.label, e.cost_usd, *(m.mean for m in e.metrics["witnessed"])] for e in entries]
    return _csv(["entry", "usd_per_task", "strict", "graded", "full"], rows)


def verdicts_csv(cases: Iterable[CaseView]) -> bytes:
    rows = [
        [
            case.id,
            row.index,
            row.rubric_id,
            entry.label,
            *(finding.verdict(c) for c in COLUMNS),
            finding.trail[2].rule,
        ]
        for case in cases
        for row in case.criteria
        for entry, finding in row.findings
    ]
    return _csv(["case", "criterion_index", "rubric_id", "entry", *COLUMNS, "rule"], rows)


def put_plot(site: Site, name: str, drawing: Drawing, table: bytes) -> Plot:
    """Write the three files of a plot."""
    files = {"SVG": f"plots/{name}.svg", "PNG": f"plots/{name}.png", "CSV": f"plots/{name}.csv"}
    site.put(files["SVG"], drawing.svg(alone=True).encode("utf-8"))
    site.put(files["PNG"], drawing.png())
    site.put(files["CSV"], table)
    return Plot(name, drawing.title, drawing.svg(alone=False), files)


def _csv(head: list[str], rows: Iterable[Sequence[object]]) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue().encode("utf-8", "backslashreplace")


def _cell(value: object) -> object:
    """Numbers as they are; a text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if not isinstance(value, str):
        return "" if value is None else value
    return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _axis(drawing: Drawing, left: float, wide: float, top: float, tall: float, *, labels: bool = True) -> None:
    for tick in (0, 50, 100):
        x = left + wide * tick / 100
        drawing.line(x, top, x, top + tall)
        if labels:
            drawing.text(x, top + tall + 16, str(tick), "soft", size=12, anchor="middle")


def _interval(drawing: Drawing, left: float, wide: float, y: float, metric: Metric) -> None:
    if metric.low is not None and metric.high is not None:
        drawing.line(left + wide * metric.low / 100, y, left + wide * metric.high / 100, y, "span", 8)
    if metric.mean is not None:
        drawing.circle(left + wide * metric.mean / 100, y, 5.5, "pass")


def _said(metric: Metric) -> str:
    if metric.mean is None:
        return "–"
    if metric.low is None or metric.high is None:
        return f"{metric.mean:.1f}"
    return f"{metric.mean:.1f} ({metric.low:.1f} to {metric.high:.1f})"


def _short(text: str, chars: int = NAME_CHARS) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}…"
