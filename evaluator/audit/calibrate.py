"""`cdb calibrate`: what a judge says of the sample's recorded edits against what is true of them.

The sample comes with applications whose verdicts are known (`evaluator/sample/cases/ID/truth.json`, held by
executable tests): right ones, partial ones, and kinds of wrong ones such as stubs. A judge that credits the wrong
ones is lenient in a way that agreement alone would hide, so the share of false credit is told for each kind.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import UsageError
from bench.strict_json import read_json
from evaluator.audit.agreement import kappa
from evaluator.audit.frame import RANKS, Judging, read_judging
from evaluator.intervals import wilson
from evaluator.metrics import percent
from evaluator.records import COLUMNS, Column, Verdict

SCHEMA = "cdb.calibration/1"
TRUTH = Path(__file__).parent.parent / "sample" / "cases"
UNTOUCHED = "noop"
Row = tuple[str, str, Verdict, Verdict | None]
"""Kind of application, case, what is true, what the judge says."""


def calibrate(folders: list[Path], truth: Path = TRUTH) -> dict[str, Any]:
    """Everything `cdb calibrate --json` prints, explained in docs/records.md. Rates in percent with Wilson intervals.

    `folders`: results of the sample's edits, all by one judge. Raises UsageError for anything else.
    """
    if not folders:
        raise UsageError("give results folders of the sample's edits; `cdb run configs/runs/sample.yaml` makes some")
    known = {path.parent.name: read_json(path)["truth"] for path in sorted(truth.glob("*/truth.json"))}
    judges = []
    columns: dict[str, Any] = {}
    for column in COLUMNS:
        judgings = [read_judging(folder, column) for folder in folders]
        judges = [_judge(judging) for judging in judgings]
        columns[column] = _measured([row for judging in judgings for row in _rows(judging, known, column)])
    if any(judge != judges[0] for judge in judges):
        raise UsageError("these results are of different judges or settings; calibrate one judge at a time")
    return {"schema": SCHEMA, "results": [str(folder) for folder in folders], "judge": judges[0], "columns": columns}


def _judge(judging: Judging) -> Any:
    path = judging.folder / "lock.json"
    lock = read_json(path) if path.is_file() else {}
    return {key: lock.get(key) for key in ("judge", "refuter") if lock.get(key)}


def _rows(judging: Judging, known: dict[str, Any], column: Column) -> list[Row]:
    kind = _kind(judging)
    rows: list[Row] = []
    for one in judging.criteria:
        case, index = one.case.case, one.criterion_index
        if kind == UNTOUCHED:
            plan = next((part for part in one.case.plan if part.criterion_index == index), None)
            true: Verdict | None = "PASS" if plan and plan.kind == "preservation" else "FAIL"
        else:
            true = known.get(case, {}).get(kind, {}).get(str(index))
        if true is None:
            where = f"criterion {index} of {case} under the edit {kind!r}"
            raise UsageError(f"{judging.folder}: {where} has no truth; only the sample's edits ({column}) have one")
        rows.append((kind, case, true, one.verdict))
    return rows


def _kind(judging: Judging) -> str:
    """The edit that was applied, from how the submissions were made."""
    agent = judging.cases.solve.get("agent") or {}
    if agent.get("kind") == "replay" and isinstance(agent.get("edit"), str):
        return str(agent["edit"])
    if agent.get("kind") == UNTOUCHED:
        return UNTOUCHED
    raise UsageError(
        f"{judging.folder}: its submissions are not the sample's recorded edits; `cdb run configs/runs/sample.yaml` "
        "with your judge under `judges` makes such results"
    )


def _measured(rows: list[Row]) -> dict[str, Any]:
    decided = [(RANKS[true], RANKS[said]) for _, _, true, said in rows if said]
    ranks = np.array(decided, dtype=np.int64).reshape(-1, 2)
    counted: Counter[tuple[str, str]] = Counter((true, said or "unscored") for _, _, true, said in rows)
    kinds = sorted({kind for kind, *_ in rows})
    return {
        "criteria": len(rows),
        "unscored": len(rows) - len(decided),
        "confusion": {t: {s: counted[t, s] for s in (*RANKS, "unscored")} for t in RANKS},
        "agreement": kappa(ranks[:, 0], ranks[:, 1], 3, seed=0).as_json(),
        "kinds": {kind: _rates([row for row in rows if row[0] == kind]) for kind in kinds},
        "all": _rates(rows),
    }


def _rates(rows: list[Row]) -> dict[str, Any]:
    """False credit: more than is true, of what is not PASS. Missed credit: less than is true, of what is not FAIL."""
    scored = [(RANKS[true], RANKS[said]) for _, _, true, said in rows if said]
    over = [said > true for true, said in scored if true < RANKS["PASS"]]
    under = [said < true for true, said in scored if true > RANKS["FAIL"]]
    return {"false_credit": _rate(over), "missed_credit": _rate(under)}


def _rate(hits: list[bool]) -> dict[str, Any]:
    if not hits:
        return {"n": 0, "of": 0, "rate": None, "low": None, "high": None}
    found = wilson(sum(hits), len(hits))
    told = {"rate": percent(found.mean), "low": percent(found.low), "high": percent(found.high)}
    return {"n": sum(hits), "of": len(hits), **told}


def lines(found: dict[str, Any]) -> list[str]:
    """What `cdb calibrate` prints without --json."""
    said = []
    for column, one in found["columns"].items():
        same = one["agreement"]["value"]
        told = "undefined" if same is None else f"{same:.2f}"
        said.append(f"{column}: {one['criteria']} criteria, {one['unscored']} unscored; kappa with the truth {told}")
        for true, row in one["confusion"].items():
            said.append(f"  truly {true:<7} said " + ", ".join(f"{name} {n}" for name, n in row.items()))
        for kind, rates in [*one["kinds"].items(), ("all", one["all"])]:
            over, under = rates["false_credit"], rates["missed_credit"]
            said.append(f"  {kind:<14} false credit {_told(over)}, missed credit {_told(under)}")
    return said


def _told(rate: dict[str, Any]) -> str:
    if rate["rate"] is None:
        return "none possible"
    return f"{rate['n']}/{rate['of']} ({rate['rate']:.0f} % [{rate['low']:.0f}, {rate['high']:.0f}])"
