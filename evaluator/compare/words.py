"""A comparison as lines of text."""

from __future__ import annotations

from typing import Any

from evaluator.metrics import METRICS


def lines(found: dict[str, Any]) -> list[str]:
    """What `cdb compare` prints without --json."""
    said = [f"column {found['column']}; percent, mean over tasks, 95 % interval"]
    width = max(len(entrant["name"]) for entrant in found["entrants"])
    for entrant in found["entrants"]:
        numbers = "   ".join(f"{metric} {_interval(entrant['metrics'][metric])}" for metric in METRICS)
        cost = "cost unknown" if entrant["usd"] is None else f"{entrant['usd']:.2f} USD"
        said.append(
            f"{entrant['name']:<{width}}  {numbers}   {entrant['tasks_scored']}/{entrant['tasks']} tasks"
            f"{' INCOMPLETE' if entrant['incomplete'] else ''}   attempts {entrant['attempts']}   {cost}"
        )
        said += [
            f"{'':<{width}}  {name} " + ", ".join(f"k={k} {value:.1f}" for k, value in entrant[key].items())
            for name, key in (("pass@k", "pass_at"), ("pass^k", "pass_hat"))
            if entrant[key]
        ]
    for pair in found["pairs"]:
        said += ["", *_pair(pair)]
    if len(found["table"]) > 1 or any(len(row) > 1 for row in found["table"].values()):
        said += ["", *_matrix(found["table"])]
    return said


def _pair(pair: dict[str, Any]) -> list[str]:
    said = [f"{pair['first']} against {pair['second']}: {pair['matched']} tasks paired"]
    if pair["unmatched"]:
        said.append(f"  unmatched: {', '.join(pair['unmatched'])}")
    for metric, m in pair["metrics"].items():
        mcnemar = f", McNemar mid-p {m['mcnemar_mid_p']:.4f}" if "mcnemar_mid_p" in m else ""
        smallest = "unknown" if m["smallest_detectable"] is None else f"{m['smallest_detectable']:.1f}"
        said.append(
            f"  {metric:<7} {m['difference']:+.1f} [{m['low']:+.1f}, {m['high']:+.1f}]: {m['finding']}; "
            f"p {m['p']:.4f} (Holm {m['p_holm']:.4f}){mcnemar}; wins {m['wins']}, ties {m['ties']}, "
            f"losses {m['losses']}; smallest detectable difference {smallest}"
        )
    return said


def _matrix(table: dict[str, dict[str, dict[str, float | None]]]) -> list[str]:
    models = sorted({model for row in table.values() for model in row})
    width = max(len("harness"), *(len(name) for name in table))
    said = [f"{'harness':<{width}}" + "".join(f"  {model:>24}" for model in models) + "   (strict/graded/full)"]
    for name, row in table.items():
        cells = ["/".join(_cell(row[m][metric]) for metric in METRICS) if m in row else "-" for m in models]
        said.append(f"{name:<{width}}" + "".join(f"  {cell:>24}" for cell in cells))
    return said


def _cell(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def _interval(metric: dict[str, float | None]) -> str:
    if metric["mean"] is None:
        return "none"
    return f"{metric['mean']:.1f} [{metric['low']:.1f}, {metric['high']:.1f}]"
