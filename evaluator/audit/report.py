"""`cdb audit report`: how far people agree with each other and the judge, and the score people would give."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import DataError
from evaluator.audit.agreement import Floats, Ints, alpha, kappa, kappa_of
from evaluator.audit.corrected import corrected
from evaluator.audit.design import Design, Item, read_design
from evaluator.audit.frame import RANKS, VALUES, Judging, read_judging
from evaluator.audit.labels import Labels, read_labels
from evaluator.records import Verdict

SCHEMA = "cdb.audit_report/1"
METRICS = ("strict", "graded")
NAMES = tuple(RANKS)


def audit_report(design_file: Path, label_files: list[Path]) -> dict[str, Any]:
    """Everything `cdb audit report --json` prints, explained in docs/records.md. Scores in percent.

    Raises UsageError for labels of another audit, DataError where a judging is not what the audit was drawn from.
    """
    design = read_design(design_file)
    labels = read_labels(label_files, design)
    judgings = [_judging(design, number, design_file.parent) for number in range(len(design.results))]
    table = _Table(design, judgings, labels)
    return {
        "schema": SCHEMA,
        "audit": design.audit,
        "column": design.column,
        "items": len(design.items),
        "labellers": [
            {"labeller": one.labeller, "labels": len(said), "unsure": len(one.labels) - len(said)}
            for one, said in zip(labels, table.said, strict=True)
        ],
        "people": table.people(),
        "judge": table.judge(),
        "results": [table.of_results(number) for number in range(len(judgings))],
        "disagreements": table.disagreements(),
    }


def _judging(design: Design, number: int, base: Path) -> Judging:
    audited = design.results[number]
    folder = base / audited.folder
    judging = read_judging(folder, design.column)
    if judging.journal_sha256 != audited.journal_sha256:
        raise DataError(f"{folder}: its journal is not the one the audit was drawn from; audit the new one afresh")
    return judging


class _Table:
    """Labels against verdicts. Items are taken in the design's order throughout."""

    def __init__(self, design: Design, judgings: list[Judging], labels: list[Labels]) -> None:
        self.design, self.judgings, self.labels = design, judgings, labels
        self.said: list[dict[str, Verdict]] = [
            {item: label.verdict for item, label in one.labels.items() if label.verdict != "UNSURE"} for one in labels
        ]
        self.places = [
            {(c.case.case, c.criterion_index): position for position, c in enumerate(judging.criteria)}
            for judging in judgings
        ]
        widest = max(len(audited.strata) for audited in design.results)
        self.strata = np.array([item.results * widest + item.stratum for item in design.items])
        self.weights = np.array([1 / item.probability for item in design.items])

    def verdict(self, item: Item) -> Verdict | None:
        return self.judgings[item.results].criteria[self._place(item)].verdict

    def people(self) -> dict[str, Any]:
        """Agreement of the labellers: kappa of each pair, alpha of all."""
        pairs = []
        for (a, first), (b, second) in combinations(enumerate(self.said), 2):
            both = [n for n, item in enumerate(self.design.items) if item.item in first and item.item in second]
            ours, theirs = (
                np.array([RANKS[one[self.design.items[n].item]] for n in both], dtype=np.int64)
                for one in (first, second)
            )
            found = kappa(
                ours, theirs, 3, seed=self.design.seed, strata=self.strata[both], weights=self.weights[both]
            )
            pairs.append({
                "first": self.labels[a].labeller, "second": self.labels[b].labeller, "kappa": found.as_json()
            })  # fmt: skip
        counts = np.array([self._counts(item) for item in self.design.items], dtype=np.int64).reshape(-1, 3)
        found = alpha(counts, seed=self.design.seed, strata=self.strata)
        return {"pairs": pairs, "alpha": found.as_json()}

    def judge(self, results: int | None = None) -> dict[str, Any]:
        """Agreement of the judge with all labellers together, with each, and alpha with the judge as one more."""
        chosen = [
            n for n, item in enumerate(self.design.items)
            if results in (None, item.results) and self.verdict(item) and any(self._counts(item))
        ]  # fmt: skip
        items = [self.design.items[n] for n in chosen]
        counts = np.array([self._counts(item) for item in items], dtype=np.int64).reshape(-1, 3)
        own = np.zeros_like(counts)
        own[np.arange(len(items)), [RANKS[v] for item in items if (v := self.verdict(item))]] = 1
        strata, seed = self.strata[chosen], self.design.seed
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        tables = self.weights[chosen, None, None] * own[:, :, None] * shares[:, None, :]
        told: dict[str, Any] = {
            "kappa": kappa_of(tables, seed=seed, strata=strata).as_json(),
            "alpha": alpha(own + counts, seed=seed, strata=strata).as_json(),
            "confusion": _confusion(own, counts),
        }
        if results is None:
            told["by_labeller"] = [
                {"labeller": one.labeller, "kappa": self._with(said, items, tables.shape, strata, chosen)}
                for one, said in zip(self.labels, self.said, strict=True)
            ]
        return told

    def _with(
        self, said: dict[str, Verdict], items: list[Item], shape: tuple[int, ...], strata: Ints, chosen: list[int]
    ) -> dict[str, Any]:
        tables: Floats = np.zeros(shape)
        for row, item in enumerate(items):
            if item.item in said and (verdict := self.verdict(item)):
                tables[row, RANKS[verdict], RANKS[said[item.item]]] = self.weights[chosen[row]]
        there = tables.any(axis=(1, 2))
        return kappa_of(tables[there], seed=self.design.seed, strata=strata[there]).as_json()

    def of_results(self, number: int) -> dict[str, Any]:
        """One judging: the judge's score as it is and as people's labels correct it."""
        judging, audited = self.judgings[number], self.design.results[number]
        told: dict[str, Any] = {
            "folder": audited.folder,
            "entry": judging.cases.entry,
            "criteria": len(judging.criteria),
            "settled": sum(c.settled for c in judging.criteria),
            "unscored": sum(c.verdict is None for c in judging.criteria),
            "judge": self.judge(number),
            "why_not": "",
        }
        items = [i for i in self.design.items if i.results == number and any(self._counts(i))]
        labelled = np.array([self._place(item) for item in items], dtype=np.int64)
        for metric in METRICS:
            frame = judging.frame(tuple(audited.level), metric)
            people = np.array([self._value(item, metric) for item in items])
            try:
                told[metric] = corrected(frame, labelled, people).as_json()
            except ValueError as error:
                told[metric] = None
                told["why_not"] = f"{error}; label the rest of the page first"
        return told

    def disagreements(self) -> list[dict[str, Any]]:
        """Items where somebody says otherwise than the judge, for a second look."""
        told = []
        for item in self.design.items:
            said = {
                one.labeller: {"verdict": labels[item.item], "note": one.labels[item.item].note}
                for one, labels in zip(self.labels, self.said, strict=True)
                if item.item in labels
            }
            if any(label["verdict"] != self.verdict(item) for label in said.values()):
                where = {"item": item.item, "results": item.results, "case": item.case}
                told.append({
                    **where, "criterion_index": item.criterion_index, "judge": self.verdict(item), "people": said
                })  # fmt: skip
        return told

    def _place(self, item: Item) -> int:
        try:
            return self.places[item.results][item.case, item.criterion_index]
        except KeyError:
            where = self.design.results[item.results].folder
            raise DataError(
                f"the design names {item.case} criterion {item.criterion_index}, not in {where}"
            ) from None

    def _counts(self, item: Item) -> list[int]:
        """How many labellers said FAIL, PARTIAL, PASS."""
        said = [labels[item.item] for labels in self.said if item.item in labels]
        return [said.count(name) for name in NAMES]

    def _value(self, item: Item, metric: str) -> float:
        """The mean of the labellers' values, so that two who differ need no arbiter."""
        counts = self._counts(item)
        return sum(n * VALUES[metric][name] for n, name in zip(counts, NAMES, strict=True)) / sum(counts)


def _confusion(own: Ints, counts: Ints) -> dict[str, dict[str, int]]:
    """Judge's verdict → people's → number of labels, as they were given (not weighted)."""
    table = (own.T @ counts).tolist()
    return {judge: dict(zip(NAMES, row, strict=True)) for judge, row in zip(NAMES, table, strict=True)}


def lines(found: dict[str, Any]) -> list[str]:
    """What `cdb audit report` prints without --json."""
    said = [f"audit {found['audit']} of column {found['column']}: {found['items']} items; 95 % intervals"]
    said += [f"  {one['labeller']}: {one['labels']} labels, {one['unsure']} unsure" for one in found["labellers"]]
    said += [
        f"people: {p['first']} and {p['second']}: kappa {_coefficient(p['kappa'])}" for p in found["people"]["pairs"]
    ]
    if len(found["labellers"]) > 1:
        said.append(f"people: alpha {_coefficient(found['people']['alpha'])}")
    judge = found["judge"]
    said.append(f"judge and people: kappa {_coefficient(judge['kappa'])}, alpha {_coefficient(judge['alpha'])}")
    said += [f"  with {one['labeller']}: kappa {_coefficient(one['kappa'])}" for one in judge["by_labeller"]]
    for judge_said, row in judge["confusion"].items():
        said.append(f"  judge {judge_said:<7} people " + ", ".join(f"{name} {n}" for name, n in row.items()))
    for one in found["results"]:
        who = (
            "__".join(str(one["entry"][key]) for key in ("agent", "model") if one["entry"].get(key)) or one["folder"]
        )
        said.append(f"{who} ({one['folder']})")
        said += [f"  {metric:<7} {_score(one[metric])}" for metric in METRICS if one[metric]]
        if one["why_not"]:
            said.append(f"  no corrected score: {one['why_not']}")
    return said


def _coefficient(one: dict[str, Any]) -> str:
    if one["value"] is None:
        return f"undefined over {one['items']} items (every label the same, or none)"
    interval = "" if one["low"] is None else f" [{one['low']:.2f}, {one['high']:.2f}]"
    return f"{one['value']:.2f}{interval} over {one['items']} items, {100 * one['same']:.0f} % the same"


def _score(one: dict[str, Any]) -> str:
    return (
        f"judge {one['judge']:.1f}, corrected {one['mean']:.1f}; "
        f"tasks like these [{one['low']:.1f}, {one['high']:.1f}], "
        f"these tasks [{one['here_low']:.1f}, {one['here_high']:.1f}]; "
        f"{one['labels']} labels, lambda {one['power']:.2f}"
    )
